//! A home agent, base stations and mobile hosts, over a network that does anything.
//!
//! A script lets packets arrive, late, twice, changed or at somebody else; moves mobile hosts; and
//! sends messages that nobody asked for, some of them proved by a mobile host's own key. [`World`]
//! checks after each input: a datagram goes on the air only where its mobile host is registered,
//! and into the home agent's tunnel only if it is bound; what is kept stays within its limits; a
//! timer moves on. Then there is silence, and every question is given up.

mod world;

use crate::script::Script;
use core::net::Ipv4Addr;
use sansio::Duration;
use wire::control::{self, Beacon, Body, Header, Message, Previous, Received, Role, Status};
use wire::mobile_ip::registration::{Flags, Request};
use wire::mobile_ip::{self, Authenticator};
use world::{HOME_AGENT, Node, STRANGER, World, key, mobile, station};

/// Steps read from a script, at most.
const STEPS_MAX: usize = 300;

/// Runs a script against mobile hosts that roam in one of three ways, and the agents they need.
///
/// # Panics
/// If an invariant breaks.
pub fn mobility_engines(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut world = World::new(script.byte());
    for _ in 0..STEPS_MAX {
        if script.is_over() {
            break;
        }
        step(&mut world, &mut script);
    }
    world.fall_silent();
}

fn step(world: &mut World, script: &mut Script<'_>) {
    let verb = script.byte();
    let number = (verb >> 4) & 3;
    match verb & 0x0f {
        0..=3 => world.arrive(usize::from(script.byte()), |_| {}),
        4 => world.arrive_and_stay(usize::from(script.byte())),
        5 => world.lose(usize::from(script.byte())),
        6 => {
            let (which, at, by) = (script.byte(), script.byte(), script.byte());
            world.arrive(which.into(), |bytes| {
                bytes.iter_mut().skip(at.into()).take(1).for_each(|byte| *byte ^= by);
            });
        }
        7 => {
            let (which, length) = (script.byte(), script.byte());
            world.arrive(which.into(), |bytes| bytes.truncate(length.into()));
        }
        8 => world.stray(usize::from(script.byte()), node(script)),
        9 => world.next_timer(),
        10 => {
            let unit = script.one_of([1, 10, 100, 1_000]);
            world.wait(Duration::from_millis(u64::from(script.byte()) * unit));
        }
        11 => world.attach(number & 1, script.byte() % 3),
        12 => world.hear(number & 1, script.byte() % 3, i16::from(script.byte()) * 2),
        13 => world.send_datagram(script.one_of([mobile(0), mobile(1), STRANGER])),
        14 => raw(world, script),
        _ => proved(world, script),
    }
}

fn node(script: &mut Script<'_>) -> Node {
    script.one_of([
        Node::Home,
        Node::Station(0),
        Node::Station(1),
        Node::Station(2),
        Node::Mobile(0),
        Node::Mobile(1),
    ])
}

fn address(script: &mut Script<'_>) -> Ipv4Addr {
    let near = [HOME_AGENT, station(0), station(1), station(2), mobile(0), mobile(1), STRANGER];
    match script.byte() {
        0xff => Ipv4Addr::from(script.double_word()),
        byte => near[usize::from(byte) % near.len()],
    }
}

/// Any bytes as a message, or a beacon of any base station.
fn raw(world: &mut World, script: &mut Script<'_>) {
    let (to, from) = (node(script), address(script));
    if script.byte() & 1 == 0 {
        let length = script.byte();
        let port = script.one_of([control::PORT, mobile_ip::PORT, 5_000]);
        return world.forge(to, (from, port), script.bytes(length.into()).to_vec());
    }
    let beacon = Beacon {
        id: script.byte().into(),
        address: from,
        sent_at: u64::from(script.double_word()),
        interval_ms: script.word().max(1),
        sequence: script.byte().into(),
    };
    let mut bytes = Vec::new();
    beacon.emit(&mut bytes);
    world.forge(to, (from, control::PORT), bytes);
}

/// A message with the key of a mobile host, as that one or a base station may send it.
fn proved(world: &mut World, script: &mut Script<'_>) {
    let (to, number) = (node(script), script.byte() & 1);
    if script.byte() & 3 == 0 {
        return registration(world, script, to, number);
    }
    let status = script.one_of([Status::ACCEPTED, Status::STALE, Status::FULL]);
    let role = script.one_of([Role::None, Role::Buffer, Role::Forward]);
    let flag = script.byte() & 1 == 0;
    let lifetime_s = script.one_of([0, 1, 300, u16::MAX]);
    let body = match script.byte() % 7 {
        0 => {
            let previous = Previous::new([address(script), address(script)]);
            Body::Greeting { previous, wants_buffer: flag, lifetime_s }
        }
        1 => Body::GreetingAck { status },
        2 => Body::MovedNotice { wants_buffer: flag, lifetime_s },
        3 => Body::HandoffAck { status, buffered: script.word() },
        4 => Body::Completion { status },
        5 => {
            let group = if flag { world::group(number) } else { address(script) };
            let received = Received::identifications([script.word(), script.word()]);
            Body::SetRole { role, group, received }
        }
        _ => Body::RoleAck { status, role },
    };
    let sender = if flag { mobile(number) } else { address(script) };
    let header = Header {
        mobile: mobile(number),
        sender,
        receiver: world.address(to),
        generation: script.one_of([0, 1, world.clock(), u64::MAX]),
        sent_at: world.clock().wrapping_add(u64::from(script.word()) << 20),
        request: script.byte().into(),
    };
    let mut bytes = Vec::new();
    Message { header, body }.emit(&key(number), &mut bytes);
    world.forge(to, (sender, control::PORT), bytes);
}

fn registration(world: &mut World, script: &mut Script<'_>, to: Node, number: u8) {
    let ntp = mobility::clock::Clock::to_ntp(world.clock());
    let request = Request {
        flags: Flags(script.byte()),
        lifetime_s: script.one_of([0, 1, 300, u16::MAX]),
        home_address: mobile(number),
        home_agent: address(script),
        care_of_address: address(script),
        identification: ntp.wrapping_add(u64::from(script.word()) << 24),
    };
    let mut bytes = Vec::new();
    request.emit(&mut bytes);
    Authenticator::MobileHome.append(&key(number), &mut bytes);
    if script.byte() & 1 == 0 {
        Authenticator::MobileForeign.append(&key(number), &mut bytes);
    }
    world.forge(to, (address(script), mobile_ip::PORT), bytes);
}
