//! The agent that a mobile host has left learns where to tunnel (WINC-BS-4, -5; WINC-ST-7, -8).

use super::World;
use super::common::{at_ms, bytes_of, clock, mobile, station, with_bytes};
use mobility::refusal::Refusal;
use mobility::registration::mobile::Outcome;
use mobility::registration::{Replay, foreign};
use sansio::{Instant, Notice, Side};

#[test]
fn winc_bs_4_and_5_the_new_agent_tells_the_previous_one_where_to_tunnel() {
    let mut world = World::new(Replay::Timestamps);
    world.register(1, None, at_ms(0));
    let request = world.ask(2, Some(1), at_ms(1_000));
    let (replies, updates) = world.relay(2, &request, at_ms(1_000));
    let outcome = world.registrar.on_packet(&replies[0], &mut world.outbox, at_ms(1_000));
    assert_eq!((outcome, world.care_of(at_ms(1_000))), (Some(Outcome::Accepted), Some(station(2))));
    assert_eq!(updates.len(), 1);
    let moved =
        world.agents[0].on_packet(Side::WIRED, &updates[0], &mut world.outbox, at_ms(1_001));
    let registered_at = clock().read(at_ms(1_000));
    assert_eq!(moved, Some(foreign::Outcome::Moved { mobile: mobile(1), registered_at }));
    assert!(!world.agents[0].has(mobile(1), at_ms(1_001)));
    let care_of = |world: &World, now| {
        world.agents[0].next_agent(mobile(1), now).map(|binding| binding.care_of)
    };
    // WINC-ST-7: for 10 s (PAR-15), and no nanosecond longer.
    assert_eq!(care_of(&world, at_ms(11_000)), Some(station(2)));
    assert_eq!(care_of(&world, at_ms(11_001)), None);
    // The acknowledge ends the repetitions, and says that the tunnel is open (WINC-BS-12).
    let acknowledge = world.outbox.only(Side::WIRED);
    assert!(world.agents[1].next_deadline().is_some_and(|due| due.timer == "binding update"));
    assert!(world.agents[1].tells(mobile(1)));
    let told =
        world.agents[1].on_packet(Side::WIRED, &acknowledge, &mut world.outbox, at_ms(1_002));
    assert_eq!(told, Some(foreign::Outcome::Told(mobile(1))));
    assert!(!world.agents[1].tells(mobile(1)));
    assert!(world.agents[1].next_deadline().is_none_or(|due| due.timer != "binding update"));
    // The same update again: answered, and nothing else.
    world.agents[0].on_packet(Side::WIRED, &updates[0], &mut world.outbox, at_ms(1_100));
    world.outbox.only(Side::WIRED);
    assert_eq!(care_of(&world, at_ms(11_001)), None);
}

#[test]
fn winc_st_7_the_end_of_a_binding_is_told() {
    let mut world = World::new(Replay::Timestamps);
    world.register(1, None, at_ms(0));
    let request = world.ask(2, Some(1), at_ms(1_000));
    let (_, updates) = world.relay(2, &request, at_ms(1_000));
    world.agents[0].on_packet(Side::WIRED, &updates[0], &mut world.outbox, at_ms(1_001));
    let end = at_ms(11_001);
    world.agents[0].on_timer(&mut world.outbox, Instant::from_nanos(end.as_nanos() - 1));
    assert_eq!(world.outbox.notices, []);
    world.agents[0].on_timer(&mut world.outbox, end);
    assert_eq!(world.outbox.notices, [Notice::BindingExpired(mobile(1).into())]);
}

#[test]
fn an_update_that_nobody_answers_is_repeated_three_times() {
    let mut world = World::new(Replay::Timestamps);
    let request = world.ask(2, Some(1), at_ms(0));
    let (_, updates) = world.relay(2, &request, at_ms(0));
    let mut sent = updates.len();
    for ms in [50, 100, 150, 200, 250] {
        world.agents[1].on_timer(&mut world.outbox, at_ms(ms));
        sent += world.outbox.take().len();
    }
    assert_eq!(sent, 4);
}

#[test]
fn winc_st_8_a_mobile_host_that_returns_takes_its_binding_back() {
    let mut world = World::new(Replay::Timestamps);
    world.register(1, None, at_ms(0));
    let request = world.ask(2, Some(1), at_ms(1_000));
    let (_, updates) = world.relay(2, &request, at_ms(1_000));
    world.agents[0].on_packet(Side::WIRED, &updates[0], &mut world.outbox, at_ms(1_001));
    world.outbox.take();
    assert_eq!(world.register(1, Some(2), at_ms(2_000)), Some(Outcome::Accepted));
    assert!(world.agents[0].next_agent(mobile(1), at_ms(2_000)).is_none());
    // The update of the visit before comes late: it is older than the return.
    world.agents[0].on_packet(Side::WIRED, &updates[0], &mut world.outbox, at_ms(2_500));
    assert!(world.agents[0].next_agent(mobile(1), at_ms(2_500)).is_none());
    assert!(world.agents[0].has(mobile(1), at_ms(2_500)));
    assert_eq!(world.agents[0].refusals().of(Refusal::Replayed), 1);
}

#[test]
fn mod_10_an_old_request_repeated_at_the_previous_agent_changes_nothing_there() {
    let mut world = World::new(Replay::Timestamps);
    let old = world.ask(1, None, at_ms(0));
    world.relay(1, &old, at_ms(0));
    let request = world.ask(2, Some(1), at_ms(1_000));
    let (_, updates) = world.relay(2, &request, at_ms(1_000));
    world.agents[0].on_packet(Side::WIRED, &updates[0], &mut world.outbox, at_ms(1_001));
    world.outbox.take();
    // Within the tolerance it is known to be old; beyond it the home agent refuses it.
    for ms in [2_000, 8_500] {
        let (replies, told) = world.relay(1, &old, at_ms(ms));
        let next = world.agents[0].next_agent(mobile(1), at_ms(ms)).map(|next| next.care_of);
        assert_eq!((next, told.len()), (Some(station(2)), 0), "at {ms} ms");
        assert!(!world.agents[0].has(mobile(1), at_ms(ms)));
        assert_eq!(replies.len(), usize::from(ms > 7_000));
    }
    assert_eq!(world.care_of(at_ms(8_500)), Some(station(2)));
}

#[test]
fn mod_10_forged_updates_move_nobody() {
    let mut world = World::new(Replay::Timestamps);
    world.register(1, None, at_ms(0));
    let request = world.ask(2, Some(1), at_ms(1_000));
    let (_, updates) = world.relay(2, &request, at_ms(1_000));
    let good = bytes_of(&updates[0]);
    for at in 0..good.len() {
        let mut bytes = good.to_vec();
        bytes[at] ^= 0x04;
        for end in [bytes.len(), at] {
            let packet = with_bytes(&updates[0], bytes[..end].to_vec(), &mut world.outbox);
            world.agents[0].on_packet(Side::WIRED, &packet, &mut world.outbox, at_ms(1_001));
            assert!(world.agents[0].next_agent(mobile(1), at_ms(1_001)).is_none(), "byte {at}");
            assert!(world.agents[0].has(mobile(1), at_ms(1_001)), "byte {at}");
        }
    }
    // It holds at no other agent.
    world.agents[1].on_packet(Side::WIRED, &updates[0], &mut world.outbox, at_ms(1_001));
    assert_eq!(world.agents[1].refusals().of(Refusal::NotProved), 1);
    // From the radio nobody may send one.
    world.agents[0].on_packet(Side::RADIO, &updates[0], &mut world.outbox, at_ms(1_001));
    assert_eq!(world.agents[0].refusals().of(Refusal::Misdirected), 1);
    assert!(world.agents[0].has(mobile(1), at_ms(1_001)));
}
