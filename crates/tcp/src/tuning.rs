//! How a Linux receiver opens its window and when it acknowledges at once.
//!
//! The window begins at 64 KiB, opens by two segments with each that arrives while there is room
//! beside what waits, and stops at a bound that follows what the application read in a round trip
//! (dynamic right-sizing, Fisk and Feng 2001; `tcp_rcv_space_adjust`, `tcp_grow_window`). The first
//! segments, those that open the window, and those after a pause or a repetition are acknowledged
//! one by one
//! (`tcp_enter_quickack_mode`).

use sansio::{Duration, Instant};

/// What the receiver knows of its peer's pace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tuning {
    /// Window to offer, bytes.
    window: u32,
    /// What it may grow to, bytes.
    bound: u32,
    /// Payload of a full segment, bytes.
    mss: u32,
    /// ACKs to send at once.
    quick: u32,
    last_data_at: Option<Instant>,
    /// Eight times the smoothed round-trip time as this end sees it, ns; zero before a sample.
    round_trip_times_8: u64,
    last_echo: Option<u32>,
    /// Most bytes read in a round trip.
    read_max: u32,
    /// Bytes read in this one, and when it began.
    read: u32,
    read_since: Instant,
}

/// ACKs sent at once (`TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;
/// First bound, bytes: the part of the default buffer (`tcp_rmem`, 128 KiB) that is payload when
/// full segments of Ethernet fill it, each 1448 bytes of 2304 (`scaling_ratio`, of 256).
const FIRST_BOUND: u32 = 160 * 512;
/// Segments of a first window; so many bytes read in a round trip are expected.
const FIRST_READ_SEGMENTS: u32 = 10;

impl Tuning {
    /// Before the handshake; segments will have at most `mss` bytes.
    pub(crate) fn new(mss: u32) -> Self {
        Tuning {
            window: u32::from(u16::MAX) / mss * mss,
            bound: FIRST_BOUND,
            mss,
            quick: QUICK_ACKS,
            last_data_at: None,
            round_trip_times_8: 0,
            last_echo: None,
            read_max: FIRST_READ_SEGMENTS * mss,
            read: 0,
            read_since: Instant::ZERO,
        }
    }

    /// The window to offer while so many bytes take room, read or not in order, bytes.
    #[inline]
    pub(crate) fn window(&self, held: u64) -> u32 {
        self.window.min(self.room(held))
    }

    #[inline]
    fn room(&self, held: u64) -> u32 {
        u64::from(self.bound).saturating_sub(held) as u32
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
        match self.last_data_at.replace(now) {
            None => self.read_since = now,
            Some(at) if now.since(at) > pause => self.quick = QUICK_ACKS,
            Some(_) => {}
        }
    }

    /// A full segment echoed a timestamp of ours that is so old.
    pub(crate) fn on_echo(&mut self, echo: u32, age: Duration) {
        if self.last_echo.replace(echo) == Some(echo) {
            return;
        }
        let sample = age.as_nanos();
        self.round_trip_times_8 = match self.round_trip_times_8 {
            0 => sample * 8,
            smoothed => smoothed - smoothed / 8 + sample,
        };
    }

    /// The next bytes in order came, and the window may open; so many take room, they included.
    pub(crate) fn on_in_order(&mut self, held: u64) {
        let room = self.room(held);
        if self.window < room {
            self.window = room.min(self.window + 2 * self.mss);
            self.quick |= 1;
        }
    }

    /// Bytes came out of order; the last of them ends so far from what is expected. They need room
    /// beside what a round trip brings (`tcp_data_queue_ofo`).
    pub(crate) fn on_out_of_order(&mut self, span: u32) {
        self.bound = self.bound.max(self.read_max.saturating_mul(2).saturating_add(span));
    }

    /// The application read so many bytes.
    pub(crate) fn on_read(&mut self, bytes: u32, now: Instant) {
        self.read = self.read.saturating_add(bytes);
        let round_trip = Duration::from_nanos(self.round_trip_times_8 / 8);
        if round_trip == Duration::ZERO || now.since(self.read_since) < round_trip {
            return;
        }
        if self.read > self.read_max {
            // What was read in a round trip was sent one earlier: twice that, and twice the
            // growth again for a sender in slow start.
            let (read, before) = (u64::from(self.read), u64::from(self.read_max.max(1)));
            let bound = 2 * read + 2 * (2 * read * (read - before) / before);
            self.bound = self.bound.max(u32::try_from(bound).unwrap_or(u32::MAX));
            self.read_max = self.read;
        }
        self.read = 0;
        self.read_since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_window_opens_by_two_segments_up_to_its_bound() {
        let mut tuning = Tuning::new(MSS);
        assert_eq!(tuning.window(0), 65_160);
        tuning.on_in_order(1448);
        assert_eq!(tuning.window(0), 65_160 + 2 * MSS);
        (0..100).for_each(|_| tuning.on_in_order(1448));
        assert_eq!(tuning.window(0), FIRST_BOUND - 1448, "beside the segment itself");
        assert_eq!(tuning.window(60_000), FIRST_BOUND - 60_000);
    }

    #[test]
    fn the_bound_follows_what_is_read_in_a_round_trip() {
        let mut tuning = Tuning::new(MSS);
        tuning.on_echo(1, Duration::from_millis(100));
        tuning.on_read(20 * MSS, at(99));
        tuning.on_read(4 * MSS, at(100));
        // 2 * 24 segments, and 2 * 48 * 14 / 10.
        assert_eq!(tuning.bound, 48 * MSS + 2 * (48 * 14 * MSS / 10));
        let before = tuning.bound;
        tuning.on_read(24 * MSS, at(200));
        assert_eq!(tuning.bound, before, "no more than before");
    }

    #[test]
    fn what_waits_out_of_order_gets_room_of_its_own() {
        let mut tuning = Tuning::new(MSS);
        tuning.on_out_of_order(30 * MSS);
        assert_eq!(tuning.bound, FIRST_BOUND, "room enough");
        tuning.on_out_of_order(50 * MSS);
        assert_eq!(tuning.bound, 2 * 10 * MSS + 50 * MSS);
    }

    #[test]
    fn what_waits_out_of_order_keeps_the_window_from_opening() {
        let mut tuning = Tuning::new(MSS);
        tuning.on_in_order(u64::from(FIRST_BOUND) - 65_160);
        assert_eq!(tuning.window(0), 65_160, "no room for more");
        tuning.on_in_order(u64::from(FIRST_BOUND) - 65_161);
        assert_eq!(tuning.window(0), 65_161);
    }

    #[test]
    fn the_first_acks_and_those_after_a_pause_are_quick() {
        let mut tuning = Tuning::new(MSS);
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
