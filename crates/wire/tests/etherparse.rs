//! Differential tests: etherparse writes what we read, and reads what we write.

mod strategies;

use core::net::IpAddr;
use etherparse::{IpHeaders, Ipv4Header, Ipv6Header, NetHeaders, PacketHeaders, TransportHeader};
use proptest::prelude::*;
use strategies::{ip_header, payload, tcp_header, udp_header};
use wire::datagram::{self, Checksums, Transport};
use wire::ip::Protocol;
use wire::tcp::{Flags, SackBlock, Seq, TcpOption, Timestamps};
use wire::{ip, tcp, udp};

fn their_ip(ip: &ip::Header) -> IpHeaders {
    let protocol = etherparse::IpNumber(ip.protocol.0);
    match (ip.source, ip.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let (source, destination) = (source.octets(), destination.octets());
            let header = Ipv4Header::new(0, ip.hop_limit, protocol, source, destination).unwrap();
            let header = Ipv4Header {
                dscp: (ip.traffic_class >> 2).try_into().unwrap(),
                ecn: (ip.traffic_class & 0b11).try_into().unwrap(),
                identification: ip.identification,
                dont_fragment: ip.dont_fragment,
                ..header
            };
            IpHeaders::Ipv4(header, Default::default())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = Ipv6Header {
                traffic_class: ip.traffic_class,
                flow_label: ip.flow_label.try_into().unwrap(),
                payload_length: 0,
                next_header: protocol,
                hop_limit: ip.hop_limit,
                source: source.octets(),
                destination: destination.octets(),
            };
            IpHeaders::Ipv6(header, Default::default())
        }
        _ => unreachable!("the strategy makes addresses of one family"),
    }
}

fn our_ip(headers: &NetHeaders) -> ip::Header {
    match headers {
        NetHeaders::Ipv4(header, _) => ip::Header {
            source: IpAddr::from(header.source),
            destination: IpAddr::from(header.destination),
            protocol: Protocol(header.protocol.0),
            hop_limit: header.time_to_live,
            traffic_class: header.dscp.value() << 2 | header.ecn.value(),
            identification: header.identification,
            dont_fragment: header.dont_fragment,
            flow_label: 0,
        },
        NetHeaders::Ipv6(header, _) => ip::Header {
            source: IpAddr::from(header.source),
            destination: IpAddr::from(header.destination),
            protocol: Protocol(header.next_header.0),
            hop_limit: header.hop_limit,
            traffic_class: header.traffic_class,
            identification: 0,
            dont_fragment: true,
            flow_label: header.flow_label.value(),
        },
        NetHeaders::Arp(_) => unreachable!("an IP datagram was parsed"),
    }
}

/// Each bit of ours that is one of theirs; the reserved bits are none.
fn their_tcp(tcp: &tcp::Header) -> etherparse::TcpHeader {
    let (ports, seq) = ((tcp.source_port, tcp.destination_port), tcp.seq.0);
    let mut header = etherparse::TcpHeader::new(ports.0, ports.1, seq, tcp.window);
    header.acknowledgment_number = tcp.ack.0;
    header.urgent_pointer = tcp.urgent;
    header.ns = tcp.flags.contains(Flags::AE);
    header.cwr = tcp.flags.contains(Flags::CWR);
    header.ece = tcp.flags.contains(Flags::ECE);
    header.urg = tcp.flags.contains(Flags::URG);
    header.ack = tcp.flags.contains(Flags::ACK);
    header.psh = tcp.flags.contains(Flags::PSH);
    header.rst = tcp.flags.contains(Flags::RST);
    header.syn = tcp.flags.contains(Flags::SYN);
    header.fin = tcp.flags.contains(Flags::FIN);
    header.set_options_raw(tcp.options.as_bytes()).unwrap();
    header
}

fn without_reserved_bits(tcp: tcp::Header) -> tcp::Header {
    tcp::Header { flags: Flags(tcp.flags.0 & 0x1ff), ..tcp }
}

/// Our view of an option in their words, `None` where they know no such option.
fn in_their_words(option: TcpOption<'_>) -> Option<etherparse::TcpOptionElement> {
    use etherparse::TcpOptionElement as Theirs;
    let pair = |block: SackBlock| (block.start.0, block.end.0);
    Some(match option {
        TcpOption::Nop => Theirs::Noop,
        TcpOption::Mss(mss) => Theirs::MaximumSegmentSize(mss),
        TcpOption::WindowScale(shift) => Theirs::WindowScale(shift),
        TcpOption::SackPermitted => Theirs::SelectiveAcknowledgementPermitted,
        TcpOption::Timestamps(Timestamps { value, echo }) => Theirs::Timestamp(value, echo),
        TcpOption::Sack(mut blocks) => {
            let first = pair(blocks.next()?);
            let mut others = [None; 3];
            for (slot, block) in others.iter_mut().zip(blocks) {
                *slot = Some(pair(block));
            }
            Theirs::SelectiveAcknowledgement(first, others)
        }
        TcpOption::Unknown { .. } => return None,
    })
}

proptest! {
    #[test]
    fn we_read_the_tcp_they_write(ip in ip_header(), tcp in tcp_header(), payload in payload()) {
        let tcp = without_reserved_bits(tcp);
        let mut bytes = Vec::new();
        let builder = etherparse::PacketBuilder::ip(their_ip(&ip)).tcp_header(their_tcp(&tcp));
        builder.write(&mut bytes, &payload).unwrap();
        let parsed = datagram::parse(&bytes, Checksums::Verify).unwrap();
        prop_assert_eq!(parsed.ip, ip);
        prop_assert_eq!(parsed.transport, Transport::Tcp(tcp));
        prop_assert_eq!(&bytes[parsed.payload], &payload[..]);
        // And we write the same.
        let mut ours = Vec::new();
        datagram::emit_tcp(&ip, &tcp, &payload, &mut ours).unwrap();
        prop_assert_eq!(ours, bytes);
    }

    #[test]
    fn they_read_the_tcp_we_write(ip in ip_header(), tcp in tcp_header(), payload in payload()) {
        let tcp = without_reserved_bits(tcp);
        let mut bytes = Vec::new();
        datagram::emit_tcp(&ip, &tcp, &payload, &mut bytes).unwrap();
        let theirs = PacketHeaders::from_ip_slice(&bytes).unwrap();
        let net = theirs.net.unwrap();
        prop_assert_eq!(our_ip(&net), ip);
        let Some(TransportHeader::Tcp(header)) = theirs.transport else { panic!("no TCP") };
        let checksum = match &net {
            NetHeaders::Ipv4(net, _) => {
                prop_assert_eq!(net.header_checksum, net.calc_header_checksum());
                header.calc_checksum_ipv4(net, &payload).unwrap()
            }
            NetHeaders::Ipv6(net, _) => header.calc_checksum_ipv6(net, &payload).unwrap(),
            NetHeaders::Arp(_) => unreachable!("an IP datagram was parsed"),
        };
        prop_assert_eq!(header.checksum, checksum);
        prop_assert_eq!(header, etherparse::TcpHeader { checksum, ..their_tcp(&tcp) });
        prop_assert_eq!(theirs.payload.slice(), &payload[..]);
    }

    #[test]
    fn options_mean_the_same_to_both(tcp in tcp_header()) {
        // Theirs stops at the first option it does not know.
        let known: Vec<_> = tcp.options.iter().map_while(in_their_words).collect();
        let theirs = their_tcp(&tcp);
        let theirs: Vec<_> = theirs.options_iterator().take_while(Result::is_ok).collect();
        let theirs: Vec<_> = theirs.into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(theirs, known);
    }

    #[test]
    fn udp_is_the_same_to_both(ip in ip_header(), udp in udp_header(), payload in payload()) {
        let ip = ip::Header { protocol: Protocol::UDP, ..ip };
        let udp = udp::Header { checksum: udp::Checksum::Present, ..udp };
        let mut bytes = Vec::new();
        let builder = etherparse::PacketBuilder::ip(their_ip(&ip));
        let builder = builder.udp(udp.source_port, udp.destination_port);
        builder.write(&mut bytes, &payload).unwrap();
        let parsed = datagram::parse(&bytes, Checksums::Verify).unwrap();
        prop_assert_eq!(parsed.ip, ip);
        prop_assert_eq!(parsed.transport, Transport::Udp(udp));
        prop_assert_eq!(&bytes[parsed.payload], &payload[..]);
        let mut ours = Vec::new();
        datagram::emit_udp(&ip, &udp, &payload, &mut ours).unwrap();
        prop_assert_eq!(ours, bytes);
    }
}

#[test]
fn four_sack_blocks_and_every_known_option_mean_the_same_to_both() {
    let block = |start| SackBlock { start: Seq(start), end: Seq(start + 10) };
    let mut sack = tcp::Options::default();
    assert_eq!(sack.push_sack(&[block(1), block(20), block(40), block(u32::MAX - 10)]), 4);
    let mut syn = tcp::Options::default();
    syn.push(&[tcp::kind::MSS, 4, 5, 180]).unwrap();
    syn.push(&[tcp::kind::SACK_PERMITTED, 2]).unwrap();
    syn.push(&[tcp::kind::WINDOW_SCALE, 3, 7]).unwrap();
    syn.push_timestamps(Timestamps { value: 1, echo: 2 }).unwrap();
    for (options, count) in [(sack, 3), (syn, 6)] {
        let tcp = tcp::Header { options, ..tcp::Header::new(1, 2) };
        let theirs: Vec<_> = their_tcp(&tcp).options_iterator().map(Result::unwrap).collect();
        let ours: Vec<_> = tcp.options.iter().filter_map(in_their_words).collect();
        assert_eq!(ours, theirs);
        assert_eq!(ours.len(), count);
    }
}
