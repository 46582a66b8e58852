//! What the page needs to show a mobile host among cells, as columns.

use crate::blob::{Blob, Blobs};
use crate::plot::Spans;
use sansio::{HandoffStage, Instant};
use serde::Serialize;
use trace::roaming::{Roaming, Via};

/// A host's columns. Machines are lanes: 0 the home agent, 1 and so on the base stations of
/// `cells`, the last one the host.
#[derive(Serialize)]
pub(crate) struct RoamingIndex<'a> {
    /// The numbers of the cells that are shown.
    cells: Vec<u16>,
    reached: CellSpans,
    gaps: Spans,
    /// Of each host: from when on which cell serves it.
    served: Vec<Changes>,
    signal: Signal,
    beacons: Beacons,
    ways: Ways,
    messages: Messages<'a>,
    stages: Stages,
    handoffs: Handoffs,
    /// The number of the machine that is the base station of cell 0.
    first_station: u32,
    /// False if there was too much to keep.
    complete: bool,
}

#[derive(Serialize)]
struct CellSpans {
    cell: Blob,
    from: Blob,
    until: Blob,
}

/// Seconds and the cell; NaN for none.
#[derive(Serialize)]
struct Changes {
    at: Blob,
    cell: Blob,
}

/// Seconds, and of each of `cells` its signal in hundredths of a decibel.
#[derive(Serialize)]
struct Signal {
    at: Blob,
    of: Vec<Blob>,
}

/// Seconds, the cell, and 1 for those that the host listens to.
#[derive(Serialize)]
struct Beacons {
    at: Blob,
    cell: Blob,
    taken: Blob,
}

/// Seconds, the base station's cell, and 1 for what comes from another base station.
#[derive(Serialize)]
struct Ways {
    cell: Blob,
    forwarded: Blob,
    packets: Blob,
    from: Blob,
    until: Blob,
}

/// Seconds, lanes, places in `labels` and, of those that were lost, in `causes`.
#[derive(Serialize)]
struct Messages<'a> {
    sent: Blob,
    ended: Blob,
    from: Blob,
    to: Blob,
    label: Blob,
    lost: Blob,
    labels: &'a [String],
    causes: Vec<&'static str>,
}

/// Seconds, places in `names`, and the cell over which packets leave then.
#[derive(Serialize)]
struct Stages {
    at: Blob,
    stage: Blob,
    cell: Blob,
    names: Vec<&'static str>,
}

/// Seconds and cells; NaN for none.
#[derive(Serialize)]
struct Handoffs {
    begin: Blob,
    until: Blob,
    from: Blob,
    to: Blob,
}

pub(crate) fn index<'a>(roaming: &'a Roaming, blobs: &mut Blobs) -> RoamingIndex<'a> {
    let (cells, course) = (roaming.cells(), &roaming.course);
    let end = course.sampled_at.last().copied();
    let end = course.reached.iter().map(|(.., until)| *until).chain(end).max();
    let gaps = roaming.gaps(end.unwrap_or(Instant::ZERO));
    let reached = course.reached.iter();
    let silent = vec![None; course.sampled_at.len()];
    let signals = cells.iter().map(|cell| {
        let values = course.signals.get(cell).unwrap_or(&silent).iter();
        // A signal below the floor reaches nobody, so none is negative.
        blobs.some_whole(values.map(|value| value.and_then(|value| value.try_into().ok())))
    });
    let of = signals.collect();
    let cell = |cell: Option<u16>| cell.map(u64::from);
    let handoffs = roaming.handoffs();
    RoamingIndex {
        reached: CellSpans {
            cell: blobs.whole(reached.clone().map(|(cell, ..)| u64::from(*cell))),
            from: blobs.instants(reached.clone().map(|(_, from, _)| *from)),
            until: blobs.instants(reached.map(|(.., until)| *until)),
        },
        gaps: Spans {
            from: blobs.instants(gaps.iter().map(|(from, _)| *from)),
            until: blobs.instants(gaps.iter().map(|(_, until)| *until)),
        },
        served: roaming.served.iter().map(|changes| of_changes(changes, blobs)).collect(),
        signal: Signal { at: blobs.instants(course.sampled_at.iter().copied()), of },
        beacons: Beacons {
            at: blobs.instants(roaming.beacons.iter().map(|beacon| beacon.at)),
            cell: blobs.whole(roaming.beacons.iter().map(|beacon| beacon.cell.into())),
            taken: blobs.whole(roaming.beacons.iter().map(|beacon| beacon.is_taken.into())),
        },
        ways: of_ways(roaming, blobs),
        messages: of_messages(roaming, &cells, blobs),
        stages: of_stages(roaming, blobs),
        handoffs: Handoffs {
            begin: blobs.instants(handoffs.iter().map(|handoff| handoff.begin)),
            until: blobs.instants(handoffs.iter().map(|handoff| handoff.until)),
            from: blobs.some_whole(handoffs.iter().map(|handoff| cell(handoff.from))),
            to: blobs.some_whole(handoffs.iter().map(|handoff| cell(handoff.to))),
        },
        first_station: roaming.setting().router.0 + 1,
        complete: roaming.complete,
        cells,
    }
}

fn of_changes(changes: &[(Instant, Option<u16>)], blobs: &mut Blobs) -> Changes {
    Changes {
        at: blobs.instants(changes.iter().map(|(at, _)| *at)),
        cell: blobs.some_whole(changes.iter().map(|(_, cell)| cell.map(u64::from))),
    }
}

fn of_ways(roaming: &Roaming, blobs: &mut Blobs) -> Ways {
    let ways = roaming.ways.iter();
    Ways {
        cell: blobs.whole(ways.clone().map(|way| way.cell.into())),
        forwarded: blobs.whole(ways.clone().map(|way| (way.via == Via::BaseStation).into())),
        packets: blobs.whole(ways.clone().map(|way| way.packets)),
        from: blobs.instants(ways.clone().map(|way| way.from)),
        until: blobs.instants(ways.map(|way| way.until)),
    }
}

fn of_messages<'a>(roaming: &'a Roaming, cells: &[u16], blobs: &mut Blobs) -> Messages<'a> {
    let messages = roaming.messages.iter();
    let lane = |node| {
        if node == roaming.setting().router {
            return 0;
        }
        let cell = roaming.cell_of(node);
        let place = cell.and_then(|cell| cells.binary_search(&cell).ok());
        place.map_or(cells.len() + 1, |place| place + 1) as u64
    };
    let mut causes = Vec::new();
    for cause in messages.clone().filter_map(|message| message.lost) {
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    let place = |cause| causes.iter().position(|one| *one == cause).map(|place| place as u64);
    Messages {
        sent: blobs.instants(messages.clone().map(|message| message.sent_at)),
        ended: blobs.some_instants(messages.clone().map(|message| message.ended_at)),
        from: blobs.whole(messages.clone().map(|message| lane(message.from))),
        to: blobs.whole(messages.clone().map(|message| lane(message.to))),
        label: blobs.whole(messages.clone().map(|message| message.label.into())),
        lost: blobs.some_whole(messages.map(|message| message.lost.and_then(place))),
        labels: &roaming.labels,
        causes,
    }
}

fn of_stages(roaming: &Roaming, blobs: &mut Blobs) -> Stages {
    const STAGES: [HandoffStage; 6] = [
        HandoffStage::Begun,
        HandoffStage::RouteChanged,
        HandoffStage::Greeted,
        HandoffStage::Complete,
        HandoffStage::Registered,
        HandoffStage::Failed,
    ];
    let place = |stage| STAGES.iter().position(|one| *one == stage).unwrap_or(STAGES.len());
    let stages = roaming.stages.iter();
    Stages {
        at: blobs.instants(stages.clone().map(|stage| stage.at)),
        stage: blobs.whole(stages.clone().map(|stage| place(stage.stage) as u64)),
        cell: blobs.some_whole(stages.map(|stage| stage.cell.map(u64::from))),
        names: STAGES.map(HandoffStage::name).to_vec(),
    }
}
