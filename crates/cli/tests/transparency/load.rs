//! Streams that go on while something is done to them: written and read by threads until told to
//! end, every byte compared, and the longest time without any noted.

use crate::net::Host;
use crate::stage::{Pair, check_pattern, write_pattern};
use anyhow::{Context, Result, ensure};
use live::sys::Clock;
use rustix::net::sockopt;
use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Running streams.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    streams: Vec<Stream>,
}

/// The threads of a stream: who sends and who receives.
type Stream = (JoinHandle<Result<usize>>, JoinHandle<Result<Received>>);

/// What a stream's receiver saw.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    pub(crate) bytes: usize,
    /// The longest time without a byte.
    pub(crate) stall: Duration,
}

const SEND_BUFFER_BYTES: usize = 256 << 10;
/// Bytes of a write; so often a sender looks whether it shall end.
const CHUNK: usize = 16 << 10;

impl Load {
    /// A stream over each connection, from the host named.
    pub(crate) fn start(pairs: Vec<(Pair, Host)>) -> Result<Load> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut streams = Vec::new();
        for (Pair { fixed, mobile }, from) in pairs {
            let (sender, receiver) =
                if from == Host::Fixed { (fixed, mobile) } else { (mobile, fixed) };
            for stream in [&sender, &receiver] {
                stream.set_read_timeout(Some(PATIENCE)).context("bound a receive")?;
                stream.set_write_timeout(Some(PATIENCE)).context("bound a send")?;
            }
            // So that little is left to send when it shall end.
            sockopt::set_socket_send_buffer_size(&sender, SEND_BUFFER_BYTES)?;
            let stop = stop.clone();
            let sent = std::thread::spawn(move || send(&sender, &stop));
            streams.push((sent, std::thread::spawn(move || receive(&receiver))));
        }
        Ok(Load { stop, streams })
    }

    /// Ends all streams in order; sees that every byte that was sent arrived.
    pub(crate) fn finish(self) -> Result<Vec<Received>> {
        self.stop.store(true, Ordering::Relaxed);
        let join = |(number, (sent, received)): (usize, Stream)| {
            let (sent, received) =
                (sent.join().expect("no panic"), received.join().expect("no panic"));
            let attempt = || format!("stream {number}");
            // A receiver that met a wrong byte has closed: that is what the sender complains of.
            let received = received.with_context(attempt)?;
            let sent = sent.with_context(attempt)?;
            let whole = sent == received.bytes;
            ensure!(whole, "stream {number}: {sent} bytes sent, {received:?}");
            Ok(received)
        };
        self.streams.into_iter().enumerate().map(join).collect()
    }
}

/// A stream that stands still for longer is dead.
const PATIENCE: Duration = Duration::from_secs(20);

fn send(socket: &TcpStream, stop: &AtomicBool) -> Result<usize> {
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        write_pattern(socket, sent, CHUNK).with_context(|| format!("send after {sent} bytes"))?;
        sent += CHUNK;
    }
    socket.shutdown(Shutdown::Write).context("end the stream")?;
    // The receiver closes when it has everything.
    let mut socket = socket;
    ensure!(socket.read(&mut [0]).context("wait for the receiver")? == 0, "a byte came back");
    Ok(sent)
}

fn receive(mut socket: &TcpStream) -> Result<Received> {
    let mut buffer = vec![0; 64 << 10];
    let (mut received, mut last) = (Received::default(), Stopwatch::start());
    loop {
        let at = received.bytes;
        let count = socket.read(&mut buffer).with_context(|| format!("read after {at} bytes"))?;
        received.stall = received.stall.max(last.elapsed());
        last = Stopwatch::start();
        if count == 0 {
            socket.shutdown(Shutdown::Both).context("close")?;
            return Ok(received);
        }
        check_pattern(at, &buffer[..count])?;
        received.bytes += count;
    }
}

/// Time since it was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Clock);

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Clock::starting_now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        Duration::from_nanos(self.0.now().as_nanos())
    }
}

/// A random stream for choices that a seed repeats (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Below `end`, which is above 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// From `least` to below `end`, in milliseconds.
    pub(crate) fn millis(&mut self, least: u64, end: u64) -> Duration {
        Duration::from_millis(least + self.below(end - least))
    }
}
