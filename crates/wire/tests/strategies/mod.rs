//! Random headers that cover all that may stand on the wire.

#![allow(dead_code, clippy::allow_attributes, reason = "each test uses some of them")]

pub(crate) mod mobility;

use core::net::IpAddr;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::tcp::{self, Flags, Options, SackBlock, Seq, Timestamps, kind};
use wire::{ip, udp};

pub(crate) fn ip_header() -> impl Strategy<Value = ip::Header> {
    let addresses = prop_oneof![
        any::<[[u8; 4]; 2]>().prop_map(|[a, b]| [IpAddr::from(a), IpAddr::from(b)]),
        any::<[[u8; 16]; 2]>().prop_map(|[a, b]| [IpAddr::from(a), IpAddr::from(b)]),
    ];
    let fields = (any::<[u8; 2]>(), any::<u16>(), any::<bool>(), 0..=ip::FLOW_LABEL_MAX);
    (addresses, fields).prop_map(|([source, destination], fields)| {
        let ([hop_limit, traffic_class], identification, dont_fragment, flow_label) = fields;
        let header = ip::Header::new(source, destination, ip::Protocol::TCP);
        let header = ip::Header { hop_limit, traffic_class, ..header };
        match header.version() {
            ip::Version::V4 => ip::Header { identification, dont_fragment, ..header },
            ip::Version::V6 => ip::Header { flow_label, ..header },
        }
    })
}

#[derive(Clone, Debug)]
enum Element {
    Bytes(Vec<u8>),
    Timestamps(Timestamps),
    Sack(Vec<SackBlock>),
}

fn element() -> impl Strategy<Value = Element> {
    let block = any::<[u32; 2]>().prop_map(|[a, b]| SackBlock { start: Seq(a), end: Seq(b) });
    let unknown_kind = any::<u8>().prop_filter("a kind with a length", |&kind| kind > kind::NOP);
    prop_oneof![
        Just(Element::Bytes(vec![kind::NOP])),
        any::<[u8; 2]>().prop_map(|[a, b]| Element::Bytes(vec![kind::MSS, 4, a, b])),
        any::<u8>().prop_map(|shift| Element::Bytes(vec![kind::WINDOW_SCALE, 3, shift])),
        Just(Element::Bytes(vec![kind::SACK_PERMITTED, 2])),
        any::<[u32; 2]>().prop_map(|[value, echo]| Element::Timestamps(Timestamps { value, echo })),
        vec(block, 1..=4).prop_map(Element::Sack),
        (unknown_kind, vec(any::<u8>(), 0..12)).prop_map(|(kind, data)| {
            Element::Bytes([vec![kind, data.len() as u8 + 2], data].concat())
        }),
    ]
}

/// Options of every kind, as many as fit, padded to what stands on the wire.
fn options() -> impl Strategy<Value = Options> {
    vec(element(), 0..6).prop_map(|elements| {
        let mut options = Options::default();
        for element in elements {
            // What does not fit any more is left out.
            let _ = match element {
                Element::Bytes(bytes) => options.push(&bytes).is_ok(),
                Element::Timestamps(timestamps) => options.push_timestamps(timestamps).is_ok(),
                Element::Sack(blocks) => options.push_sack(&blocks) > 0,
            };
        }
        while !options.as_bytes().len().is_multiple_of(4) {
            options.push(&[kind::END]).expect("40 is a multiple of four");
        }
        options
    })
}

pub(crate) fn tcp_header() -> impl Strategy<Value = tcp::Header> {
    let numbers = (any::<[u16; 4]>(), any::<[u32; 2]>(), 0..0x1000_u16);
    (numbers, options()).prop_map(|((words, [seq, ack], flags), options)| tcp::Header {
        source_port: words[0],
        destination_port: words[1],
        seq: Seq(seq),
        ack: Seq(ack),
        flags: Flags(flags),
        window: words[2],
        urgent: words[3],
        options,
    })
}

pub(crate) fn udp_header() -> impl Strategy<Value = udp::Header> {
    let checksum = prop_oneof![Just(udp::Checksum::Present), Just(udp::Checksum::Absent)];
    (any::<[u16; 2]>(), checksum).prop_map(|([source_port, destination_port], checksum)| {
        udp::Header { source_port, destination_port, checksum }
    })
}

pub(crate) fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..64), vec(any::<u8>(), 0..1500)]
}
