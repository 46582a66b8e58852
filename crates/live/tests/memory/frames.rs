//! Frames to packets and back: properties.

use crate::common::{FIXED_MAC, Left, MOBILE_MAC, frame, read};
use bytes::Bytes;
use live::frame::{self, Link, NETWORK_AT, Onward};
use proptest::prelude::*;
use sansio::{Cause, Packet, PacketId, Side};
use wire::tcp::{self, Flags, Seq};

fn header(seq: u32, flags: u16, timestamps: Option<(u32, u32)>) -> tcp::Header {
    let mut header = tcp::Header::new(80, 4_000);
    (header.seq, header.ack, header.flags) = (Seq(seq), Seq(seq / 2), Flags(flags));
    if let Some((value, echo)) = timestamps {
        header.options.push_timestamps(tcp::Timestamps { value, echo }).expect("there is room");
    }
    header
}

fn parse(bytes: &[u8]) -> Packet {
    frame::parse(Bytes::copy_from_slice(bytes), PacketId::FIRST).expect("a valid frame")
}

fn written(packet: &Packet) -> Vec<u8> {
    let link = Link { destination: MOBILE_MAC, source: FIXED_MAC };
    let outgoing = frame::write(packet, Onward::Routed(link)).expect("a TCP packet");
    [outgoing.head.as_bytes(), &outgoing.rest].concat()
}

prop_compose! {
    fn headers()(
        seq in any::<u32>(),
        flags in 0_u16..0x200,
        timestamps in prop::option::of(any::<(u32, u32)>()),
    ) -> tcp::Header {
        header(seq, flags, timestamps)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Kept or written anew, a packet leaves as the same bytes: one hop further, right checksums.
    #[test]
    fn a_packet_written_anew_is_the_packet_that_was_kept(
        header in headers(),
        payload in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let came = frame(Side::WIRED, &header, &payload, Left::Nothing);
        let packet = parse(&came);
        let kept = written(&packet);
        let anew = written(&packet.rewrite(PacketId::FIRST, Cause::LocalRetransmission, |_| {}));
        prop_assert_eq!(&kept, &anew);
        let (datagram, read_header, read_payload) = read(&kept);
        prop_assert_eq!(datagram.ip.hop_limit, 63);
        prop_assert_eq!((read_header, read_payload), (header, payload));
        prop_assert_eq!(&kept[NETWORK_AT + 20..], &came[NETWORK_AT + 20..]);
        let datagram = frame::datagram(&packet).expect("a TCP packet");
        prop_assert_eq!(&datagram[..], &kept[NETWORK_AT..]);
    }

    /// The segments of a super-packet are its bytes, in order, each a valid packet of its own.
    #[test]
    fn the_segments_of_a_super_packet_are_its_bytes_in_order(
        header in headers(),
        payload in prop::collection::vec(any::<u8>(), 1..2_000),
        segment_bytes in 1_u16..700,
    ) {
        let came = frame(Side::WIRED, &header, &payload, Left::Cutting(segment_bytes));
        let packet = parse(&came);
        let mut joined = Vec::new();
        let segments: Vec<Packet> = frame::segments(&packet).collect();
        prop_assert_eq!(segments.len() as u32, packet.segments());
        for (index, segment) in segments.iter().enumerate() {
            let whole = written(&segment.rewrite(PacketId::FIRST, Cause::Original, |_| {}));
            let (_, cut, bytes) = read(&whole);
            prop_assert_eq!(cut.seq, header.seq + joined.len() as u32);
            prop_assert!(bytes.len() <= usize::from(segment_bytes));
            let last = index + 1 == segments.len();
            let mut expected = header.flags;
            if !last {
                expected = expected.without(Flags::FIN.with(Flags::PSH));
            }
            if index > 0 {
                expected = expected.without(Flags::CWR);
            }
            prop_assert_eq!(cut.flags, expected);
            joined.extend(bytes);
        }
        prop_assert_eq!(joined, payload);
    }

    /// A super-packet that nobody touched keeps what the device has to do.
    #[test]
    fn what_is_left_to_the_device_stays_with_the_frame(
        payload in prop::collection::vec(any::<u8>(), 1..2_000),
        segment_bytes in 1_u16..700,
    ) {
        let left = Left::Cutting(segment_bytes);
        let came = frame(Side::WIRED, &header(1, 0x10, None), &payload, left);
        let left = written(&parse(&came));
        prop_assert_eq!(&left[..10], &came[..10]);
        prop_assert_eq!(&left[NETWORK_AT + 20..], &came[NETWORK_AT + 20..]);
    }
}
