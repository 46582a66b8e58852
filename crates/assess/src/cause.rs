//! Why a connection made no progress, or lost packets: the evidence first, then one rule a cause.
//!
//! A *stall* is a gap in what the receiver acknowledges: longer than one and a half smoothed round
//! trips and 100 ms more. The rules, in this order; the first one that holds gives the cause:
//!
//! 1. **Receiver**: nothing more could be sent, for the window that the receiver offered was
//!    smaller than a segment.
//! 2. **Application**: all that had been sent was acknowledged, the window was open, and the sender
//!    was silent. Behind the loss, where lost packets are never seen, the same silence is an outage
//!    if the sender's IP identifications show packets that never came, or its first packet was
//!    under way for as long as the silence, or it came alone and full and repeated nothing seen.
//! 3. **Outage**, packets lost: of what was outstanding nothing arrived, and either there were at
//!    least four segments or two attempts in a row failed. **Handoff** if the path was another one
//!    afterwards: its shortest round trip differs by a quarter and 4 ms, or the hop count changed.
//! 4. **Outage**, packets held: nothing was lost; what had been sent before the silence was
//!    acknowledged after it. **Handoff** in the same way.
//! 5. **Congestion**: packets were lost while the queue was as long as it ever gets in this
//!    connection (70 % of the difference between the 95th percentile and the floor of the round
//!    trips, and that difference is worth the name), or a router marked congestion. A queue whose
//!    median is within 5 % of that is one that a window fills, and no sign of congestion.
//! 6. **Radio**: packets were lost, or the ACK of the last few, and the queue was shorter.
//! 7. **Unknown**, with the reason why no rule decides.
//!
//! What these rules cannot tell: a router that drops at random before its queue is full, or a
//! policer that has no queue, from a radio; and a radio whose losses come when its queue is long
//! from congestion.

use sansio::{Duration, Instant};
use serde::Serialize;

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// Losses that no queue explains.
    Radio,
    /// The path delivered nothing for a while: it lost everything, or held it.
    Outage,
    /// The same, and afterwards the path was another one.
    Handoff,
    /// A queue was full, or a router said so.
    Congestion,
    /// Nothing to send.
    Application,
    /// The receiver's window was zero or smaller than a segment.
    Receiver,
    /// No rule decides.
    Unknown,
}

impl Cause {
    /// All, in the order in which they are shown.
    pub const ALL: [Cause; 7] = [
        Cause::Radio,
        Cause::Outage,
        Cause::Handoff,
        Cause::Congestion,
        Cause::Application,
        Cause::Receiver,
        Cause::Unknown,
    ];

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Radio => "radio",
            Cause::Outage => "outage",
            Cause::Handoff => "handoff",
            Cause::Congestion => "congestion",
            Cause::Application => "application",
            Cause::Receiver => "receiver",
            Cause::Unknown => "unknown",
        }
    }

    /// Its place in [`Cause::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// What was seen of a stall.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The last progress before.
    pub from: Instant,
    /// The next progress, or the end of the capture.
    pub until: Instant,
    /// Segments sent and not acknowledged when it began; behind the loss those seen there.
    pub outstanding: u32,
    /// The window that the receiver offered then, in bytes, if its scale is known or it is zero.
    pub window_bytes: Option<u32>,
    /// The largest segment seen, in bytes.
    pub mss: u32,
    /// Packets of the receiver during it.
    pub receiver_packets: u32,
    /// The longest time without one.
    pub receiver_silence: Duration,
    /// Duplicate ACKs during it.
    pub dupacks: u32,
    /// Segments that SACK blocks newly show as arrived.
    pub newly_sacked: u32,
    /// Segments that the sender sent during it, new or again.
    pub sent: u32,
    /// The lowest outstanding segment was sent more than once, and that was needed.
    pub sent_again: bool,
    /// Times at which the lowest outstanding segment was sent again.
    pub attempts: Vec<Instant>,
    /// The ACK that ended it answers the first transmission: nothing had been lost.
    pub answers_original: bool,
    /// That ACK reports a segment that came twice (D-SACK, RFC 2883): an attempt brought it about.
    pub reports_repeat: bool,
    /// The capture ended before any progress.
    pub unfinished: bool,
    /// Holes at this place: packets lost on the way to it.
    pub missing_here: bool,
    /// How it looked when the sender's next packet came (only if nothing was outstanding).
    pub resumed: Option<Resumed>,
    /// Segments of those outstanding that had to be sent again after it.
    pub lost_after: u32,
    /// Queueing delay when packets were lost.
    pub queue_at_loss: Option<Duration>,
    /// A router marked congestion shortly before or during it.
    pub marked: bool,
    /// The receiver's packets come over another number of hops since.
    pub hops_changed: bool,
}

/// The first packets after a silence with nothing outstanding.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resumed {
    /// Packets missing by the sender's IP identifications, if it counts by them.
    pub missing: Option<u32>,
    /// How much longer than the fastest the first packet was under way to here.
    pub excess: Option<Duration>,
    /// The first packet was a full segment, and none followed for half a round trip.
    pub lonely: bool,
    /// What was sent before the silence looked like the middle of a bulk transfer: full segments.
    pub was_bulk: bool,
}

/// What is known of the path when the verdict falls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// The shortest round trip from here to the receiver before.
    pub floor_before: Option<Duration>,
    /// The shortest of the last 16 before.
    pub recent_before: Option<Duration>,
    /// The shortest of those whose packet was sent after it, if there were enough.
    pub floor_after: Option<Duration>,
    /// Queueing delay when the queue is as long as it gets.
    pub queue_full: Option<Duration>,
    /// Queueing delay that half of the round trips stay below.
    pub queue_usual: Option<Duration>,
    /// Smoothed round trip before.
    pub smoothed: Option<Duration>,
}

impl Path {
    fn queue_before(&self) -> Option<Duration> {
        let (recent, floor) = self.recent_before.zip(self.floor_before)?;
        Some(recent.saturating_sub(floor))
    }
}

/// A cause, and what speaks for it in a sentence.
pub type Verdict = (Cause, String);

/// The stall's cause.
pub fn of_stall(seen: &Evidence, path: &Path) -> Verdict {
    match kind(seen) {
        Kind::WindowClosed(window) => (
            Cause::Receiver,
            format!(
                "the receiver offered {} and the sender waited",
                if window == 0 { "no window".into() } else { format!("{window} bytes of window") }
            ),
        ),
        Kind::Silence(resumed) => of_silence(seen, &resumed, path),
        Kind::NothingArrived { failed } => {
            let mut what =
                format!("none of {} outstanding segments arrived", seen.outstanding.max(1));
            if failed > 0 {
                what += &format!(", {failed} attempts to send the lowest again failed");
            }
            outage(seen, path, Queue::Drained, what)
        }
        Kind::Held => {
            let silent = show(seen.receiver_silence);
            let what = format!("nothing was lost, but nothing came for {silent}");
            outage(seen, path, Queue::Kept, what)
        }
        Kind::AckLost => {
            let queue = seen.queue_at_loss.or(path.queue_before());
            of_loss(queue, seen.marked, path, "the ACK of the last segments was lost")
        }
        Kind::Lost => of_loss(seen.queue_at_loss, seen.marked, path, "packets were lost"),
        Kind::Unclear(why) => (Cause::Unknown, why.into()),
    }
}

/// What kind of gap it was.
enum Kind {
    WindowClosed(u32),
    /// Nothing was outstanding.
    Silence(Resumed),
    /// Of what was outstanding nothing arrived; so many attempts failed.
    NothingArrived {
        failed: usize,
    },
    /// All of it arrived late.
    Held,
    /// A few segments arrived, and their ACK only with what was sent after them.
    AckLost,
    /// Some of it arrived, some did not.
    Lost,
    Unclear(&'static str),
}

/// A flight of which this many segments vanish was not the tail of a transfer by chance.
const SEGMENTS_OF_OUTAGE: u32 = 4;
/// This many failed attempts in a row are no accident, either.
const ATTEMPTS_OF_OUTAGE: usize = 2;

/// Of this many, not all ACKs are lost by chance.
const SEGMENTS_HELD: u32 = 8;

fn kind(seen: &Evidence) -> Kind {
    if let Some(window) = seen.window_bytes.filter(|window| *window < seen.mss.max(1)) {
        return Kind::WindowClosed(window);
    }
    if let Some(resumed) = seen.resumed {
        return Kind::Silence(resumed);
    }
    let nothing_arrived = seen.dupacks == 0 && seen.newly_sacked == 0 && !seen.missing_here;
    // The last attempt is the one that was answered, unless nothing was.
    let failed = seen.attempts.len().saturating_sub(usize::from(!seen.unfinished));
    let many = seen.outstanding >= SEGMENTS_OF_OUTAGE;
    let nothing_lost = seen.answers_original || seen.attempts.is_empty() && !seen.sent_again;
    match () {
        () if failed >= ATTEMPTS_OF_OUTAGE && !seen.answers_original => {
            Kind::NothingArrived { failed }
        }
        () if !nothing_arrived => Kind::Lost,
        () if seen.unfinished && seen.attempts.is_empty() => {
            Kind::Unclear("the capture ended before anything was sent again")
        }
        () if many && (seen.lost_after >= SEGMENTS_OF_OUTAGE || !nothing_lost) => {
            Kind::NothingArrived { failed }
        }
        () if !nothing_lost => Kind::Lost,
        () if seen.outstanding >= SEGMENTS_HELD => Kind::Held,
        () if seen.until.since(seen.from) >= LATE_ACK => Kind::Held,
        () if seen.sent > 0 => Kind::AckLost,
        () => Kind::Unclear("the ACK of a few segments came late, and nothing was sent again"),
    }
}

/// A receiver may wait half a second with the ACK of a lone segment (RFC 1122, 4.2.3.2).
const LATE_ACK: Duration = Duration::from_millis(600);

fn of_silence(seen: &Evidence, resumed: &Resumed, path: &Path) -> Verdict {
    let silence = seen.until.since(seen.from);
    let held = resumed.excess.filter(|excess| *excess * 2 >= silence);
    if let Some(excess) = held {
        let under_way = show(excess);
        let what = format!("the first packet after it was held for {under_way}");
        return outage(seen, path, Queue::Kept, what);
    }
    match resumed.missing.filter(|_| resumed.was_bulk) {
        Some(missing) if missing >= SEGMENTS_OF_OUTAGE => {
            let what = format!("{missing} packets of the sender never came here");
            return outage(seen, path, Queue::Drained, what);
        }
        Some(1..) => {
            let what = "the last packets before it never came here: they were lost";
            return of_loss(seen.queue_at_loss, seen.marked, path, what);
        }
        _ => {}
    }
    if resumed.missing.is_none() && resumed.lonely && resumed.was_bulk {
        let what = "a full segment came alone after it, as after a timeout";
        return outage(seen, path, Queue::Drained, what.into());
    }
    let what = "all that was sent had been acknowledged, and the window was open";
    (Cause::Application, what.into())
}

/// The path's queue after an outage: empty if it lost everything.
#[derive(Clone, Copy, PartialEq)]
enum Queue {
    Drained,
    Kept,
}

/// An outage, or a handoff if the path is another one since.
fn outage(seen: &Evidence, path: &Path, queue: Queue, what: String) -> Verdict {
    if seen.hops_changed {
        return (Cause::Handoff, format!("{what}; since then packets come over other hops"));
    }
    if let Some((before, after)) = path_changed(path, queue) {
        let (before, after) = (show(before), show(after));
        let change = format!("the shortest round trip was {before} before and is {after} since");
        return (Cause::Handoff, format!("{what}; {change}"));
    }
    (Cause::Outage, what)
}

/// The shortest round trips before and after, if they differ by a quarter and 4 ms. Unless the
/// queue was drained, a longer one has to be longer than those just before, too: a queue that stood
/// before stands again.
fn path_changed(path: &Path, queue: Queue) -> Option<(Duration, Duration)> {
    const LEAST: Duration = Duration::from_millis(4);
    let (before, after) = path.floor_before.zip(path.floor_after)?;
    let differs = |a: Duration, b: Duration| b > a + a / 4 && b > a + LEAST;
    let stands = queue == Queue::Kept && !differs(path.recent_before?, after);
    let longer = differs(before, after) && !stands;
    let shorter = differs(after, before);
    (longer || shorter).then_some((before, after))
}

/// The cause of losses: a full queue, or none.
pub fn of_loss(queue: Option<Duration>, marked: bool, path: &Path, what: &'static str) -> Verdict {
    if marked {
        return (Cause::Congestion, format!("{what}, and a router marked congestion"));
    }
    let Some((queue, full)) = queue.zip(path.queue_full) else {
        return (Cause::Unknown, format!("{what}, and no round trip tells of the queue"));
    };
    let floor = path.floor_before.unwrap_or(Duration::ZERO);
    // Below this a queue is not told from jitter.
    let told_from = Duration::from_millis(2).max(floor / 10);
    let (shown, shown_full) = (show(queue), show(full));
    // A queue that always stands as high is a window's, not one that overflows: an overflow makes
    // the sender let it run down.
    let never_runs_down = path.queue_usual.is_some_and(|usual| usual * 20 >= full * 19);
    if full >= told_from && never_runs_down {
        return (Cause::Radio, format!("{what} while {shown} of queue stood, as ever"));
    }
    if full >= told_from && queue * 10 >= full * 7 {
        let what = format!("{what} while {shown} of queue stood, of {shown_full} at most");
        return (Cause::Congestion, what);
    }
    (Cause::Radio, format!("{what} while {shown} of queue stood, of {shown_full} at most"))
}

/// Milliseconds below a second, seconds above.
pub(crate) fn show(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}
