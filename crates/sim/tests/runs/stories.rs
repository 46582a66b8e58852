//! What a timeline keeps of a run: queues, caches, the radio's losses, and the story of packets.

use crate::plans::{ROUGH, plans};
use sansio::Cause;
use std::collections::BTreeMap;
use trace::hash::TraceHash;
use trace::story::Deed;
use trace::timeline::Timeline;

fn timelines() -> Vec<(node::Case, Timeline)> {
    let of = |(case, plan): (node::Case, node::Plan)| {
        let mut timeline = Timeline::new(sim::run::transfers(&plan)[0]);
        sim::run(&plan, 3, &mut timeline);
        (case, timeline)
    };
    plans(ROUGH).into_iter().map(of).collect()
}

#[test]
fn lengths_of_queues_are_outside_the_hash() {
    for (case, plan) in plans(ROUGH) {
        let (mut alone, mut beside) = (TraceHash::default(), TraceHash::default());
        sim::run(&plan, 3, &mut alone);
        let mut timeline = Timeline::new(sim::run::transfers(&plan)[0]);
        sim::run(&plan, 3, (&mut beside, &mut timeline));
        assert!(!timeline.queue_down.is_empty(), "{case:?}: something waited");
        assert_eq!((alone.value(), alone.records()), (beside.value(), beside.records()));
    }
}

#[test]
fn lengths_of_a_queue_are_in_order_and_bytes_wait_with_packets() {
    for (case, timeline) in timelines() {
        for queue in [&timeline.queue_down, &timeline.queue_up] {
            assert!(queue.is_sorted_by_key(|one| one.at), "{case:?}");
            for one in queue {
                assert_eq!(one.packets == 0, one.bytes == 0, "{case:?}: {one:?}");
            }
            for pair in queue.windows(2) {
                let step = i64::from(pair[1].packets) - i64::from(pair[0].packets);
                assert_eq!(step.abs(), 1, "{case:?}: one packet at a time, {pair:?}");
            }
        }
    }
}

#[test]
fn every_loss_and_every_copy_has_its_place_in_a_story() {
    for (case, timeline) in timelines() {
        let story = &timeline.story;
        assert!(story.segments.is_sorted_by_key(|one| one.id), "{case:?}");
        let segments: BTreeMap<_, _> = story.segments.iter().map(|one| (one.id, one)).collect();
        let count = |deed| story.steps.iter().filter(|step| step.deed == deed).count();
        let lost = count(Deed::Lost) + count(Deed::QueueFull);
        assert_eq!(lost, timeline.lost.len(), "{case:?}: the losses of the graph");
        let copies = story.segments.iter().filter(|one| one.cause == Cause::LocalRetransmission);
        assert_eq!(copies.count(), timeline.local.len(), "{case:?}: the copies of the graph");
        for step in story.steps.iter().filter(|step| step.packet.is_some()) {
            let known = step.packet.is_some_and(|id| segments.contains_key(&id));
            assert!(known || step.deed == Deed::Rule, "{case:?}: of no segment: {step:?}");
        }
    }
}

/// A local retransmission has a rule at its instant that says why; the later steps of a restart
/// follow from the first, which has one.
#[test]
fn a_local_retransmission_is_told_with_the_rule_that_caused_it() {
    let mut told = 0;
    for (case, timeline) in timelines() {
        let story = &timeline.story;
        for copy in story.segments.iter().filter(|one| one.cause == Cause::LocalRetransmission) {
            let sent = story.steps.iter().find(|step| step.packet == Some(copy.id));
            let sent = sent.expect("it was sent");
            assert_eq!(sent.deed, Deed::Sent, "{case:?}");
            let is_restart = |text: u32| story.texts[text as usize].starts_with("RESTART: ");
            let is_why = |step: &&trace::story::Step| {
                let before = step.at < sent.at && step.text.is_some_and(is_restart);
                step.deed == Deed::Rule && (step.at == sent.at || before)
            };
            let why = story.steps.iter().find(is_why);
            assert!(why.is_some(), "{case:?}: no rule at {:?} for {copy:?}", sent.at);
            told += 1;
        }
    }
    assert!(told > 10, "there were {told} local retransmissions");
}
