//! How a Linux receiver opens its window and when it acknowledges at once.
//!
//! The window begins at 64 KiB, opens by two segments with each that arrives while there is room
//! beside what waits, and stops at a bound that follows what the application read in a round trip
//! (dynamic right-sizing, Fisk and Feng 2001; `tcp_rcv_space_adjust`, `tcp_grow_window` of Linux
//! 6.18). Room is memory, and each packet that waits takes the same, however short. What an ACK
//! offers is found before the application has read what it acknowledges. The first segments, those
//! that open the window, and those after a pause or a repetition are acknowledged one by one
//! (`tcp_enter_quickack_mode`). Not modelled: memory that runts share with the packet before them.

use sansio::{Duration, Instant};

/// What the receiver knows of its peer's pace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tuning {
    /// Window to offer, bytes (`rcv_ssthresh`).
    window: u32,
    /// Memory for packets that wait, bytes (`sk_rcvbuf`).
    memory: u32,
    /// What it may grow to, bytes (`tcp_rmem`).
    memory_max: u32,
    /// Payload of a full segment, bytes.
    mss: u32,
    /// The window opens with packets out of order, too: without SACK all duplicate ACKs have to
    /// look alike.
    sack: bool,
    /// ACKs to send at once.
    quick: u32,
    last_data_at: Option<Instant>,
    /// Eight times the smoothed round-trip time as this end sees it, ns; zero before a sample.
    round_trip_times_8: u64,
    last_echo: Option<u32>,
    /// Bytes that are read in a round trip (`rcvq_space.space`).
    read_expected: u32,
    /// Bytes read in this one, and when it began.
    read: u32,
    read_since: Instant,
    /// In order, and not read yet.
    unread: Unread,
}

/// Packets in order that the application has not read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Unread {
    packets: u32,
    bytes: u32,
    /// Of the first of them.
    first_bytes: u32,
}

/// What waits beyond a hole.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) packets: u32,
    /// From the next number in order to the last that waits, bytes.
    pub(crate) span: u32,
}

/// ACKs sent at once (`TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;
/// First memory, bytes (`tcp_rmem`).
const FIRST_MEMORY: u32 = 128 << 10;
/// Memory of a packet that fills an Ethernet frame, bytes (`truesize`).
const PACKET_MEMORY: u32 = 2304;
/// Of memory this part is payload when such packets fill it: 1448 bytes of 2304, rounded down
/// (`scaling_ratio`).
const PAYLOAD_OF_256: u64 = 160;
/// Segments of a first window; so many bytes read in a round trip are expected.
const FIRST_READ_SEGMENTS: u32 = 10;

/// The window that so much memory is good for, bytes (`tcp_win_from_space`).
fn window_of(memory: u32) -> u32 {
    (u64::from(memory) * PAYLOAD_OF_256 / 256) as u32
}

/// The memory that a window needs, bytes (`tcp_space_from_win`).
pub(crate) fn memory_for(window: u32) -> u32 {
    let memory = u64::from(window) * 256 / PAYLOAD_OF_256;
    u32::try_from(memory).unwrap_or(u32::MAX)
}

impl Tuning {
    /// When the connection is made: segments will have at most `mss` bytes, the window will never
    /// be larger than `window_max`.
    pub(crate) fn new(mss: u32, window_max: u32, sack: bool) -> Self {
        Tuning {
            window: u32::from(u16::MAX) / mss * mss,
            memory: FIRST_MEMORY,
            memory_max: memory_for(window_max),
            mss,
            sack,
            quick: QUICK_ACKS,
            last_data_at: None,
            round_trip_times_8: 0,
            last_echo: None,
            read_expected: FIRST_READ_SEGMENTS * mss,
            read: 0,
            read_since: Instant::ZERO,
            unread: Unread::default(),
        }
    }

    /// The connection is made.
    pub(crate) fn start(&mut self, now: Instant) {
        self.read_since = now;
    }

    /// The window to offer, in steps of `1 << shift`, bytes (`__tcp_select_window`).
    #[inline]
    pub(crate) fn window(&self, waiting: Waiting, shift: u8) -> u32 {
        let room = self.room(waiting.packets);
        let whole = window_of(self.memory);
        if room >= whole / 2 {
            return self.window.min(room);
        }
        let room = room >> shift << shift;
        if room < whole / 16 || room < self.mss { 0 } else { self.window.min(room) }
    }

    #[inline]
    fn room(&self, waiting: u32) -> u32 {
        let taken = (waiting + self.unread.packets).saturating_mul(PACKET_MEMORY);
        window_of(self.memory.saturating_sub(taken))
    }

    /// True if the next ACK is due at once.
    #[inline]
    pub(crate) fn is_quick(&self) -> bool {
        self.quick > 0
    }

    #[inline]
    pub(crate) fn on_ack_sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
    }

    /// A segment came that had come before.
    pub(crate) fn on_repetition(&mut self) {
        self.quick = QUICK_ACKS;
    }

    /// A segment of data came; `pause` is the least time between two that starts it anew.
    pub(crate) fn on_data(&mut self, pause: Duration, now: Instant) {
        if self.last_data_at.replace(now).is_some_and(|at| now.since(at) > pause) {
            self.quick = QUICK_ACKS;
        }
    }

    /// A full segment echoed a timestamp of ours that is so old. A shorter round trip is believed
    /// at once; a longer one may have waited here, and is smoothed (`tcp_rcv_rtt_update`).
    pub(crate) fn on_echo(&mut self, echo: u32, age: Duration) {
        if self.last_echo.replace(echo) == Some(echo) {
            return;
        }
        let (sample, before) = (age.as_nanos(), self.round_trip_times_8);
        self.round_trip_times_8 = match before {
            0 => sample * 8,
            _ if sample * 8 < before => sample * 8,
            _ => before - before / 8 + sample,
        };
    }

    /// The next bytes in order came; so many packets wait beyond the next hole.
    pub(crate) fn on_in_order(&mut self, bytes: u32, waiting: u32) {
        self.on_joined(bytes);
        self.open(waiting);
    }

    /// Bytes that waited are in order now.
    pub(crate) fn on_joined(&mut self, bytes: u32) {
        let Unread { packets, first_bytes, .. } = &mut self.unread;
        if *packets == 0 {
            *first_bytes = bytes;
        }
        *packets += 1;
        self.unread.bytes = self.unread.bytes.saturating_add(bytes);
    }

    /// The window opens while there is room (`tcp_grow_window`).
    fn open(&mut self, waiting: u32) {
        let room = window_of(self.memory).min(self.room(waiting));
        if self.window < room {
            self.window = room.min(self.window + 2 * self.mss);
            self.quick |= 1;
        }
    }

    /// A packet came out of order and waits, too. What waits needs room beside what a round trip
    /// brings (`tcp_data_queue_ofo`).
    pub(crate) fn on_out_of_order(&mut self, waiting: Waiting) {
        if self.sack {
            self.open(waiting.packets);
        }
        self.make_room(self.read_expected, waiting.span);
    }

    /// The application reads all that is in order, packet by packet (`tcp_rcv_space_adjust`).
    pub(crate) fn read(&mut self, waiting_span: u32, now: Instant) {
        let Unread { packets, bytes, first_bytes } = core::mem::take(&mut self.unread);
        let round_trip = Duration::from_nanos(self.round_trip_times_8 / 8);
        let is_over = !round_trip.is_zero() && now.since(self.read_since) >= round_trip;
        if packets == 0 || !is_over {
            self.read = self.read.saturating_add(bytes);
            return;
        }
        // The round trip ends with the first packet; what waits behind it is not counted.
        let behind = bytes - first_bytes;
        let read = self.read.saturating_add(first_bytes).saturating_sub(behind);
        if read > self.read_expected {
            self.make_room(read, waiting_span);
        }
        self.read = behind;
        self.read_since = now;
    }

    /// What is read in a round trip was sent one earlier: twice that, twice the growth again for a
    /// sender in slow start, and what waits (`tcp_rcvbuf_grow`).
    fn make_room(&mut self, read: u32, waiting_span: u32) {
        let before = u64::from(self.read_expected.max(1));
        let twice = 2 * u64::from(read);
        let growth = 2 * (twice * u64::from(read.saturating_sub(self.read_expected)) / before);
        let window = twice + growth + u64::from(waiting_span);
        let memory = memory_for(u32::try_from(window).unwrap_or(u32::MAX));
        self.memory = self.memory.max(memory.min(self.memory_max));
        self.read_expected = read;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;
    const WINDOW_MAX: u32 = 6 << 20;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn tuning() -> Tuning {
        Tuning::new(MSS, WINDOW_MAX, false)
    }

    fn waiting(packets: u32) -> Waiting {
        Waiting { packets, span: (packets + 1) * MSS }
    }

    /// A segment comes and is read.
    fn take(tuning: &mut Tuning, bytes: u32, now: Instant) {
        tuning.on_in_order(bytes, 0);
        tuning.read(0, now);
    }

    #[test]
    fn the_window_opens_by_two_segments_up_to_its_bound() {
        let mut tuning = tuning();
        assert_eq!(tuning.window(Waiting::default(), 7), 65_160);
        take(&mut tuning, MSS, at(0));
        assert_eq!(tuning.window(Waiting::default(), 7), 65_160 + 2 * MSS);
        (0..100).for_each(|_| take(&mut tuning, MSS, at(0)));
        // 128 KiB less a packet's 2304 bytes, of which 160 in 256 are payload.
        assert_eq!(tuning.window(Waiting::default(), 7), 80_480);
        assert_eq!(tuning.window(waiting(20), 7), (131_072 - 20 * 2304) / 8 * 5);
    }

    #[test]
    fn the_bound_follows_what_is_read_in_a_round_trip() {
        let mut tuning = tuning();
        tuning.on_echo(1, Duration::from_millis(100));
        take(&mut tuning, 20 * MSS, at(99));
        take(&mut tuning, 4 * MSS, at(100));
        // 2 * 24 segments, and 2 * 48 * 14 / 10.
        assert_eq!(tuning.memory, (48 * MSS + 2 * (48 * 14 * MSS / 10)) * 8 / 5);
        let before = tuning.memory;
        take(&mut tuning, 24 * MSS, at(200));
        assert_eq!(tuning.memory, before, "no more than before");
    }

    #[test]
    fn a_shorter_round_trip_is_believed_at_once() {
        let mut tuning = tuning();
        for (echo, age) in [(1, 100), (2, 180), (3, 40)] {
            tuning.on_echo(echo, Duration::from_millis(age));
        }
        assert_eq!(tuning.round_trip_times_8, Duration::from_millis(320).as_nanos());
    }

    #[test]
    fn what_waits_out_of_order_gets_room_of_its_own() {
        let mut tuning = tuning();
        tuning.on_out_of_order(waiting(29));
        assert_eq!(tuning.memory, FIRST_MEMORY, "room enough");
        tuning.on_out_of_order(waiting(49));
        assert_eq!(tuning.memory, (2 * 10 * MSS + 50 * MSS) * 8 / 5);
    }

    #[test]
    fn what_waits_out_of_order_keeps_the_window_from_opening() {
        // Eleven packets leave 66 080 bytes, twelve 64 640: less than is offered already.
        for (packets, expected) in [(10, 66_080), (11, 65_160)] {
            let mut tuning = tuning();
            tuning.on_in_order(MSS, packets);
            assert_eq!(tuning.window, expected);
        }
    }

    #[test]
    fn only_with_sack_do_packets_out_of_order_open_the_window() {
        for (sack, opened) in [(false, 0), (true, 2 * MSS)] {
            let mut tuning = Tuning::new(MSS, WINDOW_MAX, sack);
            tuning.on_out_of_order(waiting(1));
            assert_eq!(tuning.window, 65_160 + opened);
        }
    }

    #[test]
    fn what_was_not_read_takes_room_until_it_is() {
        let mut tuning = tuning();
        (0..20).for_each(|_| take(&mut tuning, MSS, at(0)));
        tuning.on_in_order(MSS, 0);
        (0..19).for_each(|_| tuning.on_joined(MSS));
        assert_eq!(tuning.window(Waiting::default(), 7), (131_072 - 20 * 2304) / 8 * 5);
        tuning.read(0, at(1));
        assert_eq!(tuning.window(Waiting::default(), 7), 80_480);
    }

    #[test]
    fn the_first_acks_and_those_after_a_pause_are_quick() {
        let mut tuning = tuning();
        let pause = Duration::from_millis(200);
        tuning.on_data(pause, at(0));
        (0..QUICK_ACKS).for_each(|_| tuning.on_ack_sent());
        assert!(!tuning.is_quick());
        tuning.on_data(pause, at(200));
        assert!(!tuning.is_quick());
        tuning.on_data(pause, at(401));
        assert!(tuning.is_quick());
    }
}
