//! A made-up mobile host that goes from cell to cell, for the page's own tests.

use sansio::{Duration, HandoffStage, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use trace::NodeId;
use trace::roaming::{Beacon, Course, Message, Roaming, Setting, Stage, Via, Way};

const CELLS: u16 = 3;
const EVERY: u64 = 4;

/// A crossing every four seconds, with a gap of 300 ms; `by_registration` says what is told whom.
pub(crate) fn invented(by_registration: bool, end: Instant) -> Roaming {
    let mut roaming = Roaming::new(Setting {
        router: NodeId(0),
        cells: CELLS,
        hosts: vec![NodeId(5), NodeId(7)],
        home: Ipv4Addr::new(10, 128, 0, 1),
        group: Ipv4Addr::new(239, 192, 0, 0),
        home_agent: Ipv4Addr::new(172, 31, 255, 254),
    });
    let mut course = Course { first: vec![0, 1], ..Course::default() };
    let seconds = end.since(Instant::ZERO).as_millis() / 1000;
    let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    let gap = 300;
    for stay in 0..=seconds / EVERY {
        let cell = (stay % u64::from(CELLS)) as u16;
        let begin = stay * EVERY * 1000;
        let from = if stay == 0 { 0 } else { begin + gap };
        let until = at(begin + EVERY * 1000).min(end);
        course.reached.push((cell, at(from), until));
        roaming.ways.push(Way {
            cell,
            via: Via::HomeAgent,
            from: at(from + 60),
            until,
            packets: 600,
        });
        for second in 0..EVERY {
            let at = at(from + 20 + 1000 * second);
            roaming.beacons.push(Beacon { at, cell, is_taken: second > 0 || stay > 0 });
        }
        if stay > 0 {
            handoff(&mut roaming, by_registration, (at(begin), at(from + 20)), cell);
        }
    }
    sample(&mut course, end);
    roaming.with_course(course);
    roaming
}

/// The messages of a handoff that a beacon begins.
fn handoff(
    roaming: &mut Roaming,
    by_registration: bool,
    (crossing, beacon): (Instant, Instant),
    cell: u16,
) {
    let old = (cell + CELLS - 1) % CELLS;
    let (router, mobile) = (NodeId(0), NodeId(5));
    let station = |cell: u16| NodeId(1 + u32::from(cell));
    roaming.crossings.push((crossing, old, cell));
    let request = [
        (0, mobile, station(cell), "registration request, 1800 s"),
        (6, station(cell), router, "registration request, 1800 s"),
        (18, router, station(cell), "registration reply, accepted"),
        (29, station(cell), mobile, "registration reply, accepted"),
    ];
    let greeting = [
        (0, mobile, station(cell), "greeting"),
        (5, station(cell), mobile, "greeting acknowledged"),
        (6, station(cell), router, "moved notice"),
        (17, router, station(old), "moved notice"),
        (29, station(old), router, "handoff acknowledged, 4 buffered"),
        (40, router, station(cell), "handoff acknowledged, 4 buffered"),
        (52, station(cell), mobile, "completion"),
    ];
    let greeting = if by_registration { &greeting[..0] } else { &greeting[..] };
    for (number, &(ms, from, to, what)) in request.iter().chain(greeting).enumerate() {
        let known = roaming.labels.iter().position(|label| label == what);
        let label = known.unwrap_or_else(|| {
            roaming.labels.push(what.to_owned());
            roaming.labels.len() - 1
        });
        let sent_at = beacon + Duration::from_millis(ms);
        let ended_at = Some(sent_at + Duration::from_millis(5));
        let lost = (number == 0 && cell == 2).then_some("bit_error");
        roaming.messages.push(Message { sent_at, ended_at, from, to, label: label as u32, lost });
    }
    let stages = [
        (0, HandoffStage::Begun),
        (11, HandoffStage::RouteChanged),
        (35, HandoffStage::Registered),
        (58, HandoffStage::Complete),
    ];
    for (ms, stage) in stages {
        let at = beacon + Duration::from_millis(ms);
        roaming.stages.push(Stage { at, stage, cell: Some(if ms == 0 { old } else { cell }) });
    }
    let served = beacon + Duration::from_millis(11);
    roaming.served[0].push((served, Some(cell)));
    roaming.served[1].push((served + Duration::from_secs(1), Some(old)));
    let until = served + Duration::from_millis(90);
    roaming.ways.push(Way { cell, via: Via::BaseStation, from: served, until, packets: 12 });
}

/// The signal rises and falls in each cell.
fn sample(course: &mut Course, end: Instant) {
    let mut now = Instant::ZERO;
    let mut signals: BTreeMap<u16, Vec<Option<i32>>> = BTreeMap::new();
    while now <= end {
        course.sampled_at.push(now);
        for cell in 0..CELLS {
            let stay = course
                .reached
                .iter()
                .find(|(of, from, until)| *of == cell && *from <= now && now <= *until);
            let signal = stay.map(|(_, from, until)| {
                let edge = now.since(*from).min(until.since(now)).as_secs_f64();
                400 + (edge * 800.0) as i32
            });
            signals.entry(cell).or_default().push(signal);
        }
        now += Duration::from_millis(100);
    }
    course.signals = signals;
}
