//! Seeds of `mobility_message`: one of each message, whole and cut.

use core::net::Ipv4Addr;
use wire::control::{Beacon, Body, Header, Message, Previous, Received, Role, Status};
use wire::mobile_ip::advertisement::{self, AgentFlags, MobilityAgent, Router};
use wire::mobile_ip::extension::PreviousForeignAgent;
use wire::mobile_ip::{Authenticator, Extension, binding, registration, tunnel};

const HOME: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const NEW: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const OLD: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

pub(crate) fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds: Vec<(String, Vec<u8>)> = Vec::new();
    seeds.extend(discovery());
    seeds.extend(registrations());
    seeds.extend(handoffs());
    let cut: Vec<_> = seeds
        .iter()
        .map(|(name, bytes)| (format!("{name}-cut"), bytes[..bytes.len() * 2 / 3].to_vec()))
        .collect();
    seeds.extend(cut);
    seeds
}

fn discovery() -> Vec<(String, Vec<u8>)> {
    let agent = MobilityAgent {
        sequence: 7,
        registration_lifetime_s: 60,
        flags: AgentFlags::FOREIGN_AGENT,
        care_of: &[NEW.octets(), OLD.octets()],
    };
    let extensions = [
        advertisement::Extension::Padding,
        advertisement::Extension::MobilityAgent(agent),
        advertisement::Extension::PrefixLengths(&[24]),
        advertisement::Extension::Other { kind: 24, data: b"challenge" },
    ];
    let routers = [Router { address: NEW, preference: -1 }];
    let body = advertisement::body(60, &routers, &extensions).expect("it fits");
    let advertisement = [&[advertisement::ADVERTISEMENT, 16][..], &body].concat();
    let solicitation =
        [&[advertisement::SOLICITATION, 0][..], &advertisement::SOLICITATION_BODY].concat();
    vec![("advertisement".into(), advertisement), ("solicitation".into(), solicitation)]
}

fn registrations() -> Vec<(String, Vec<u8>)> {
    let key = fuzzing::mobility_key();
    let request = registration::Request {
        flags: registration::Flags::REVERSE_TUNNEL,
        lifetime_s: 60,
        home_address: HOME,
        home_agent: HOME_AGENT,
        care_of_address: NEW,
        identification: 0x0102_0304_0506_0708,
    };
    let notification = PreviousForeignAgent {
        lifetime_s: 10,
        previous_agent: OLD,
        care_of_address: NEW,
        spi: key.spi(),
        code: &[1; 16],
    };
    let mut messages: [Vec<u8>; 4] = Default::default();
    request.emit(&mut messages[0]);
    for extension in [
        Extension::Nai(b"m@example"),
        Extension::PreviousForeignAgent(notification),
        Extension::Other { kind: 200, data: b"skipped" },
        Extension::OtherLong { kind: 38, subtype: 1, data: b"not skipped" },
    ] {
        extension.emit(&mut messages[0]).expect("it fits");
    }
    let code = registration::Code::HOME_IDENTIFICATION_MISMATCH;
    let reply = registration::Reply {
        code,
        lifetime_s: 0,
        home_address: HOME,
        home_agent: HOME_AGENT,
        identification: 9,
    };
    reply.emit(&mut messages[1]);
    binding::Update::for_previous_agent(&request, &notification).emit(&mut messages[2]);
    let acknowledge =
        binding::Acknowledge { reserved: 0, status: 0, home_address: HOME, identification: 9 };
    acknowledge.emit(&mut messages[3]);
    for message in &mut messages {
        Authenticator::MobileHome.append(&key, message);
    }
    let names = ["request", "reply", "update", "acknowledge"].map(String::from);
    let mut seeds: Vec<_> = names.into_iter().zip(messages).collect();
    let inner = [
        0x45, 0, 0, 29, 0, 0, 0x40, 0, 64, 1, 0x26, 0xde, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
        8, 0, 0x93, 0xf7, 0, 7, 0, 1, 0x64, // ICMP
    ];
    seeds.push(("tunnelled".into(), [&tunnel::TUNNEL_DATA_HEADER[..], &inner].concat()));
    seeds
}

fn handoffs() -> Vec<(String, Vec<u8>)> {
    let mut beacon = Vec::new();
    Beacon { id: 3, address: NEW, sent_at: 1, interval_ms: 1_000, sequence: 2 }.emit(&mut beacon);
    let status = Status::ACCEPTED;
    let set = |received| Body::SetRole { role: Role::Forward, group: HOME, received };
    let bodies = [
        (
            "greeting",
            Body::Greeting {
                previous: Previous::new([OLD, NEW]),
                wants_buffer: true,
                lifetime_s: 60,
            },
        ),
        ("greeting-ack", Body::GreetingAck { status }),
        ("moved-notice", Body::MovedNotice { wants_buffer: false, lifetime_s: 10 }),
        ("handoff-ack", Body::HandoffAck { status, buffered: 3 }),
        ("completion", Body::Completion { status }),
        ("set-role-ids", set(Received::identifications([3, 2]))),
        ("set-role-digests", set(Received::digests([3, 2, 1]))),
        ("role-ack", Body::RoleAck { status, role: Role::Buffer }),
    ];
    let messages = bodies.into_iter().map(|(name, body)| {
        let header = Header {
            mobile: HOME,
            sender: HOME,
            receiver: NEW,
            generation: 1,
            sent_at: 2,
            request: 3,
        };
        let mut bytes = Vec::new();
        Message { header, body }.emit(&fuzzing::mobility_key(), &mut bytes);
        (name.to_string(), bytes)
    });
    [("beacon".to_string(), beacon)].into_iter().chain(messages).collect()
}
