//! The raw end sends; what the kernel answers.

use super::Script;
use super::player::{ACK, FIN, PSH, Player, Segment, USUAL};
use anyhow::Result;
use wire::tcp::Flags;

pub(super) const ALL: &[Script] = &[
    Script::new("delayed ACKs", delayed),
    Script::new("out of order", out_of_order),
    Script::new("repeated: D-SACK", repeated),
    Script::new("beyond the window", beyond),
    Script::new("before what was read", keep_alives),
    Script::new("urgent data arrives", urgent),
    Script::new("congestion experienced", congestion),
    Script::new("timestamps, old and zero", paws),
    Script::new("options of all kinds", options),
    Script::new("nothing reads: the window closes", closes),
    Script::new("FIN out of order", fin_out_of_order),
    Script::new("single bytes", single),
    Script::new("signed, though nobody asked", signed),
];

fn data(play: &mut Player<'_>, seq: u32, bytes: usize) -> Result<()> {
    play.send(Segment::new(PSH, seq, bytes, 1))
}

fn delayed(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    for number in 0..24 {
        data(play, 1 + number * 1_000, 1_000)?;
        play.pass(2)?;
    }
    play.read()?;
    data(play, 24_001, 1_000)?;
    play.pass(80)?;
    data(play, 25_001, 500)?;
    play.pass(80)?;
    play.read()?;
    play.state()
}

fn out_of_order(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    for seq in [1_001, 3_001, 5_001, 2_001, 4_001] {
        data(play, seq, 1_000)?;
        play.pass(5)?;
    }
    play.pass(60)?;
    data(play, 1, 1_000)?;
    play.pass(60)?;
    play.read()?;
    play.state()
}

fn repeated(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    data(play, 1, 1_000)?;
    play.pass(5)?;
    data(play, 1, 1_000)?;
    play.pass(5)?;
    data(play, 2_001, 1_000)?;
    data(play, 2_001, 500)?;
    play.pass(5)?;
    data(play, 501, 1_400)?;
    play.pass(60)?;
    play.read()?;
    play.state()
}

fn beyond(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    data(play, 1 << 24, 1_000)?;
    play.pass(20)?;
    data(play, 1_u32.wrapping_sub(5_000), 1_000)?;
    play.pass(20)?;
    data(play, 1, 100)?;
    play.pass(60)?;
    play.read()
}

fn keep_alives(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    data(play, 1, 100)?;
    play.pass(60)?;
    for bytes in [0, 1] {
        play.send(Segment::new(ACK, 100, bytes, 1))?;
        play.pass(20)?;
    }
    play.read()?;
    play.state()
}

fn urgent(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.send(Segment { urgent: 5, ..Segment::new(PSH.with(Flags::URG), 1, 10, 1) })?;
    play.pass(60)?;
    play.read()?;
    play.read()?;
    play.send(Segment { urgent: 100, ..Segment::new(ACK.with(Flags::URG), 11, 0, 1) })?;
    play.pass(20)?;
    data(play, 11, 200)?;
    play.pass(60)?;
    play.read()?;
    play.state()
}

fn congestion(play: &mut Player<'_>) -> Result<()> {
    let asks = Flags::SYN.with(Flags::ECE).with(Flags::CWR);
    play.listen(|_| Ok(()))?;
    play.send(Segment::new(asks, 0, 0, 0).options(USUAL))?;
    play.pass(20)?;
    play.ack(1, 1)?;
    play.pass(10)?;
    play.accept()?;
    for (number, ecn) in [2, 3, 2, 2, 3, 1].into_iter().enumerate() {
        let flags = if number == 3 { PSH.with(Flags::CWR) } else { PSH };
        play.send(Segment { ecn, ..Segment::new(flags, 1 + 1_000 * number as u32, 1_000, 1) })?;
        play.pass(10)?;
    }
    play.pass(60)?;
    play.state()
}

fn paws(play: &mut Player<'_>) -> Result<()> {
    let options = [USUAL, &[1, 1, 8, 10, 0, 0, 3, 232, 0, 0, 0, 0]].concat();
    play.listen(|_| Ok(()))?;
    play.send(Segment::new(Flags::SYN, 0, 0, 0).options(&options))?;
    play.pass(20)?;
    let echo = play.last_timestamp;
    play.send(Segment::new(ACK, 1, 0, 1).timestamps(1_020, echo))?;
    play.pass(10)?;
    play.accept()?;
    for (seq, value) in [(1, 1_030), (1_001, 900), (1_001, 0), (1_001, 1_040)] {
        play.send(Segment::new(PSH, seq, 1_000, 1).timestamps(value, echo))?;
        play.pass(60)?;
    }
    // Without the option that was agreed on (RFC 7323, 3.2).
    data(play, 2_001, 1_000)?;
    play.pass(60)?;
    play.read()?;
    play.state()
}

fn options(play: &mut Player<'_>) -> Result<()> {
    play.opened(&[254, 6, 1, 2, 3, 4, 2, 4, 3, 232, 4, 2, 77, 3, 9, 1, 1, 1])?;
    let lists: [&[u8]; 7] = [
        &[1, 1, 1, 1],
        &[0, 8, 10, 1, 2, 3, 4, 5],
        &[77, 4, 1, 2, 254, 4, 9, 9],
        &[8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1],
        &[5, 10, 0, 0, 0, 1, 0, 0, 0, 9, 1, 1],
        // Lengths of 0 and 1, and beyond the end: the rest is not read.
        &[77, 0, 1, 1],
        &[1, 77, 1, 200],
    ];
    for (number, list) in lists.into_iter().enumerate() {
        play.send(Segment::new(PSH, 1 + 100 * number as u32, 100, 1).options(list))?;
        play.pass(5)?;
    }
    play.pass(60)?;
    play.read()?;
    play.state()
}

fn closes(play: &mut Player<'_>) -> Result<()> {
    // Small, so that it closes soon.
    play.listen(|socket| Ok(rustix::net::sockopt::set_socket_recv_buffer_size(socket, 4_096)?))?;
    play.send(Segment::new(Flags::SYN, 0, 0, 0).options(USUAL))?;
    play.pass(20)?;
    play.ack(1, 1)?;
    play.pass(10)?;
    play.accept()?;
    for number in 0..8 {
        data(play, 1 + number * 500, 500)?;
        play.pass(10)?;
    }
    play.pass(60)?;
    play.read()?;
    play.pass(60)?;
    play.state()
}

fn fin_out_of_order(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.send(Segment::new(FIN, 2_001, 0, 1))?;
    play.pass(20)?;
    data(play, 1_001, 1_000)?;
    play.pass(20)?;
    data(play, 1, 1_000)?;
    play.pass(60)?;
    play.read()?;
    play.read()?;
    play.state()
}

fn single(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    for number in 0..30 {
        data(play, 1 + number, 1)?;
        play.pass(1)?;
    }
    play.pass(60)?;
    play.read()?;
    play.state()
}

/// MD5 (RFC 2385) without a key here: dropped.
fn signed(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    let option = [&[1, 1, 19, 18][..], &[7; 16]].concat();
    play.send(Segment::new(PSH, 1, 100, 1).options(&option))?;
    play.pass(60)?;
    data(play, 1, 100)?;
    play.pass(60)?;
    play.read()
}
