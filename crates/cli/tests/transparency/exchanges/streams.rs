//! Bytes and windows: how an application writes and reads, and when it does not.

use super::Exchange;
use crate::net::Host;
use crate::stage::{Stage, read_pattern, read_some, write_pattern};
use anyhow::{Context, Result, ensure};
use live::sys::socket_option;
use rustix::fd::OwnedFd;
use rustix::net::sockopt;
use rustix::net::{RecvFlags, SendFlags};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(super) const ALL: &[Exchange] = &[
    Exchange::new("urgent data", urgent),
    Exchange::new("urgent data in line", urgent_in_line),
    Exchange::new("a reader that pauses: zero window", zero_window),
    Exchange::new("the smallest receive buffer", smallest_buffer),
    Exchange::new("a huge window", huge_window).clean_only(),
    Exchange::new("a window that shrinks", shrinking_window)
        .with(&[("net/ipv4/tcp_shrink_window", "1")]),
    Exchange::new("single bytes, Nagle", |stage| single_bytes(stage, Writes::Nagle)),
    Exchange::new("single bytes, no delay", |stage| single_bytes(stage, Writes::NoDelay)),
    Exchange::new("single bytes, corked", |stage| single_bytes(stage, Writes::Corked)),
    Exchange::new("question and answer", questions),
    Exchange::new("quick ACKs", quick_acks),
    Exchange::new("sendfile and splice", send_file),
    Exchange::new("sequence numbers wrap around", wrap_around),
    Exchange::new("sequence numbers wrap around, IPv6", wrap_around).v6(),
    Exchange::new("sequence numbers wrap around without SACK", wrap_around)
        .with(&[("net/ipv4/tcp_sack", "0"), ("net/ipv4/tcp_timestamps", "0")]),
];

/// A byte out of band in the middle of others.
fn urgent(stage: &Stage<'_>) -> Result<()> {
    let pair = stage.pair()?;
    for from in Host::BOTH {
        let (sender, receiver) = (pair.at(from), pair.at(from.other()));
        write_pattern(sender, 0, 3_000)?;
        rustix::net::send(sender, b"!", SendFlags::OOB).context("send out of band")?;
        write_pattern(sender, 3_000, 3_000)?;
        read_pattern(receiver, 0, 3_000)?;
        wait_for_urgent(receiver)?;
        stage.say(format!("at the mark: {}", socket_option::at_mark(receiver)?));
        let mut byte = [0];
        let count = rustix::net::recv(receiver, byte.as_mut_slice(), RecvFlags::OOB);
        stage.say(format!("out of band: {:?} {byte:?}", count.context("receive out of band")?));
        read_pattern(receiver, 3_000, 3_000)?;
    }
    stage.close(pair)
}

/// Until urgent data is there.
fn wait_for_urgent(receiver: &TcpStream) -> Result<()> {
    let watched = rustix::event::PollFd::new(receiver, rustix::event::PollFlags::PRI);
    let wait = Duration::from_secs(20).try_into().context("a time to wait")?;
    ensure!(rustix::event::poll(&mut [watched], Some(&wait))? == 1, "no urgent data came");
    Ok(())
}

/// The same, read among the others; a read ends at the mark.
fn urgent_in_line(stage: &Stage<'_>) -> Result<()> {
    let in_line = |socket: &OwnedFd| Ok(sockopt::set_socket_oobinline(socket, true)?);
    let pair = stage.connect(Host::Fixed, in_line)?;
    let (sender, mut receiver) = (&pair.fixed, &pair.mobile);
    for round in 0..3 {
        write_pattern(sender, 0, 500)?;
        rustix::net::send(sender, b"!", SendFlags::OOB).context("send out of band")?;
        write_pattern(sender, 0, 500)?;
        wait_for_urgent(receiver)?;
        read_pattern(receiver, 0, 500)?;
        let at_mark = socket_option::at_mark(receiver)?;
        let mut byte = [0];
        receiver.read_exact(&mut byte).context("read the urgent byte")?;
        stage.say(format!("round {round}: at the mark {at_mark}, the byte {byte:?}"));
        read_pattern(receiver, 0, 500)?;
    }
    stage.close(pair)
}

/// Writes until nothing goes any more, then the reader begins.
fn zero_window(stage: &Stage<'_>) -> Result<()> {
    const BYTES: usize = 1_200_000;
    let small = |socket: &OwnedFd| Ok(sockopt::set_socket_recv_buffer_size(socket, 32 << 10)?);
    let pair = stage.connect(Host::Fixed, small)?;
    for from in Host::BOTH {
        std::thread::scope(|scope| {
            let sent = scope.spawn(|| write_pattern(pair.at(from), 0, BYTES));
            std::thread::sleep(Duration::from_millis(700));
            let stuck = !sent.is_finished();
            stage.say(format!("{from:?} waits for the reader: {stuck}"));
            read_pattern(pair.at(from.other()), 0, BYTES)?;
            sent.join().expect("no panic")
        })?;
    }
    stage.facts(&pair)?;
    stage.close(pair)
}

fn smallest_buffer(stage: &Stage<'_>) -> Result<()> {
    let least = |socket: &OwnedFd| Ok(sockopt::set_socket_recv_buffer_size(socket, 1)?);
    let pair = stage.connect(Host::Fixed, least)?;
    stage.bulk(&pair, Host::Fixed, 10_000)?;
    stage.bulk(&pair, Host::Mobile, 10_000)?;
    stage.close(pair)
}

fn huge_window(stage: &Stage<'_>) -> Result<()> {
    const ROOM: usize = 64 << 20;
    let huge = |socket: &OwnedFd| {
        // Beyond the system's limit only for who may.
        let forced = sockopt::set_socket_recv_buffer_size_force(socket, ROOM);
        forced.or_else(|_| sockopt::set_socket_recv_buffer_size(socket, ROOM))?;
        let forced = sockopt::set_socket_send_buffer_size_force(socket, ROOM);
        Ok(forced.or_else(|_| sockopt::set_socket_send_buffer_size(socket, ROOM))?)
    };
    let pair = stage.connect(Host::Fixed, huge)?;
    stage.bulk(&pair, Host::Fixed, 12_000_000)?;
    stage.bulk(&pair, Host::Mobile, 12_000_000)?;
    stage.facts(&pair)?;
    stage.close(pair)
}

/// A receiver that takes back what it offered.
fn shrinking_window(stage: &Stage<'_>) -> Result<()> {
    let pair = stage.pair()?;
    for from in Host::BOTH {
        let receiver = pair.at(from.other());
        std::thread::scope(|scope| {
            let sent = scope.spawn(|| write_pattern(pair.at(from), 0, 400_000));
            read_pattern(receiver, 0, 40_000)?;
            for (part, room) in (1..10).zip([64 << 10, 16 << 10, 8 << 10].into_iter().cycle()) {
                sockopt::set_socket_recv_buffer_size(receiver, room)?;
                std::thread::sleep(Duration::from_millis(20));
                let mut done = 0;
                while done < 40_000 {
                    make_room_if_stuck(receiver)?;
                    done += read_some(receiver, part * 40_000 + done, 4_000.min(40_000 - done))?;
                }
            }
            sent.join().expect("no panic")
        })?;
        stage.say(format!("all of {from:?} arrived"));
    }
    stage.close(pair)
}

/// What arrived out of order before the buffer shrank may fill it: then the kernel drops what is
/// missing below (`TCPZeroWindowDrop`), and the sender's timeouts double, with or without anybody
/// in between.
fn make_room_if_stuck(receiver: &TcpStream) -> Result<()> {
    let patience = rustix::event::Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
    let descriptor = rustix::event::PollFd::new(receiver, rustix::event::PollFlags::IN);
    if rustix::event::poll(&mut [descriptor], Some(&patience))? == 0 {
        sockopt::set_socket_recv_buffer_size(receiver, 256 << 10)?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Writes {
    Nagle,
    NoDelay,
    Corked,
}

fn single_bytes(stage: &Stage<'_>, writes: Writes) -> Result<()> {
    let pair = stage.pair()?;
    for from in Host::BOTH {
        let sender = pair.at(from);
        match writes {
            Writes::Nagle => {}
            Writes::NoDelay => sockopt::set_tcp_nodelay(sender, true)?,
            Writes::Corked => sockopt::set_tcp_cork(sender, true)?,
        }
        std::thread::scope(|scope| {
            let sent = scope.spawn(|| (0..2_000).try_for_each(|at| write_pattern(sender, at, 1)));
            if let Writes::Corked = writes {
                sent.join().expect("no panic")?;
                sockopt::set_tcp_cork(sender, false)?;
                return read_pattern(pair.at(from.other()), 0, 2_000);
            }
            read_pattern(pair.at(from.other()), 0, 2_000)?;
            sent.join().expect("no panic")
        })?;
        stage.say(format!("all bytes of {from:?} arrived"));
    }
    stage.close(pair)
}

fn questions(stage: &Stage<'_>) -> Result<()> {
    let pair = stage.connect(Host::Mobile, |_| Ok(()))?;
    let lengths = [1, 100, 1_447, 1_448, 1_449, 5_000, 20_000];
    for length in lengths {
        write_pattern(&pair.mobile, 0, length)?;
        read_pattern(&pair.fixed, 0, length)?;
        write_pattern(&pair.fixed, length, length)?;
        read_pattern(&pair.mobile, length, length)?;
    }
    stage.say(format!("{} answers arrived", lengths.len()));
    stage.close(pair)
}

fn quick_acks(stage: &Stage<'_>) -> Result<()> {
    let pair = stage.pair()?;
    for part in 0..20 {
        sockopt::set_tcp_quickack(&pair.mobile, true)?;
        write_pattern(&pair.fixed, part * 5_000, 5_000)?;
        read_pattern(&pair.mobile, part * 5_000, 5_000)?;
    }
    stage.say("all arrived");
    stage.close(pair)
}

/// From a file and from a pipe, without the bytes passing the program.
fn send_file(stage: &Stage<'_>) -> Result<()> {
    const BYTES: usize = 400_000;
    let pair = stage.pair()?;
    let file = rustix::fs::memfd_create("pattern", rustix::fs::MemfdFlags::empty());
    let mut file = File::from(file.context("make a file in memory")?);
    let bytes = crate::stage::bytes(BYTES);
    file.write_all(&bytes).context("write to a file in memory")?;
    file.rewind().context("rewind")?;
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| {
            let mut done = 0;
            while done < BYTES {
                done += rustix::fs::sendfile(&pair.fixed, &file, None, BYTES - done)?;
            }
            splice(&bytes, &pair.fixed)
        });
        read_pattern(&pair.mobile, 0, BYTES).context("by sendfile")?;
        read_pattern(&pair.mobile, 0, BYTES).context("by splice")?;
        sent.join().expect("no panic")
    })?;
    stage.say("all arrived");
    stage.close(pair)
}

fn splice(bytes: &[u8], to: &TcpStream) -> Result<()> {
    let (from_pipe, into_pipe) = rustix::pipe::pipe().context("make a pipe")?;
    for part in bytes.chunks(30_000) {
        File::from(into_pipe.try_clone()?).write_all(part).context("fill a pipe")?;
        let (mut done, flags) = (0, rustix::pipe::SpliceFlags::MORE);
        while done < part.len() {
            done += rustix::pipe::splice(&from_pipe, None, to, None, part.len() - done, flags)?;
        }
    }
    Ok(())
}

/// A connection whose opener begins this many bytes before sequence number 0.
fn wrap_around(stage: &Stage<'_>) -> Result<()> {
    const BEFORE: u32 = 200_000;
    for opener in Host::BOTH {
        let near_the_end = |socket: &OwnedFd| -> Result<()> {
            // TCP_REPAIR (on: 1, off without a probe: -1), TCP_REPAIR_QUEUE (2: to be sent),
            // TCP_QUEUE_SEQ of linux/tcp.h.
            for (option, value) in [(19, 1), (20, 2), (21, BEFORE.wrapping_neg()), (19, u32::MAX)] {
                socket_option::set(socket, crate::stage::TCP, option, &value.to_ne_bytes())?;
            }
            Ok(())
        };
        let listener = stage.listen(opener.other(), 0, |_| Ok(()))?;
        let socket = stage.socket(opener)?;
        near_the_end(&socket)?;
        let pair = stage.connect_to(&listener, opener, socket)?;
        stage.bulk_both(&pair, 500_000)?;
        stage.facts(&pair)?;
        stage.close(pair)?;
    }
    Ok(())
}
