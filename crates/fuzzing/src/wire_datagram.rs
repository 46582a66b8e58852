//! Bytes as they come from a link, read as everything there is.
//!
//! Invariants: nothing panics; what a parser accepts, its emitter writes back byte for byte; the
//! length of a datagram is exact; a checksum updated by RFC 1624 is the one computed anew; writing
//! timestamps in place changes nothing else.

use wire::checksum::{Change, Checksums, update_word};
use wire::datagram::{self, Datagram, Reason, Transport};
use wire::ethernet::{self, EtherType};
use wire::tcp::{Options, Timestamps};
use wire::{arp, icmp, ip, ipv4, ipv6, tcp, udp};

/// Reads `bytes` as a frame, a datagram, a message, a header and a list of options.
///
/// # Panics
/// If an invariant breaks.
pub fn wire_datagram(bytes: &[u8]) {
    for checksums in [Checksums::Verify, Checksums::Trust] {
        read_datagram(bytes, checksums);
        read_ipv4(bytes, checksums);
    }
    read_link(bytes);
    read_ipv6(bytes);
    read_options(bytes);
    let _ = (tcp::Header::parse(bytes), udp::Header::parse(bytes));
    if let Ok(quoted) = icmp::Quoted::parse(bytes) {
        assert!(quoted.transport.len() <= bytes.len());
        let _ = (quoted.ports(), quoted.seq());
    }
}

fn read_datagram(bytes: &[u8], checksums: Checksums) {
    let Ok(datagram) = datagram::parse(bytes, checksums) else { return };
    let end = datagram.payload.end;
    assert!(datagram.payload.start <= end && end <= bytes.len(), "the payload lies within");
    assert_eq!(datagram::parse(&bytes[..end], checksums).as_ref(), Ok(&datagram), "less padding");
    assert!(datagram::parse(&bytes[..end - 1], checksums).is_err(), "a byte is missing");
    let payload = &bytes[datagram.payload.clone()];
    if let Transport::Opaque(_) = datagram.transport {
        return read_message(&datagram, payload, checksums);
    }
    let again = emitted(&datagram, payload);
    if checksums == Checksums::Verify {
        assert_eq!(again, bytes[..end], "written back byte for byte");
    }
    let reread = datagram::parse(&again, Checksums::Verify);
    assert_eq!(reread, Ok(datagram.clone()), "what is written can be read");
    update_window(&datagram, payload, &again);
}

fn emitted(datagram: &Datagram, payload: &[u8]) -> Vec<u8> {
    let mut again = Vec::new();
    let done = match &datagram.transport {
        Transport::Tcp(tcp) => datagram::emit_tcp(&datagram.ip, tcp, payload, &mut again),
        Transport::Udp(udp) => datagram::emit_udp(&datagram.ip, udp, payload, &mut again),
        Transport::Opaque(_) => datagram::emit(&datagram.ip, payload, &mut again),
    };
    assert_eq!(done, Ok(()), "what was read fits");
    again
}

/// Another window in the TCP header: the checksum by RFC 1624 and the one computed anew agree.
fn update_window(datagram: &Datagram, payload: &[u8], before: &[u8]) {
    let Transport::Tcp(tcp) = datagram.transport else { return };
    let changed = tcp::Header { window: !tcp.window, ..tcp };
    let after =
        emitted(&Datagram { transport: Transport::Tcp(changed), ..datagram.clone() }, payload);
    let at = datagram.ip.bytes() as usize + 16;
    let checksum = |of: &[u8]| u16::from_be_bytes([of[at], of[at + 1]]);
    let change = Change { old: tcp.window, new: changed.window };
    assert_eq!(update_word(checksum(before), change), checksum(&after), "RFC 1624");
}

/// A datagram that engines pass on: its ICMP message, if it is one, and what that quotes.
fn read_message(datagram: &Datagram, payload: &[u8], checksums: Checksums) {
    let Ok(message) = icmp::Message::parse(&datagram.ip, payload, checksums) else { return };
    let mut again = Vec::new();
    message.emit(&datagram.ip, &mut again);
    assert_eq!(again[..2], payload[..2]);
    assert_eq!(again[4..], payload[4..]);
    let reread = icmp::Message::parse(&datagram.ip, &again, Checksums::Verify);
    assert_eq!(reread, Ok(message), "what is written can be read");
    match message.view() {
        icmp::View::Unreachable { quoted, .. }
        | icmp::View::TooBig { quoted, .. }
        | icmp::View::TimeExceeded { quoted, .. } => {
            if let Ok(quoted) = icmp::Quoted::parse(quoted) {
                let _ = (quoted.ports(), quoted.seq());
            }
        }
        icmp::View::EchoRequest(echo) | icmp::View::EchoReply(echo) => {
            assert_eq!(echo.data, &payload[8..]);
        }
        icmp::View::Other => {}
    }
    if datagram.transport == Transport::Opaque(Reason::OtherProtocol) {
        let whole = emitted(datagram, payload);
        assert_eq!(datagram::parse(&whole, Checksums::Verify).as_ref(), Ok(datagram));
    }
}

fn read_ipv4(bytes: &[u8], checksums: Checksums) {
    let Ok(header) = ipv4::Header::parse(bytes, checksums) else { return };
    let _ = header.payload(bytes.len());
    let mut again = Vec::new();
    header.emit(&mut again);
    // The checksum, which the emitter computes, stands at 10 and 11.
    assert_eq!(again[..10], bytes[..10]);
    assert_eq!(again[12..], bytes[12..header.bytes()]);
    assert_eq!(ipv4::Header::parse(&again, Checksums::Verify), Ok(header));
}

fn read_ipv6(bytes: &[u8]) {
    if let Ok(header) = ipv6::Header::parse(bytes) {
        let mut again = Vec::new();
        header.emit(&mut again);
        assert_eq!(again, bytes[..ipv6::Header::BYTES]);
    }
    if let Some((&protocol, rest)) = bytes.split_first()
        && let Ok(upper) = ipv6::upper_layer(ip::Protocol(protocol), rest)
    {
        assert!(upper.at <= rest.len());
    }
}

/// A frame, and the datagram or ARP packet in it.
fn read_link(bytes: &[u8]) {
    if let Ok(packet) = arp::Packet::parse(bytes) {
        let mut again = Vec::new();
        packet.emit(&mut again);
        assert_eq!(again, bytes[..arp::Packet::BYTES]);
    }
    let Ok((header, length)) = ethernet::Header::parse(bytes) else { return };
    let mut again = Vec::new();
    header.emit(&mut again);
    assert_eq!(again, bytes[..length]);
    let network = &bytes[length..];
    match header.ether_type {
        EtherType::IPV4 | EtherType::IPV6 => read_datagram(network, Checksums::Verify),
        EtherType::ARP => {
            let _ = arp::Packet::parse(network);
        }
        _ => {}
    }
}

fn read_options(bytes: &[u8]) {
    let Ok(options) = Options::from_bytes(bytes) else {
        return assert!(bytes.len() > Options::BYTES_MAX, "only too many are refused");
    };
    assert_eq!(options.as_bytes(), bytes);
    let _ = (options.validate(), options.sack_blocks().count(), options.sack_permitted());
    let _ = (options.mss(), options.window_scale());
    let written = Timestamps { value: 0x0102_0304, echo: 0x0506_0708 };
    let mut changed = options;
    assert_eq!(changed.set_timestamps(written), options.timestamps().is_some());
    if let Some(timestamps) = options.timestamps() {
        assert_eq!(changed.timestamps(), Some(written));
        assert!(changed.set_timestamps(timestamps));
        assert_eq!(changed, options, "nothing else changed");
    }
}
