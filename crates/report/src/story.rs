//! What the page needs to tell a packet's story: packets and steps as columns.
//!
//! A page of a large transfer keeps only the bytes that have something to tell: those that were
//! lost, refused, discarded or sent more than once, and what was reported about them. Of all others
//! the story is "sent and acknowledged", which the graph shows.

use crate::blob::{Blob, Blobs};
use sansio::Cause;
use serde::Serialize;
use std::collections::BTreeSet;
use trace::story::{Deed, Segment, Step, Story};
use trace::timeline::Timeline;

/// More steps than this, about 1 MB of a page, and only what has something to tell is kept.
const STEPS_MAX: usize = 100_000;

/// A story's columns. Every number that may be missing is NaN in the page.
#[derive(Serialize)]
pub(crate) struct StoryIndex<'a> {
    id: Blob,
    parent: Blob,
    /// Places in `causes`.
    cause: Blob,
    offset: Blob,
    length: Blob,
    causes: [&'static str; 6],
    steps: Steps,
    texts: &'a [String],
    /// Numbers of the machines at which the stream begins and ends.
    sender: u32,
    receiver: u32,
    /// False if only what has something to tell was kept.
    complete: bool,
}

#[derive(Serialize)]
struct Steps {
    at: Blob,
    node: Blob,
    packet: Blob,
    offset: Blob,
    /// Places in `deeds`.
    deed: Blob,
    deeds: [&'static str; 9],
    text: Blob,
}

/// In the order of [`Cause`].
const CAUSES: [&str; 6] =
    ["original", "end-to-end", "local", "probe", "agent-ack", "encapsulation"];

/// In the order of [`Deed`].
const DEEDS: [&str; 9] = [
    "sent",
    "departed",
    "arrived",
    "lost",
    "queue-full",
    "discarded",
    "rule",
    "timeout",
    "fast-retransmit",
];

pub(crate) fn index<'a>(timeline: &'a Timeline, blobs: &mut Blobs) -> StoryIndex<'a> {
    let Story { segments, steps, texts, .. } = &timeline.story;
    let complete = steps.len() <= STEPS_MAX;
    let (segments, steps): (Vec<&Segment>, Vec<&Step>) = if complete {
        (segments.iter().collect(), steps.iter().collect())
    } else {
        eventful(segments, steps)
    };
    let number = |id: sansio::PacketId| id.0.get();
    StoryIndex {
        id: blobs.whole(segments.iter().map(|one| number(one.id))),
        parent: blobs.some_whole(segments.iter().map(|one| one.parent.map(number))),
        cause: blobs.whole(segments.iter().map(|one| one.cause as u64)),
        offset: blobs.whole(segments.iter().map(|one| one.offset)),
        length: blobs.whole(segments.iter().map(|one| one.length.into())),
        causes: CAUSES,
        steps: Steps {
            at: blobs.instants(steps.iter().map(|step| step.at)),
            node: blobs.whole(steps.iter().map(|step| step.node.0.into())),
            packet: blobs.some_whole(steps.iter().map(|step| step.packet.map(number))),
            offset: blobs.some_whole(steps.iter().map(|step| step.offset)),
            deed: blobs.whole(steps.iter().map(|step| step.deed as u64)),
            deeds: DEEDS,
            text: blobs.some_whole(steps.iter().map(|step| step.text.map(u64::from))),
        },
        texts,
        sender: timeline.sender().0,
        receiver: timeline.receiver().0,
        complete,
    }
}

/// What has something to tell: the bytes that more than one packet carried, or that a packet lost.
fn eventful<'a>(segments: &'a [Segment], steps: &'a [Step]) -> (Vec<&'a Segment>, Vec<&'a Step>) {
    let place = |step: &Step| {
        let found = |id| segments.binary_search_by_key(&id, |segment| segment.id).ok();
        step.packet.and_then(found).map(|index| &segments[index])
    };
    let is_copy = |segment: &&Segment| segment.cause != Cause::Original;
    let went_wrong =
        |step: &&Step| matches!(step.deed, Deed::Lost | Deed::QueueFull | Deed::Discarded);
    let copied = segments.iter().filter(is_copy);
    let lost = steps.iter().filter(went_wrong).filter_map(place);
    let offsets: BTreeSet<u64> = copied.chain(lost).map(|segment| segment.offset).collect();
    let tells = |segment: &Segment| offsets.contains(&segment.offset);
    let kept = |step: &&Step| place(step).map_or(step.packet.is_none(), tells);
    (segments.iter().filter(|one| tells(one)).collect(), steps.iter().filter(kept).collect())
}
