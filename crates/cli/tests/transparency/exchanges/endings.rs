//! How connections begin and end: half-closed, from both sides at once, reset, on used ports.

use super::Exchange;
use crate::load::Stopwatch;
use crate::net::Host;
use crate::stage::{Pair, Stage, accept, bound, outcome, read_pattern, write_pattern};
use anyhow::{Context, Result, bail, ensure};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

pub(super) const ALL: &[Exchange] = &[
    Exchange::new("half-closed both ways", half_close),
    Exchange::new("both ends close at once", simultaneous_close),
    Exchange::new("both ends open at once", simultaneous_open),
    Exchange::new("a reset in the middle of a transfer", reset_in_transfer).clean_only(),
    Exchange::new("closed with data unread", closed_unread).clean_only(),
    Exchange::new("a close that lingers", linger),
    Exchange::new("nobody listens", nobody_listens),
    Exchange::new("the same port again and again", same_port).clean_only(),
    Exchange::new("the same port in TIME_WAIT", time_wait).clean_only(),
    Exchange::new("the same port after a reset", port_after_reset).clean_only(),
    Exchange::new("many short connections", many_short),
];

/// One end has nothing more to say, the other goes on.
fn half_close(stage: &Stage<'_>) -> Result<()> {
    for first in Host::BOTH {
        let pair = stage.pair()?;
        let (quiet, talking) = (pair.at(first), pair.at(first.other()));
        write_pattern(quiet, 0, 1_000)?;
        quiet.shutdown(Shutdown::Write).context("end a stream")?;
        read_pattern(talking, 0, 1_000)?;
        stage.say(format!("reads: {}", outcome(talking)));
        stage.bulk(&pair, first.other(), 400_000)?;
        talking.shutdown(Shutdown::Write).context("end a stream")?;
        stage.say(format!("reads: {}", outcome(quiet)));
    }
    Ok(())
}

fn simultaneous_close(stage: &Stage<'_>) -> Result<()> {
    for _ in 0..5 {
        let pair = stage.pair()?;
        stage.bulk_both(&pair, 20_000)?;
        for host in Host::BOTH {
            pair.at(host).shutdown(Shutdown::Write).context("end a stream")?;
        }
        for host in Host::BOTH {
            stage.say(format!("{host:?} reads: {}", outcome(pair.at(host))));
        }
    }
    Ok(())
}

/// Two sockets that each connect to the other. On a path without delay the first SYN is refused
/// before the second one leaves; so both hosts lose their first SYN.
fn simultaneous_open(stage: &Stage<'_>) -> Result<()> {
    const PORTS: [u16; 2] = [7_001, 7_002];
    for host in Host::BOTH {
        stage.net.nft(
            stage.net.namespace(host),
            "table ip open { chain in { type filter hook input priority 0; \
             tcp dport 7001-7002 tcp flags == syn limit rate over 1/minute burst 1 packets accept; \
             tcp dport 7001-7002 tcp flags == syn drop; }; }",
        )?;
    }
    let open = |host: Host, (own, other): (u16, u16)| -> Result<TcpStream> {
        let socket = stage.socket(host)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::bind(&socket, &stage.address(host, own)).context("bind")?;
        let stream = TcpStream::from(socket);
        bound(&stream)?;
        stream.set_nonblocking(true).context("do not block")?;
        match rustix::net::connect(&stream, &stage.address(host.other(), other)) {
            Err(Errno::INPROGRESS) => Ok(stream),
            result => Err(anyhow::anyhow!("connect: {result:?}")),
        }
    };
    let fixed = open(Host::Fixed, (PORTS[0], PORTS[1]))?;
    let mobile = open(Host::Mobile, (PORTS[1], PORTS[0]))?;
    for stream in [&fixed, &mobile] {
        let watched = rustix::event::PollFd::new(stream, rustix::event::PollFlags::OUT);
        let wait = Duration::from_secs(10).try_into().context("a time to wait")?;
        ensure!(rustix::event::poll(&mut [watched], Some(&wait))? == 1, "no connection");
        stage.say(format!("opened: {:?}", stream.take_error().context("look for an error")?));
        stream.set_nonblocking(false).context("block")?;
    }
    for host in Host::BOTH {
        stage.net.nft(stage.net.namespace(host), "delete table ip open")?;
    }
    let pair = Pair { fixed, mobile };
    stage.bulk_both(&pair, 100_000)?;
    stage.facts(&pair)?;
    stage.close(pair)
}

/// Closing now resets.
fn abort(stream: TcpStream) -> Result<()> {
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).context("have it reset")?;
    drop(stream);
    Ok(())
}

fn reset_in_transfer(stage: &Stage<'_>) -> Result<()> {
    for from in Host::BOTH {
        let Pair { fixed, mobile } = stage.pair()?;
        let (sender, receiver) =
            if from == Host::Fixed { (fixed, mobile) } else { (mobile, fixed) };
        std::thread::scope(|scope| {
            let written = scope.spawn(|| write_pattern(&sender, 0, 50_000_000));
            read_pattern(&receiver, 0, 500_000)?;
            abort(receiver)?;
            let error = written.join().expect("no panic").expect_err("nobody reads");
            let error = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            // Which of the two depends on when it looks.
            let reset = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
            stage.say(format!("{from:?} is reset: {}", error.is_some_and(|e| reset.contains(&e))));
            anyhow::Ok(())
        })?;
    }
    for from in Host::BOTH {
        let Pair { fixed, mobile } = stage.pair()?;
        let (sender, receiver) =
            if from == Host::Fixed { (fixed, mobile) } else { (mobile, fixed) };
        write_pattern(&sender, 0, 100_000)?;
        read_pattern(&receiver, 0, 100_000)?;
        abort(sender)?;
        stage.say(format!("reads: {}", outcome(&receiver)));
    }
    Ok(())
}

/// A close while bytes wait to be read is a reset (RFC 2525, 2.17).
fn closed_unread(stage: &Stage<'_>) -> Result<()> {
    let Pair { fixed, mobile } = stage.pair()?;
    write_pattern(&fixed, 0, 10_000)?;
    read_pattern(&mobile, 0, 5_000)?;
    // All of it is there before the close.
    mobile.peek(&mut [0; 5_000]).context("peek")?;
    drop(mobile);
    stage.say(format!("reads: {}", outcome(&fixed)));
    Ok(())
}

fn linger(stage: &Stage<'_>) -> Result<()> {
    // Long enough for all to be acknowledged: the close returns then.
    let Pair { fixed, mobile } = stage.pair()?;
    sockopt::set_socket_linger(&fixed, Some(Duration::from_secs(10))).context("linger")?;
    std::thread::scope(|scope| {
        let closed = scope.spawn(|| {
            let written = write_pattern(&fixed, 0, 300_000);
            drop(fixed);
            written
        });
        read_pattern(&mobile, 0, 300_000)?;
        stage.say(format!("reads: {}", outcome(&mobile)));
        closed.join().expect("no panic")
    })?;
    // Nobody reads: the close returns after a second, and the connection is reset at the end.
    let listener = stage.listen(Host::Mobile, 0, |socket: &OwnedFd| {
        Ok(sockopt::set_socket_recv_buffer_size(socket, 8 << 10)?)
    })?;
    let to = listener.local_addr().context("look up a port")?.to_string();
    let closing = stage.helper(Host::Fixed, &["close", &to])?;
    let mobile = accept(&listener)?;
    let closed = closing.wait_with_output().context("wait for the close")?;
    ensure!(closed.status.success(), "the close: {}", closed.status);
    stage.say(String::from_utf8_lossy(&closed.stdout));
    read_pattern(&mobile, 0, 4_000)?;
    stage.say("the first bytes are there");
    Ok(())
}

/// A process that connects, writes as much as there is room for, and closes. In one of its own:
/// what another thread starts has the socket, too, until it runs its own image, and a close that is
/// not the last returns at once.
pub(crate) fn close(arguments: &[String]) -> Result<()> {
    let [to] = arguments else { bail!("usage: close ADDRESS") };
    let fixed = TcpStream::connect(to).context("connect")?;
    fixed.set_nonblocking(true).context("do not block")?;
    while write_pattern(&fixed, 0, 65_521).is_ok() {}
    fixed.set_nonblocking(false).context("block")?;
    sockopt::set_socket_linger(&fixed, Some(Duration::from_secs(1))).context("linger")?;
    let before = Stopwatch::start();
    drop(fixed);
    print!("the close waited: {}", before.elapsed() >= Duration::from_millis(900));
    Ok(())
}

fn nobody_listens(stage: &Stage<'_>) -> Result<()> {
    for host in Host::BOTH {
        let stream = TcpStream::from(stage.socket(host)?);
        bound(&stream)?;
        let result = rustix::net::connect(&stream, &stage.address(host.other(), 9));
        stage.say(format!("{host:?}: {result:?}"));
    }
    Ok(())
}

/// A connection from port 7003 to a listener.
fn from_port(stage: &Stage<'_>, listener: &TcpListener) -> Result<Pair> {
    let to = listener.local_addr().context("look up a port")?;
    for _ in 0..1_000 {
        let opened = TcpStream::from(stage.socket(Host::Fixed)?);
        bound(&opened)?;
        sockopt::set_socket_reuseaddr(&opened, true)?;
        rustix::net::bind(&opened, &stage.address(Host::Fixed, 7_003)).context("bind")?;
        match rustix::net::connect(&opened, &to) {
            Ok(()) => return stage.accept(listener, Host::Fixed, opened),
            // The last ACK of the connection before is still on its way.
            Err(Errno::ADDRNOTAVAIL) => std::thread::sleep(Duration::from_millis(2)),
            Err(error) => return Err(error).context("connect"),
        }
    }
    bail!("the port does not become free")
}

/// The opener closes last, so that its port is free at once; the other end is in TIME_WAIT and
/// takes the next SYN, whose timestamp is newer.
fn time_wait(stage: &Stage<'_>) -> Result<()> {
    let listener = stage.listen(Host::Mobile, 0, |_| Ok(()))?;
    for _ in 0..6 {
        let pair = from_port(stage, &listener)?;
        stage.bulk_both(&pair, 30_000)?;
        pair.mobile.shutdown(Shutdown::Write).context("end a stream")?;
        stage.say(format!("reads: {}", outcome(&pair.fixed)));
        pair.fixed.shutdown(Shutdown::Write).context("end a stream")?;
        stage.say(format!("reads: {}", outcome(&pair.mobile)));
    }
    Ok(())
}

fn port_after_reset(stage: &Stage<'_>) -> Result<()> {
    let listener = stage.listen(Host::Mobile, 0, |_| Ok(()))?;
    for _ in 0..10 {
        let Pair { fixed, mobile } = from_port(stage, &listener)?;
        write_pattern(&fixed, 0, 20_000)?;
        read_pattern(&mobile, 0, 20_000)?;
        abort(mobile)?;
        stage.say(format!("reads: {}", outcome(&fixed)));
    }
    Ok(())
}

/// To a listener on the same port each time, with resets of both kinds in between.
fn same_port(stage: &Stage<'_>) -> Result<()> {
    for round in 0..8 {
        let listener = stage.listen(Host::Mobile, 7_004, |_| Ok(()))?;
        let socket = stage.socket(Host::Fixed)?;
        let pair = stage.connect_to(&listener, Host::Fixed, socket)?;
        stage.bulk_both(&pair, 10_000 + round)?;
        let Pair { fixed, mobile } = pair;
        abort(if round % 2 == 0 { fixed } else { mobile })?;
        // Closing is not enough: a program that another thread just started holds a copy of the
        // listener until it runs its own image, and the port is in use that long.
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Read).context("stop listening")?;
    }
    Ok(())
}

fn many_short(stage: &Stage<'_>) -> Result<()> {
    for round in 0..24 {
        let opener = Host::BOTH[round % 2];
        let pair = stage.connect(opener, |_| Ok(()))?;
        write_pattern(pair.at(opener), 0, 200)?;
        read_pattern(pair.at(opener.other()), 0, 200)?;
        write_pattern(pair.at(opener.other()), 0, 3_000)?;
        read_pattern(pair.at(opener), 0, 3_000)?;
    }
    stage.say("24 answers arrived");
    Ok(())
}
