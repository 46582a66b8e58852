//! Consecutive segments of one flow leave as one super-packet: what a sending host's TCP hands to
//! its device (segmentation offload), and what the kernel makes of frames that arrive before it
//! forwards them (generic receive offload). The next device cuts it again, or the kernel in its
//! place.
//!
//! Only frames are joined that come out of that again byte for byte, so the rules are those by
//! which Linux cuts (tcp_gso_segment, inet_gso_segment): sequence numbers and IPv4
//! identifications count up, PSH comes last, all else is copied, and checksums are made anew.

use crate::frame::{NETWORK_AT, Virtio};
use crate::sys::packet_socket::{Head, JOINED_MAX, Joined, Outgoing};
use wire::checksum::Sum;
use wire::tcp::Flags;

/// What a super-packet may be at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of each frame's datagram: the device's MTU, which nobody else would see to.
    pub mtu: usize,
    /// Bytes of its own datagram, up to [`SUPER_PACKET_BYTES_MAX`].
    pub bytes: usize,
}

/// What the length field of a datagram can say.
pub const SUPER_PACKET_BYTES_MAX: usize = u16::MAX as usize;

/// Finds what can be joined, in order.
pub fn join(frames: &[Outgoing], limits: Limits, into: &mut Vec<Joined>) {
    let mut first = 0;
    while first < frames.len() {
        let segment = Segment::of(&frames[first]);
        let segment = segment.filter(|segment| segment.datagram_bytes() <= limits.mtu);
        first += segment.map_or(1, |segment| join_to(&segment, (first, frames), limits, into));
    }
}

/// Joins a segment with those after it that allow it; returns how many they are with it.
fn join_to(
    segment: &Segment,
    (first, frames): (usize, &[Outgoing]),
    limits: Limits,
    into: &mut Vec<Joined>,
) -> usize {
    let (mut count, mut last, mut bytes) = (1, *segment, segment.datagram_bytes());
    while count < JOINED_MAX
        && let Some(next) = frames.get(first + count).and_then(Segment::of)
        && next.follows(&last, segment.payload)
        && bytes + next.payload <= limits.bytes.min(SUPER_PACKET_BYTES_MAX)
    {
        bytes += next.payload;
        (count, last) = (count + 1, next);
    }
    if count > 1 {
        let head = segment.head(bytes, last.flags());
        into.push(Joined { first, count, headers: segment.length, head });
    }
    count
}

/// A TCP segment that could be part of a super-packet, by its headers.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Virtio prefix, Ethernet, IP, TCP.
    bytes: [u8; Head::BYTES_MAX],
    /// So many of them.
    length: usize,
    tcp_at: usize,
    /// Bytes behind the headers.
    payload: usize,
}

/// Places in the prefix.
const PREFIX_CHECKSUM_START: usize = 6;
const PREFIX_CHECKSUM_OFFSET: usize = 8;
/// Places in an IPv4 header, after all that stands before it.
const V4_LENGTH: usize = NETWORK_AT + 2;
const V4_IDENTIFICATION: usize = NETWORK_AT + 4;
const V4_FRAGMENT: usize = NETWORK_AT + 6;
const V4_CHECKSUM: usize = NETWORK_AT + 10;
const V4_BYTES: usize = 20;
/// The same for IPv6.
const V6_LENGTH: usize = NETWORK_AT + 4;
const V6_BYTES: usize = 40;
/// Places in a TCP header.
const SEQ: usize = 4;
const FLAGS: usize = 12;
const CHECKSUM: usize = 16;
const URGENT: usize = 18;
const TCP_BYTES: usize = 20;

const TCP: u8 = 6;
const DONT_FRAGMENT: u16 = 0x4000;
const ACK: u16 = Flags::ACK.0;
const ACK_PSH: u16 = Flags::ACK.with(Flags::PSH).0;

impl Segment {
    fn of(frame: &Outgoing) -> Option<Segment> {
        let (length, head) = (usize::from(frame.headers), frame.head.as_bytes());
        let more = length.checked_sub(head.len())?;
        let mut bytes = [0; Head::BYTES_MAX];
        bytes[..head.len()].copy_from_slice(head);
        bytes.get_mut(head.len()..length)?.copy_from_slice(frame.rest.get(..more)?);
        let tcp_at = NETWORK_AT + if bytes[NETWORK_AT] == 0x45 { V4_BYTES } else { V6_BYTES };
        let segment = Segment { bytes, length, tcp_at, payload: frame.rest.len() - more };
        let joins = segment.payload > 0
            && length >= tcp_at + TCP_BYTES
            && segment.prefix_joins()
            && segment.ip_joins()
            && segment.tcp_joins();
        joins.then_some(segment)
    }

    fn is_v4(&self) -> bool {
        self.tcp_at == NETWORK_AT + V4_BYTES
    }

    fn datagram_bytes(&self) -> usize {
        self.length - NETWORK_AT + self.payload
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn set(&mut self, at: usize, word: u16) {
        self.bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
    }

    /// Without the data offset.
    fn flags(&self) -> u16 {
        self.word(self.tcp_at + FLAGS) & 0xfff
    }

    /// True if its TCP checksum is still to be completed.
    fn is_open(&self) -> bool {
        self.bytes[0] == Virtio::NEEDS_CHECKSUM
    }

    /// Nothing is left to do, or the TCP checksum alone.
    fn prefix_joins(&self) -> bool {
        // In the machine's own byte order.
        let number = |at: usize| u16::from_ne_bytes([self.bytes[at], self.bytes[at + 1]]).into();
        let place: [usize; 2] = [PREFIX_CHECKSUM_START, PREFIX_CHECKSUM_OFFSET].map(number);
        let open = place == [self.tcp_at - Virtio::BYTES, CHECKSUM];
        self.bytes[1] == 0 && (self.bytes[0] == 0 || self.is_open() && open)
    }

    /// No options, no fragment, nothing behind the datagram.
    fn ip_joins(&self) -> bool {
        let network = &self.bytes[NETWORK_AT..];
        if self.is_v4() {
            return network[9] == TCP
                && usize::from(self.word(V4_LENGTH)) == self.datagram_bytes()
                && self.word(V4_FRAGMENT) & !DONT_FRAGMENT == 0
                && self.word(V4_CHECKSUM) != 0xffff;
        }
        network[0] >> 4 == 6
            && network[6] == TCP
            && usize::from(self.word(V6_LENGTH)) + V6_BYTES == self.datagram_bytes()
    }

    /// Plain data. Of the two forms of a checksum that is zero, the kernel has its own choice.
    fn tcp_joins(&self) -> bool {
        let checksum = self.word(self.tcp_at + CHECKSUM);
        usize::from(self.bytes[self.tcp_at + FLAGS] >> 4) * 4 == self.length - self.tcp_at
            && [ACK, ACK_PSH].contains(&self.flags())
            && self.word(self.tcp_at + URGENT) == 0
            && (self.is_open() || ![0, 0xffff].contains(&checksum))
    }

    /// True if it is what comes after `last` when a super-packet with `step` bytes of payload in
    /// each segment is cut.
    fn follows(&self, last: &Segment, step: usize) -> bool {
        if last.flags() != ACK || last.payload != step || self.payload > step {
            return false;
        }
        let mut expected = *last;
        let seq_at = self.tcp_at + SEQ;
        let seq = last.bytes[seq_at..].first_chunk().map_or(0, |seq| u32::from_be_bytes(*seq));
        let seq = seq.wrapping_add(step as u32).to_be_bytes();
        expected.bytes[seq_at..seq_at + 4].copy_from_slice(&seq);
        if self.is_v4() {
            expected.set(V4_IDENTIFICATION, last.word(V4_IDENTIFICATION).wrapping_add(1));
            expected.set(V4_LENGTH, self.word(V4_LENGTH));
            expected.set(V4_CHECKSUM, self.word(V4_CHECKSUM));
        } else {
            expected.set(V6_LENGTH, self.word(V6_LENGTH));
        }
        for at in [FLAGS, CHECKSUM] {
            expected.set(self.tcp_at + at, self.word(self.tcp_at + at));
        }
        expected.length == self.length && expected.bytes == self.bytes
    }

    /// The head of a super-packet that begins with this segment and has so many bytes, with the
    /// last segment's flags.
    fn head(mut self, bytes: usize, flags: u16) -> Head {
        let network = &self.bytes[NETWORK_AT..self.tcp_at];
        let addresses = if self.is_v4() { &network[12..] } else { &network[8..] };
        let tcp_bytes = bytes - (self.tcp_at - NETWORK_AT);
        let open = Sum::default()
            .add_word(u16::from(TCP))
            .add_double_word(tcp_bytes as u32)
            .add_bytes(addresses);
        let kind = if self.is_v4() { Virtio::TCP_V4 } else { Virtio::TCP_V6 };
        // The sum of the pseudo-header stands where its checksum will be (virtio 1.2, 5.1.6.2).
        self.set(self.tcp_at + CHECKSUM, !open.checksum());
        let offset = self.word(self.tcp_at + FLAGS) & !0xfff;
        self.set(self.tcp_at + FLAGS, offset | flags);
        if self.is_v4() {
            self.set(V4_LENGTH, bytes as u16);
            self.set(V4_CHECKSUM, 0);
            let sum = Sum::default().add_bytes(&self.bytes[NETWORK_AT..self.tcp_at]);
            self.set(V4_CHECKSUM, sum.checksum());
        } else {
            self.set(V6_LENGTH, (bytes - V6_BYTES) as u16);
        }
        let prefix = Virtio::super_packet(kind, (self.length, self.tcp_at), self.payload);
        self.bytes[..Virtio::BYTES].copy_from_slice(&prefix);
        let mut head = Head::EMPTY;
        head.push(&self.bytes[..self.length]);
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Link, Onward, parse, write};
    use sansio::PacketId;
    use std::net::Ipv4Addr;
    use wire::ethernet::Mac;
    use wire::tcp::{self, Seq};
    use wire::{datagram, ip};

    const LIMITS: Limits = Limits { mtu: 1_500, bytes: SUPER_PACKET_BYTES_MAX };

    /// So many segments of a flow, with 100 bytes each, as a router puts them up; `spoil` has each
    /// frame before it is parsed.
    fn segments(count: u32, spoil: impl Fn(u32, &mut Vec<u8>)) -> Vec<Outgoing> {
        let [from, to] = [1, 2].map(|last| Ipv4Addr::new(10, 0, 0, last).into());
        let link = Link { destination: Mac([2; 6]), source: Mac([4; 6]) };
        let segment = |index: u32| {
            let mut ip = ip::Header::new(from, to, ip::Protocol::TCP);
            ip.identification = index as u16;
            let mut header = tcp::Header::new(1, 2);
            (header.seq, header.flags) = (Seq(index * 100), Flags::ACK);
            let mut bytes = vec![0; NETWORK_AT];
            bytes[22] = 8;
            datagram::emit_tcp(&ip, &header, &[7; 100], &mut bytes).expect("it fits");
            spoil(index, &mut bytes);
            let packet = parse(bytes.into(), PacketId::FIRST).expect("a router would forward it");
            write(&packet, Onward::Routed(link)).expect("it can be written")
        };
        (0..count).map(segment).collect()
    }

    fn runs(frames: &[Outgoing], limits: Limits) -> Vec<(usize, usize)> {
        let mut joined = Vec::new();
        join(frames, limits, &mut joined);
        joined.iter().map(|joined| (joined.first, joined.count)).collect()
    }

    #[test]
    fn a_super_packet_keeps_within_its_limits() {
        let frames = segments(150, |_, _| {});
        assert_eq!(runs(&frames, LIMITS), [(0, 64), (64, 64), (128, 22)]);
        assert_eq!(runs(&frames[..9], Limits { bytes: 439, ..LIMITS }), [(0, 3), (3, 3), (6, 3)]);
        assert_eq!(runs(&frames[..8], Limits { bytes: 440, ..LIMITS }), [(0, 4), (4, 4)]);
        // As slow a radio that one frame takes longer.
        assert_eq!(runs(&frames, Limits { bytes: 139, ..LIMITS }), []);
        assert_eq!(runs(&frames, Limits { mtu: 139, ..LIMITS }), []);
        assert_eq!(runs(&frames[..4], Limits { mtu: 140, ..LIMITS }), [(0, 4)]);
    }

    #[test]
    fn a_segment_with_a_wrong_checksum_stays_alone_and_wrong() {
        let frames = segments(6, |index, bytes| {
            if index == 2 {
                *bytes.last_mut().expect("a byte") ^= 1;
            }
        });
        assert_eq!(runs(&frames, LIMITS), [(0, 2), (3, 3)]);
    }

    #[test]
    fn padding_behind_a_datagram_is_not_joined() {
        let frames = segments(4, |index, bytes| {
            if index == 1 {
                bytes.extend([0; 6]);
            }
        });
        assert_eq!(runs(&frames, LIMITS), [(2, 2)]);
    }
}
