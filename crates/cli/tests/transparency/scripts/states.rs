//! Opening, closing, resetting, and errors from the network.

use super::Script;
use super::player::{ACK, FIN, NO_SACK, PSH, Player, RST, SYN, Segment, USUAL};
use anyhow::Result;
use wire::tcp::Flags;

pub(super) const ALL: &[Script] = &[
    Script::new("SYN options: none", |p| syn(p, &[])),
    Script::new("SYN options: SACK before MSS", |p| syn(p, &[4, 2, 1, 1, 2, 4, 5, 180])),
    Script::new("SYN options: scale of 15", |p| syn(p, &[3, 3, 15, 1, 2, 4, 5, 180])),
    Script::new("SYN options: cut", |p| syn(p, &[2, 4, 5, 180, 3, 3, 7, 8])),
    Script::new("Fast Open: a cookie is asked for", |p| syn(p, &[2, 4, 5, 180, 34, 2, 1, 1])),
    Script::new("Fast Open: data with a wrong cookie", fast_open),
    Script::new("Accurate ECN is asked for", accurate_ecn),
    Script::new("a SYN/ACK that nobody acknowledges", half_open),
    Script::new("a SYN that is answered late", late_answer),
    Script::new("a SYN that is refused", refused),
    Script::new("a SYN/ACK of another number", wrong_answer),
    Script::new("both open at once", both_open),
    Script::new("a SYN in the middle", syn_in_the_middle),
    Script::new("resets: exact, near, far", resets),
    Script::new("closed by the kernel", |p| closed(p, USUAL)),
    Script::new("closed by the kernel, no SACK", |p| closed(p, NO_SACK)),
    Script::new("closed by the raw end, data to the end", half_closed),
    Script::new("both close at once", both_close),
    Script::new("a FIN that nobody acknowledges", fin_again),
    Script::new("data after the close", data_after_close),
    Script::new("closed with data unread", unread),
    Script::new("TIME_WAIT: repeats, and a new SYN", time_wait),
    Script::new("aborted", aborted),
    Script::new("errors from the network while opening", |p| errors_in_opening(p, (3, 1))),
    Script::new("a port that is told to be closed", |p| errors_in_opening(p, (3, 3))),
    Script::new("errors from the network in a connection", errors_soft),
    Script::new("errors about what was never sent", errors_forged),
    Script::new("keep-alives that are answered, then not", keep_alives),
    Script::new("ACK to a port that is closed", no_connection),
    Script::new("calls on a socket that is not connected", bad_calls),
];

fn syn(play: &mut Player<'_>, options: &[u8]) -> Result<()> {
    play.opened(options)?;
    play.write(2_000)?;
    play.pass(20)?;
    play.send(Segment::new(ACK, 1, 0, 2_001).window(60_000))?;
    play.pass(10)?;
    play.state()
}

fn fast_open(play: &mut Player<'_>) -> Result<()> {
    // TCP_FASTOPEN of linux/tcp.h.
    play.listen(|socket| live::sys::socket_option::set(socket, 6, 23, &5_u32.to_ne_bytes()))?;
    let cookie = [2, 4, 5, 180, 34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1];
    play.send(Segment::new(SYN, 0, 500, 0).options(&cookie))?;
    play.pass(30)?;
    play.send(Segment::new(PSH, 1, 500, 1))?;
    play.pass(60)?;
    play.accept()?;
    play.read()?;
    play.state()
}

fn accurate_ecn(play: &mut Player<'_>) -> Result<()> {
    let asks = SYN.with(Flags::AE).with(Flags::CWR).with(Flags::ECE);
    play.listen(|_| Ok(()))?;
    play.send(Segment::new(asks, 0, 0, 0).options(USUAL))?;
    play.pass(20)?;
    play.send(Segment::new(ACK.with(Flags::AE), 1, 0, 1))?;
    play.pass(10)?;
    play.accept()?;
    play.write(3_000)?;
    play.pass(20)?;
    // Its counter in three flags, as packets marked arrive, and the option that counts bytes.
    let counted = [174, 11, 0, 0, 1, 0, 0, 3, 0, 0, 1, 1];
    play.send(Segment::new(ACK.with(Flags::CWR), 1, 0, 2_001).options(&counted))?;
    play.pass(5)?;
    play.send(Segment::new(ACK.with(Flags::CWR).with(Flags::ECE), 1, 0, 2_001))?;
    play.pass(5)?;
    play.send(Segment::new(ACK.with(Flags::AE), 1, 0, 3_001))?;
    play.pass(20)?;
    play.state()
}

fn half_open(play: &mut Player<'_>) -> Result<()> {
    play.listen(|_| Ok(()))?;
    play.send(Segment::new(SYN, 0, 0, 0).options(USUAL))?;
    play.pass(100)?;
    play.send(Segment::new(SYN, 0, 0, 0).options(USUAL))?;
    play.pass(1_200)?;
    play.ack(1, 1)?;
    play.pass(10)?;
    play.accept()?;
    play.state()
}

fn late_answer(play: &mut Player<'_>) -> Result<()> {
    play.connect(|_| Ok(()))?;
    play.pass(1_300)?;
    play.send(Segment::new(SYN.with(ACK), 0, 0, 1).options(USUAL).window(60_000))?;
    play.pass(20)?;
    play.write(1_000)?;
    play.pass(20)?;
    play.ack(1, 1_001)?;
    play.pass(10)?;
    play.state()
}

fn refused(play: &mut Player<'_>) -> Result<()> {
    play.connect(|_| Ok(()))?;
    play.pass(20)?;
    play.send(Segment::new(RST.with(ACK), 0, 0, 1))?;
    play.pass(20)?;
    play.state()
}

fn wrong_answer(play: &mut Player<'_>) -> Result<()> {
    play.connect(|_| Ok(()))?;
    play.pass(20)?;
    play.send(Segment::new(SYN.with(ACK), 0, 0, 9).options(USUAL))?;
    play.pass(20)?;
    play.send(Segment::new(RST.with(ACK), 0, 0, 7))?;
    play.pass(20)?;
    play.send(Segment::new(SYN.with(ACK), 0, 0, 1).options(USUAL))?;
    play.pass(20)?;
    play.state()
}

fn both_open(play: &mut Player<'_>) -> Result<()> {
    play.connect(|_| Ok(()))?;
    play.pass(20)?;
    play.send(Segment::new(SYN, 0, 0, 0).options(USUAL))?;
    play.pass(20)?;
    play.send(Segment::new(SYN.with(ACK), 0, 0, 1).options(USUAL).window(60_000))?;
    play.pass(20)?;
    play.write(1_000)?;
    play.pass(10)?;
    play.ack(1, 1_001)?;
    play.pass(10)?;
    play.state()
}

fn syn_in_the_middle(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(3_000)?;
    play.pass(10)?;
    play.send(Segment::new(SYN, 0, 0, 0).options(USUAL))?;
    play.pass(20)?;
    play.send(Segment::new(SYN, 5_000, 0, 0).options(USUAL))?;
    play.pass(20)?;
    play.ack(1, 3_001)?;
    play.pass(10)?;
    play.write(1_000)?;
    play.pass(10)?;
    play.ack(1, 4_001)?;
    play.pass(10)?;
    play.state()
}

fn resets(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(3_000)?;
    play.pass(10)?;
    play.send(Segment::new(RST, 1 << 28, 0, 0))?;
    play.pass(20)?;
    play.send(Segment::new(RST, 2_000, 0, 0))?;
    play.pass(20)?;
    play.state()?;
    play.send(Segment::new(RST, 1, 0, 0))?;
    play.pass(20)?;
    play.read()?;
    play.state()
}

fn closed(play: &mut Player<'_>, options: &[u8]) -> Result<()> {
    play.answered(options)?;
    play.write(2_000)?;
    play.shutdown()?;
    play.pass(20)?;
    play.ack(1, 2_002)?;
    play.pass(20)?;
    play.send(Segment::new(PSH, 1, 300, 2_002))?;
    play.pass(60)?;
    play.read()?;
    play.send(Segment::new(FIN, 301, 0, 2_002))?;
    play.pass(20)?;
    play.send(Segment::new(FIN, 301, 0, 2_002))?;
    play.pass(20)?;
    play.state()
}

fn half_closed(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.send(Segment::new(FIN, 1, 100, 1))?;
    play.pass(60)?;
    play.read()?;
    play.read()?;
    play.write(5_000)?;
    play.pass(20)?;
    play.ack(102, 5_001)?;
    play.shutdown()?;
    play.pass(20)?;
    play.ack(102, 5_002)?;
    play.pass(10)?;
    play.state()
}

fn both_close(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.shutdown()?;
    play.pass(10)?;
    play.send(Segment::new(FIN, 1, 0, 1))?;
    play.pass(20)?;
    play.ack(2, 2)?;
    play.pass(20)?;
    play.state()
}

fn fin_again(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(100)?;
    play.pass(10)?;
    play.ack(1, 101)?;
    play.shutdown()?;
    play.pass(1_000)?;
    play.ack(1, 102)?;
    play.pass(20)?;
    play.state()
}

fn data_after_close(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.close()?;
    play.pass(10)?;
    play.ack(1, 2)?;
    play.pass(10)?;
    play.send(Segment::new(PSH, 1, 300, 2))?;
    play.pass(60)?;
    Ok(())
}

fn unread(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.send(Segment::new(PSH, 1, 300, 1))?;
    play.pass(60)?;
    play.close()?;
    play.pass(20)
}

fn time_wait(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.shutdown()?;
    play.pass(10)?;
    play.send(Segment::new(FIN, 1, 0, 2))?;
    play.pass(10)?;
    play.close()?;
    play.send(Segment::new(FIN, 1, 0, 2))?;
    play.pass(20)?;
    play.send(Segment::new(PSH, 2, 100, 2))?;
    play.pass(20)?;
    play.send(Segment::new(RST, 2, 0, 0))?;
    play.pass(20)
}

fn aborted(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(3_000)?;
    play.pass(10)?;
    let socket = play.socket.as_ref().expect("it is open");
    rustix::net::sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO))?;
    play.close()?;
    play.pass(10)?;
    play.ack(1, 3_001)?;
    play.pass(20)
}

fn errors_in_opening(play: &mut Player<'_>, kind: (u8, u8)) -> Result<()> {
    play.connect(|_| Ok(()))?;
    play.pass(20)?;
    play.icmp(kind, 0, 0)?;
    play.pass(20)?;
    play.state()
}

fn errors_soft(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(2_000)?;
    play.pass(20)?;
    for kind in [(3, 0), (3, 1), (3, 3), (11, 0), (12, 0)] {
        play.icmp(kind, 0, 1)?;
        play.pass(10)?;
    }
    play.state()?;
    play.ack(1, 2_001)?;
    play.pass(10)?;
    play.state()
}

fn errors_forged(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    play.write(2_000)?;
    play.pass(20)?;
    play.icmp((3, 4), 600, 1 << 28)?;
    play.icmp((3, 3), 0, 1 << 28)?;
    play.pass(20)?;
    play.ack(1, 2_001)?;
    play.pass(10)?;
    play.state()
}

fn keep_alives(play: &mut Player<'_>) -> Result<()> {
    play.opened(USUAL)?;
    // SO_KEEPALIVE; TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT of linux/tcp.h.
    play.option(1, 9, 1)?;
    for (option, value) in [(4, 1), (5, 1), (6, 1)] {
        play.option(6, option, value)?;
    }
    play.pass(1_100)?;
    play.ack(1, 1)?;
    play.pass(2_400)?;
    play.read()
}

fn no_connection(play: &mut Player<'_>) -> Result<()> {
    play.ack(1, 77)?;
    play.pass(10)?;
    play.send(Segment::new(FIN, 1, 100, 77))?;
    play.pass(10)?;
    play.send(Segment::new(RST, 1, 0, 0))?;
    play.pass(10)?;
    play.send(Segment::new(SYN, 1, 0, 0).options(USUAL))?;
    play.pass(20)
}

fn bad_calls(play: &mut Player<'_>) -> Result<()> {
    play.connect(|_| Ok(()))?;
    play.write(100)?;
    play.read()?;
    play.shutdown()?;
    play.pass(50)?;
    play.state()
}
