//! Messages between two kernels: one of a given size every so often, on a connection of its own,
//! and when each was written and was whole at the other end.
//!
//! Both ends read one clock, CLOCK_MONOTONIC, so a message's latency is the difference of two
//! readings: from the write at the sender to the read, at the receiver, that has its last byte. As
//! in the simulator, the first is due when the run begins, and Nagle's algorithm is off
//! (TCP_NODELAY). Both threads run under SCHED_FIFO where that is allowed, so that a busy bulk
//! transfer beside them does not make a message late; how late they were is noted.

use super::setup::Messages;
use super::transfer::{self, CHUNK, Passed, Place, is_wait};
use crate::sys::tcp_socket::{self, Options};
use crate::sys::{Clock, namespace, process};
use anyhow::{Context, Result, ensure};
use sansio::{Duration, Instant, StreamId};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::net::{SocketAddrV4, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};

/// Messages of one connection at most: who wants more has chosen the time between two too short.
pub const MESSAGES_MAX: usize = 1_000_000;

/// Writes messages until told to stop.
///
/// # Errors
/// If the connection fails, or at [`MESSAGES_MAX`].
pub fn send(
    from: &Place,
    to: SocketAddrV4,
    (stream, messages): (StreamId, Messages),
    (options, clock): (&Options, Clock),
    stop: &AtomicBool,
) -> Result<Passed> {
    namespace::enter(&from.namespace)?;
    be_punctual()?;
    let mut diary = Diary::new(messages.every);
    diary.begin(clock.now());
    let mut socket = transfer::connect(from, to, options)?;
    socket.set_nodelay(true).context("switch Nagle's algorithm off")?;
    let mut hash = Sha256::new();
    let (mut sent, mut chunk) = (0, Vec::with_capacity(CHUNK));
    let mut gave_up = false;
    loop {
        let end = diary.began_at.len() as u64 * messages.size_bytes;
        while sent < end && !stop.load(Ordering::Relaxed) && !gave_up {
            fill(&mut chunk, stream, sent, end);
            match socket.write(&chunk) {
                Ok(count) => {
                    hash.update(&chunk[..count]);
                    chunk.drain(..count);
                    sent += count as u64;
                }
                Err(error) if is_wait(error.kind()) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => gave_up = true,
                // A receiver that is told to stop closes the connection.
                Err(_) if stop.load(Ordering::Relaxed) => break,
                Err(error) => return Err(error).context("send a message"),
            }
        }
        diary.ready_at = clock.now();
        // Whatever takes time is done before the next one is due.
        fill(&mut chunk, stream, sent, end + messages.size_bytes);
        if gave_up || !wait(clock, diary.due(), stop) {
            break;
        }
        ensure!(
            diary.began_at.len() < MESSAGES_MAX,
            "more than {MESSAGES_MAX} messages on one connection: let more time pass between two"
        );
        diary.begin(clock.now());
    }
    let info = tcp_socket::info(&socket)?;
    tcp_socket::reset_on_close(&socket)?;
    let (hash, messages_at) = (hash.finalize().into(), diary.began_at);
    Ok(Passed { bytes: sent, hash, info, messages_at, gave_up })
}

/// Receives messages until told to stop, with a window of at most `window_bytes`.
///
/// # Errors
/// If the connection fails.
pub fn receive(
    listener: &TcpListener,
    (messages, window_bytes): (Messages, Option<u32>),
    clock: Clock,
    stop: &AtomicBool,
) -> Result<Passed> {
    be_punctual()?;
    let mut whole_at = Vec::new();
    let passed = transfer::read_all(listener, (None, window_bytes), stop, |received| {
        whole_at.resize((received / messages.size_bytes) as usize, clock.now());
    })?;
    Ok(Passed { messages_at: whole_at, ..passed })
}

/// How long messages took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Each that was whole before the end of the run.
    pub of_messages: Vec<Duration>,
    /// The longest that one took, or that the first one under way at the end was waited for.
    pub longest: Duration,
    /// The most by which a message was begun after it was due, though nothing hindered it but the
    /// machine.
    pub late: Duration,
}

impl Latencies {
    /// From when messages were begun and were whole, in a run that ended at `now`.
    pub fn of(every: Duration, begun_at: &[Instant], whole_at: &[Instant], now: Instant) -> Self {
        let whole = whole_at.iter().take_while(|at| **at <= now);
        let of_messages: Vec<Duration> =
            begun_at.iter().zip(whole).map(|(begun, whole)| whole.since(*begun)).collect();
        let under_way = begun_at.get(of_messages.len()).map(|begun| now.since(*begun));
        let longest = of_messages.iter().copied().chain(under_way).max().unwrap_or_default();
        let late = begun_at.iter().zip(0_u64..).map(|(at, n)| at.since(Instant::ZERO + every * n));
        Latencies { of_messages, longest, late: late.max().unwrap_or_default() }
    }
}

/// When messages are due, and when each was begun.
struct Diary {
    every: Duration,
    began_at: Vec<Instant>,
    /// Since when nothing hinders the application from writing: neither a connection that is not
    /// made yet nor a socket that has no room for the message before.
    ready_at: Instant,
}

impl Diary {
    fn new(every: Duration) -> Self {
        Diary { every, began_at: Vec::new(), ready_at: Instant::ZERO }
    }

    fn due(&self) -> Instant {
        Instant::ZERO + self.every * self.began_at.len() as u64
    }

    /// The application writes the next one. It counts from then; if it was hindered, from when it
    /// would have been written.
    fn begin(&mut self, now: Instant) {
        let due = self.due();
        self.began_at.push(if self.ready_at > due { due } else { now });
    }
}

/// Has the next bytes to write in `chunk`, up to `end`.
fn fill(chunk: &mut Vec<u8>, stream: StreamId, sent: u64, end: u64) {
    if chunk.is_empty() {
        let end = end.min(sent + CHUNK as u64);
        chunk.extend((sent..end).map(|offset| stream.pattern(offset)));
    }
}

/// Until a message is due; false if it shall stop before.
fn wait(clock: Clock, due: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = due.since(clock.now());
        if left == Duration::ZERO {
            return true;
        }
        let nanos = std::time::Duration::from_nanos(left.as_nanos());
        std::thread::sleep(nanos.min(transfer::LOOK_EVERY));
    }
    false
}

/// Gives the calling thread all the punctuality that the system allows it.
fn be_punctual() -> Result<()> {
    // Without the right to it messages may be late, which the run then says.
    let _real_time = process::real_time();
    process::precise_timers()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn ms(millis: &[u64]) -> Vec<Duration> {
        millis.iter().map(|millis| Duration::from_millis(*millis)).collect()
    }

    #[test]
    fn a_message_counts_from_its_write_and_a_hindered_one_from_when_it_was_due() {
        let mut diary = Diary::new(Duration::from_millis(100));
        // The first waits for its connection, which is made when the third is already due.
        diary.begin(at(1));
        diary.ready_at = at(220);
        diary.begin(at(220));
        diary.ready_at = at(221);
        diary.begin(at(221));
        diary.ready_at = at(222);
        assert_eq!(diary.due(), at(300));
        // The thread is woken late: that is the machine's doing, and the message counts from then.
        diary.begin(at(303));
        // At the very instant nothing hinders it.
        diary.ready_at = at(400);
        diary.begin(at(401));
        assert_eq!(diary.began_at, [at(1), at(100), at(200), at(303), at(401)]);
    }

    #[test]
    fn latencies_are_those_of_messages_that_were_whole_before_the_end() {
        let every = Duration::from_millis(100);
        let begun = [at(1), at(100), at(203), at(300), at(400)];
        let whole = [at(51), at(160), at(233), at(700)];
        let to = |now| Latencies::of(every, &begun, &whole, at(now));
        assert_eq!(to(699).of_messages, ms(&[50, 60, 30]));
        assert_eq!(to(700).of_messages, ms(&[50, 60, 30, 400]));
        // The fourth is waited for until the end, then the fifth.
        let longest = [233, 699, 700, 900].map(|now| to(now).longest);
        assert_eq!(longest.to_vec(), ms(&[60, 399, 400, 500]));
        assert_eq!(to(700).late, Duration::from_millis(3));
        assert_eq!(Latencies::of(every, &[], &[], at(9)), Latencies::default());
    }
}
