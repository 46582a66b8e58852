//! What the hosts negotiate in their SYNs, and what signs their segments.

use super::Exchange;
use crate::net::{Host, Net};
use crate::stage::{Pair, Stage, TCP, bound, info, or_lacking};
use anyhow::{Context, Result, ensure};
use live::sys::socket_option;
use rustix::fd::OwnedFd;
use rustix::net::SendFlags;
use std::net::TcpStream;

const SACK: &str = "net/ipv4/tcp_sack";
const TIMESTAMPS: &str = "net/ipv4/tcp_timestamps";
const SCALING: &str = "net/ipv4/tcp_window_scaling";

pub(super) const ALL: &[Exchange] = &[
    Exchange::new("every option", bulk_both_ways),
    Exchange::new("no SACK", bulk_both_ways).with(&[(SACK, "0")]),
    Exchange::new("no timestamps", bulk_both_ways).with(&[(TIMESTAMPS, "0")]),
    Exchange::new("no window scale", bulk_both_ways).with(&[(SCALING, "0")]),
    Exchange::new("no SACK, no timestamps", bulk_both_ways).with(&[(SACK, "0"), (TIMESTAMPS, "0")]),
    Exchange::new("no SACK, no scale", bulk_both_ways).with(&[(SACK, "0"), (SCALING, "0")]),
    Exchange::new("no timestamps, no scale", bulk_both_ways)
        .with(&[(TIMESTAMPS, "0"), (SCALING, "0")]),
    Exchange::new("no option but MSS", bulk_both_ways).with(&[
        (SACK, "0"),
        (TIMESTAMPS, "0"),
        (SCALING, "0"),
    ]),
    Exchange::new("timestamps without offset", bulk_both_ways).with(&[(TIMESTAMPS, "2")]),
    Exchange::new("no D-SACK", bulk_both_ways).with(&[("net/ipv4/tcp_dsack", "0")]),
    Exchange::new("IPv6", bulk_both_ways).v6(),
    Exchange::new("IPv6 without SACK", bulk_both_ways).with(&[(SACK, "0")]).v6(),
    Exchange::new("segments of 88 bytes", tiny_segments),
    Exchange::new("data in the SYN (Fast Open)", fast_open)
        .with(&[("net/ipv4/tcp_fastopen", "3")])
        .clean_only(),
    Exchange::new("MD5 signatures", md5),
    Exchange::new("TCP-AO", authentication),
    Exchange::new("Multipath TCP", multipath),
];

/// 300 kB each way, at once, opened from each side; what was negotiated.
fn bulk_both_ways(stage: &Stage<'_>) -> Result<()> {
    for opener in Host::BOTH {
        let pair = stage.connect(opener, |_| Ok(()))?;
        stage.bulk_both(&pair, 300_000)?;
        stage.facts(&pair)?;
        stage.close(pair)?;
    }
    Ok(())
}

fn tiny_segments(stage: &Stage<'_>) -> Result<()> {
    // TCP_MAXSEG of linux/tcp.h; 88 bytes are the least that Linux takes.
    let small = |socket: &OwnedFd| socket_option::set(socket, TCP, 2, &88_u32.to_ne_bytes());
    let pair = stage.connect(Host::Fixed, small)?;
    stage.bulk_both(&pair, 30_000)?;
    stage.facts(&pair)?;
    stage.close(pair)
}

/// The first connection asks for a cookie, the second one uses it.
fn fast_open(stage: &Stage<'_>) -> Result<()> {
    // TCP_FASTOPEN of linux/tcp.h: so many may wait.
    let open = |socket: &OwnedFd| socket_option::set(socket, TCP, 23, &5_u32.to_ne_bytes());
    let listener = stage.listen(Host::Mobile, 0, open)?;
    let to = listener.local_addr().context("look up a port")?;
    for _ in 0..2 {
        let opened = TcpStream::from(stage.socket(Host::Fixed)?);
        bound(&opened)?;
        let early = [b"early data".as_slice(), &[b'.'; 300]].concat();
        // MSG_FASTOPEN of linux/socket.h: connect and send.
        let flags = SendFlags::from_bits_retain(0x2000_0000);
        let sent = rustix::net::sendto(&opened, &early, flags, &to).context("connect with data")?;
        ensure!(sent == early.len(), "{sent} bytes of {}", early.len());
        let pair = stage.accept(&listener, Host::Fixed, opened)?;
        let mut received = vec![0; early.len()];
        std::io::Read::read_exact(&mut &pair.mobile, &mut received).context("read")?;
        stage.say(format!("early data intact: {}", received == early));
        // TCPI_OPT_SYN_DATA of linux/tcp.h.
        let in_syn = |stream| Ok::<_, anyhow::Error>(info(stream)?[5] & 32 != 0);
        stage.say(format!("in the SYN: {} {}", in_syn(&pair.fixed)?, in_syn(&pair.mobile)?));
        stage.bulk_both(&pair, 50_000)?;
        stage.close(pair)?;
    }
    Ok(())
}

/// struct sockaddr_storage with an IPv4 address, any port.
fn storage(address: std::net::IpAddr) -> Vec<u8> {
    let std::net::IpAddr::V4(address) = address else { unreachable!("these are IPv4 exchanges") };
    let mut bytes = vec![0; 128];
    // AF_INET of linux/socket.h.
    bytes[..2].copy_from_slice(&2_u16.to_ne_bytes());
    bytes[4..8].copy_from_slice(&address.octets());
    bytes
}

const KEY: &[u8] = b"lasthop";

/// A pair whose sockets have an option each that names the other one's address.
fn signed(stage: &Stage<'_>, option: i32, value: impl Fn(Host) -> Vec<u8>) -> Result<Pair> {
    let socket = stage.socket(Host::Mobile)?;
    socket_option::set(&socket, TCP, option, &value(Host::Fixed))?;
    drop(socket);
    let by_host = |host: Host| {
        let value = value(host.other());
        move |socket: &OwnedFd| socket_option::set(socket, TCP, option, &value)
    };
    let listener = stage.listen(Host::Mobile, 0, by_host(Host::Mobile))?;
    let socket = stage.socket(Host::Fixed)?;
    by_host(Host::Fixed)(&socket)?;
    stage.connect_to(&listener, Host::Fixed, socket)
}

fn md5(stage: &Stage<'_>) -> Result<()> {
    // struct tcp_md5sig of linux/tcp.h: address, flags, prefix, length of the key, device, key.
    let value = |peer: Host| {
        let mut bytes = storage(Net::address(peer, stage.family));
        bytes.extend([0, 0]);
        bytes.extend((KEY.len() as u16).to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(KEY);
        bytes.resize(128 + 8 + 80, 0);
        bytes
    };
    // TCP_MD5SIG of linux/tcp.h.
    let pair = or_lacking(signed(stage, 14, value), "MD5 signatures (CONFIG_TCP_MD5SIG)")?;
    stage.bulk_both(&pair, 300_000)?;
    stage.facts(&pair)?;
    stage.close(pair)
}

fn authentication(stage: &Stage<'_>) -> Result<()> {
    // struct tcp_ao_add of linux/tcp.h: address, algorithm, device, flags, reserved, prefix, key
    // numbers, length of the MAC, key flags, length of the key, key.
    let value = |peer: Host| {
        let mut bytes = storage(Net::address(peer, stage.family));
        bytes.extend(b"hmac(sha1)");
        bytes.resize(128 + 64 + 4, 0);
        bytes.extend(3_u32.to_ne_bytes());
        bytes.extend([0, 0, 32, 100, 100, 12, 0, KEY.len() as u8]);
        bytes.extend(KEY);
        bytes.resize(288, 0);
        bytes
    };
    // TCP_AO_ADD_KEY of linux/tcp.h. A listener takes no current key.
    let listening = |peer: Host| {
        let mut bytes = value(peer);
        bytes[196..200].fill(0);
        bytes
    };
    let by_host = |peer| if peer == Host::Fixed { listening(peer) } else { value(peer) };
    let pair = or_lacking(signed(stage, 38, by_host), "TCP-AO (CONFIG_TCP_AO)")?;
    stage.bulk_both(&pair, 300_000)?;
    stage.facts(&pair)?;
    stage.close(pair)
}

fn multipath(stage: &Stage<'_>) -> Result<()> {
    let protocol = rustix::net::ipproto::MPTCP;
    let socket = stage.socket_of(Host::Fixed, protocol);
    or_lacking(socket, "Multipath TCP (CONFIG_MPTCP)")?;
    let pair = stage.connect_of(Host::Fixed, protocol, |_| Ok(()))?;
    stage.bulk_both(&pair, 300_000)?;
    // MPTCP_INFO of linux/mptcp.h, flags: whether it fell back to TCP.
    for host in Host::BOTH {
        let info = socket_option::get(pair.at(host), 284, 1, (&[], 128))?;
        let flags = info.get(8..12).and_then(|bytes| bytes.first_chunk());
        let flags = flags.map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        stage.say(format!("{host:?}: fell back to TCP: {}", flags & 1 != 0));
    }
    stage.close(pair)
}
