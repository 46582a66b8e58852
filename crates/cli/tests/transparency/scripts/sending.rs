//! The kernel sends, the raw end answers by hand.

use super::Script;
use super::player::{ACK, NO_SACK, PSH, Player, Segment, USUAL};
use anyhow::Result;
use wire::tcp::Flags;

pub(super) const ALL: &[Script] = &[
    Script::new("acknowledged in order", in_order),
    Script::new("three duplicates without SACK", |p| duplicates(p, NO_SACK)),
    Script::new("fast retransmit by SACK", fast_retransmit),
    Script::new("fast retransmit after ten segments", |p| after(p, 10)),
    Script::new("fast retransmit after forty segments", |p| after(p, 40)).helped(),
    Script::new("limited transmit", limited_transmit),
    Script::new("reordered by one, then all arrives", reordered),
    Script::new("undone by D-SACK", undone),
    Script::new("partial ACKs without SACK", partial),
    Script::new("two holes", two_holes),
    Script::new("SACK blocks taken back", reneged),
    Script::new("one segment and three duplicates", tiny),
    Script::new("two segments, the second arrives", tail),
    Script::new("never acknowledged", timeout),
    Script::new("acknowledged after the first timeout", late),
    Script::new("tail loss probe", tail_probe),
    Script::new("zero window, opened after two probes", zero_window),
    Script::new("a window that shrinks", shrunk),
    Script::new("a window of single segments", silly),
    Script::new("ECN echoes", ecn_echo),
    Script::new("ACKs of what was never sent", ack_of_nothing),
    Script::new("old ACKs", old_acks),
    Script::new("user timeout", user_timeout),
    Script::new("urgent data", urgent),
    Script::new("timestamps, repaired", timestamps),
    Script::new("ACKs that carry data", with_data),
    Script::new("stretched ACKs", stretched),
    Script::new("segments of 88 bytes", |p| odd_mss(p, 88)),
    Script::new("segments of 1 byte offered", |p| odd_mss(p, 1)),
    Script::new("segments of 65495 bytes offered", |p| odd_mss(p, 65_495)),
    Script::new("selective ACK of a lost retransmission", lost_again),
    Script::new("a short path that is told", path_mtu),
];

fn in_order(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    for round in 0..4 {
        play.write(5_000)?;
        play.pass(30)?;
        play.ack(1, round * 5_000 + 2_001)?;
        play.ack(1, round * 5_000 + 5_001)?;
        play.pass(10)?;
    }
    play.state()
}

fn duplicates(play: &mut Player<'_>, options: &[u8]) -> Result<()> {
    play.opened(options)?;
    play.write(10_000)?;
    play.pass(30)?;
    for _ in 0..3 {
        play.ack(1, 1)?;
        play.pass(1)?;
    }
    play.pass(60)?;
    play.state()?;
    play.ack(1, 10_001)?;
    play.pass(30)?;
    play.state()
}

fn fast_retransmit(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(10_000)?;
    play.pass(30)?;
    lose_first(play, 1, 10)
}

/// The first of some segments is lost: a SACK for each of the others, then for all.
fn lose_first(play: &mut Player<'_>, first: u32, count: u32) -> Result<()> {
    for number in 2..=count {
        play.sack(1, first, &[(first + 1_000, first + number * 1_000)])?;
        play.pass(1)?;
    }
    play.pass(30)?;
    play.state()?;
    play.ack(1, first + count * 1_000)?;
    play.pass(30)?;
    play.state()
}

/// The same once so many segments have been acknowledged, one round trip after the other.
fn after(play: &mut Player<'_>, segments: u32) -> Result<()> {
    play.opened(USUAL)?;
    for sent in 0..segments {
        if sent % 10 == 0 {
            play.write(10_000)?;
            play.pass(20)?;
        }
        play.ack(1, sent * 1_000 + 1_001)?;
    }
    play.write(10_000)?;
    play.pass(20)?;
    lose_first(play, segments * 1_000 + 1, 10)
}

fn limited_transmit(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(20_000)?;
    play.pass(30)?;
    play.sack(1, 1, &[(1_001, 2_001)])?;
    play.pass(3)?;
    play.sack(1, 1, &[(1_001, 3_001)])?;
    play.pass(10)?;
    play.ack(1, 10_001)?;
    play.pass(30)?;
    play.ack(1, 20_001)?;
    play.pass(10)?;
    play.state()
}

fn reordered(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(10_000)?;
    play.pass(30)?;
    play.sack(1, 1, &[(1_001, 2_001)])?;
    play.ack(1, 2_001)?;
    play.ack(1, 10_001)?;
    play.pass(30)?;
    play.state()
}

fn undone(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(10_000)?;
    play.pass(30)?;
    for end in [2_001, 3_001, 4_001] {
        play.sack(1, 1, &[(1_001, end)])?;
        play.pass(1)?;
    }
    play.pass(5)?;
    play.ack(1, 10_001)?;
    play.pass(1)?;
    play.sack(1, 10_001, &[(1, 1_001)])?;
    play.pass(20)?;
    play.state()?;
    play.write(10_000)?;
    play.pass(20)?;
    play.ack(1, 20_001)?;
    play.pass(10)?;
    play.state()
}

fn partial(play: &mut Player<'_>) -> Result<()> {
    play.opened(NO_SACK)?;
    play.write(10_000)?;
    play.pass(30)?;
    for _ in 0..4 {
        play.ack(1, 1)?;
        play.pass(1)?;
    }
    play.pass(20)?;
    play.ack(1, 3_001)?;
    play.pass(20)?;
    play.ack(1, 10_001)?;
    play.pass(20)?;
    play.state()
}

fn two_holes(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(10_000)?;
    play.pass(30)?;
    play.sack(1, 1, &[(1_001, 2_001)])?;
    play.sack(1, 1, &[(3_001, 4_001), (1_001, 2_001)])?;
    play.sack(1, 1, &[(3_001, 10_001), (1_001, 2_001)])?;
    play.pass(30)?;
    play.state()?;
    play.sack(1, 2_001, &[(3_001, 10_001)])?;
    play.pass(30)?;
    play.ack(1, 10_001)?;
    play.pass(20)?;
    play.state()
}

fn reneged(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(10_000)?;
    play.pass(30)?;
    play.sack(1, 1, &[(5_001, 10_001)])?;
    play.pass(10)?;
    // The receiver has forgotten what it had told of.
    play.ack(1, 5_001)?;
    play.pass(400)?;
    play.ack(1, 10_001)?;
    play.pass(20)?;
    play.state()
}

fn tiny(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(1_000)?;
    play.pass(10)?;
    for _ in 0..3 {
        play.ack(1, 1)?;
        play.pass(1)?;
    }
    play.pass(300)?;
    play.state()?;
    play.ack(1, 1_001)?;
    play.pass(10)?;
    play.state()
}

fn tail(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(2_000)?;
    play.pass(10)?;
    play.sack(1, 1, &[(1_001, 2_001)])?;
    play.pass(150)?;
    play.state()?;
    play.ack(1, 2_001)?;
    play.pass(10)?;
    play.state()
}

fn timeout(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(3_000)?;
    play.pass(1_500)?;
    play.state()
}

fn late(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(3_000)?;
    play.pass(300)?;
    play.ack(1, 3_001)?;
    play.pass(20)?;
    play.state()?;
    play.write(3_000)?;
    play.pass(20)?;
    play.ack(1, 6_001)?;
    play.pass(10)?;
    play.state()
}

fn tail_probe(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(4_000)?;
    play.pass(20)?;
    play.ack(1, 3_001)?;
    play.pass(150)?;
    play.sack(1, 4_001, &[(3_001, 4_001)])?;
    play.pass(20)?;
    play.state()
}

fn zero_window(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(2_000)?;
    play.pass(20)?;
    play.send(Segment::new(ACK, 1, 0, 2_001).window(0))?;
    play.write(3_000)?;
    play.pass(300)?;
    play.send(Segment::new(ACK, 1, 0, 2_001).window(0))?;
    play.pass(500)?;
    play.state()?;
    play.ack(1, 2_001)?;
    play.pass(20)?;
    play.ack(1, 5_001)?;
    play.pass(10)?;
    play.state()
}

fn shrunk(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(20_000)?;
    play.pass(20)?;
    play.send(Segment::new(ACK, 1, 0, 4_001).window(16))?;
    play.pass(20)?;
    play.ack(1, 10_001)?;
    play.pass(20)?;
    play.ack(1, 20_001)?;
    play.pass(10)?;
    play.state()
}

/// Windows of 1024 bytes.
fn silly(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.send(Segment::new(ACK, 1, 0, 1).window(8))?;
    play.pass(5)?;
    play.write(5_000)?;
    for acked in [1_001, 2_001, 3_001, 4_001, 5_001] {
        play.pass(20)?;
        play.send(Segment::new(ACK, 1, 0, acked).window(8))?;
    }
    play.pass(20)?;
    play.state()
}

fn ecn_echo(play: &mut Player<'_>) -> Result<()> {
    let asks = Flags::SYN.with(Flags::ECE).with(Flags::CWR);
    play.listen(|_| Ok(()))?;
    play.send(Segment::new(asks, 0, 0, 0).options(USUAL))?;
    play.pass(20)?;
    play.ack(1, 1)?;
    play.pass(10)?;
    play.accept()?;
    play.write(10_000)?;
    play.pass(20)?;
    play.send(Segment::new(ACK.with(Flags::ECE), 1, 0, 2_001))?;
    play.pass(5)?;
    play.send(Segment::new(ACK.with(Flags::ECE), 1, 0, 4_001))?;
    play.pass(5)?;
    play.ack(1, 10_001)?;
    play.pass(10)?;
    play.write(2_000)?;
    play.pass(10)?;
    play.ack(1, 12_001)?;
    play.pass(10)?;
    play.state()
}

fn ack_of_nothing(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(2_000)?;
    play.pass(20)?;
    play.ack(1, 9_001)?;
    play.pass(20)?;
    play.ack(1, 1_u32.wrapping_sub(70_000))?;
    play.pass(20)?;
    play.sack(1, 1, &[(50_001, 60_001)])?;
    play.pass(5)?;
    play.ack(1, 2_001)?;
    play.pass(10)?;
    play.state()
}

fn old_acks(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(5_000)?;
    play.pass(20)?;
    for acked in [3_001, 1_001, 2_001, 5_001, 4_001] {
        play.ack(1, acked)?;
        play.pass(3)?;
    }
    play.write(5_000)?;
    play.pass(20)?;
    play.ack(1, 10_001)?;
    play.pass(10)?;
    play.state()
}

fn user_timeout(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    // TCP_USER_TIMEOUT of linux/tcp.h.
    play.option(6, 18, 500)?;
    play.write(2_000)?;
    play.pass(1_200)?;
    play.read()?;
    play.write(10)
}

fn urgent(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(1_500)?;
    let socket = play.socket.as_ref().expect("it is open");
    rustix::net::send(socket, b"!", rustix::net::SendFlags::OOB)?;
    play.write(500)?;
    play.pass(20)?;
    play.ack(1, 2_002)?;
    play.pass(10)?;
    play.send(Segment { urgent: 3, ..Segment::new(PSH.with(Flags::URG), 1, 10, 2_002) })?;
    play.pass(10)?;
    play.read()?;
    play.state()
}

fn timestamps(play: &mut Player<'_>) -> Result<()> {
    let options = [USUAL, &[1, 1, 8, 10, 0, 0, 3, 232, 0, 0, 0, 0]].concat();
    play.listen(|_| Ok(()))?;
    play.send(Segment::new(Flags::SYN, 0, 0, 0).options(&options))?;
    play.pass(20)?;
    let echo = play.last_timestamp;
    play.send(Segment::new(ACK, 1, 0, 1).timestamps(1_020, echo))?;
    play.pass(10)?;
    play.accept()?;
    play.write(8_000)?;
    play.pass(20)?;
    let (echo, isn) = (play.last_timestamp, play.isn());
    for end in [3_001, 4_001, 5_001] {
        let segment = Segment::new(ACK, 1, 0, 1_001).sack(&[(2_001, end)], isn);
        play.send(segment.timestamps(1_050, echo))?;
        play.pass(1)?;
    }
    play.pass(20)?;
    play.send(Segment::new(ACK, 1, 0, 8_001).timestamps(1_080, echo))?;
    play.pass(20)?;
    play.state()
}

/// A hole is told of on data: nothing of it may be withheld.
fn with_data(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(10_000)?;
    play.pass(30)?;
    let isn = play.isn();
    for number in 0..4 {
        let data = Segment::new(PSH, 1 + number * 10, 10, 1);
        play.send(data.sack(&[(1_001, 2_001 + number * 1_000)], isn))?;
        play.pass(2)?;
    }
    play.pass(20)?;
    play.read()?;
    play.ack(41, 10_001)?;
    play.pass(20)?;
    play.state()
}

fn stretched(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    for acked in [10_001, 30_001, 70_001] {
        play.write(40_000)?;
        play.pass(20)?;
        play.ack(1, acked)?;
    }
    play.pass(20)?;
    play.state()
}

fn odd_mss(play: &mut Player<'_>, bytes: u16) -> Result<()> {
    let [high, low] = bytes.to_be_bytes();
    play.opened(&[4, 2, 3, 3, 7, 1, 2, 4, high, low, 1, 1])?;
    play.write(400)?;
    play.pass(20)?;
    play.ack(1, 401)?;
    play.pass(10)?;
    play.state()
}

fn lost_again(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(20_000)?;
    play.pass(20)?;
    for end in [2_001, 3_001, 4_001, 6_001, 10_001] {
        play.sack(1, 1, &[(1_001, end)])?;
        play.pass(2)?;
    }
    play.pass(15)?;
    for end in [11_001, 12_001, 13_001] {
        play.sack(1, 1, &[(1_001, end)])?;
        play.pass(5)?;
    }
    play.pass(60)?;
    play.ack(1, 20_001)?;
    play.pass(20)?;
    play.state()
}

/// Fragmentation needed (RFC 1191), and segments that are shorter then.
fn path_mtu(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(3_000)?;
    play.pass(20)?;
    play.icmp((3, 4), 600, 1)?;
    play.pass(30)?;
    play.state()?;
    play.ack(1, 3_001)?;
    play.pass(10)
}
