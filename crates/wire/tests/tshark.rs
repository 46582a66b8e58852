//! Each message of agents in its datagram, as tshark decodes it: nothing malformed, no wrong
//! checksum, and the types that were written.

use core::net::{IpAddr, Ipv4Addr};
use wire::auth::{Algorithm, Key};
use wire::checksum::Checksums;
use wire::control::{self, Beacon, Body, Previous, Received};
use wire::icmp;
use wire::ip::{self, Protocol};
use wire::mobile_ip::advertisement::{self, AgentFlags, MobilityAgent, Router};
use wire::mobile_ip::extension::PreviousForeignAgent;
use wire::mobile_ip::{self, Authenticator, Extension, binding, registration, tunnel};

const MOBILE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const NEW_AGENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const OLD_AGENT: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const FIXED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);

/// A message: its name, values that tshark has to show of it, and the whole datagram.
type Sample = (&'static str, &'static [&'static str], Vec<u8>);

fn key() -> Key {
    Key::new(300, Algorithm::HmacSha256, b"0123456789abcdef").unwrap()
}

fn header(source: Ipv4Addr, destination: Ipv4Addr, protocol: Protocol) -> ip::Header {
    ip::Header::new(IpAddr::V4(source), IpAddr::V4(destination), protocol)
}

fn in_udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let udp = wire::udp::Header::new(port, port);
    let ip = header(NEW_AGENT, HOME_AGENT, Protocol::UDP);
    wire::datagram::emit_udp(&ip, &udp, payload, &mut bytes).unwrap();
    bytes
}

fn in_icmp(kind: u8, body: &[u8]) -> Vec<u8> {
    let ip = header(NEW_AGENT, Ipv4Addr::BROADCAST, Protocol::ICMP);
    let ip = ip::Header { hop_limit: 1, ..ip };
    let mut message = Vec::new();
    icmp::Message { version: ip::Version::V4, kind, code: 0, body }.emit(&ip, &mut message);
    let mut bytes = Vec::new();
    wire::datagram::emit(&ip, &message, &mut bytes).unwrap();
    bytes
}

fn discovery() -> [Sample; 2] {
    let agent = MobilityAgent {
        sequence: 7,
        registration_lifetime_s: 60,
        flags: AgentFlags::FOREIGN_AGENT.with(AgentFlags::REGISTRATION_REQUIRED),
        care_of: &[NEW_AGENT.octets()],
    };
    let routers = [Router { address: NEW_AGENT, preference: 0 }];
    let extensions = [
        advertisement::Extension::MobilityAgent(agent),
        advertisement::Extension::PrefixLengths(&[24]),
    ];
    let advertisement = advertisement::body(1800, &routers, &extensions).unwrap();
    [
        ("advertisement", &["9", "16,19"], in_icmp(9, &advertisement)),
        ("solicitation", &["10"], in_icmp(10, &advertisement::SOLICITATION_BODY)),
    ]
}

fn request() -> registration::Request {
    registration::Request {
        flags: registration::Flags::default(),
        lifetime_s: 60,
        home_address: MOBILE,
        home_agent: HOME_AGENT,
        care_of_address: NEW_AGENT,
        identification: 0x0102_0304_0506_0708,
    }
}

fn notification() -> PreviousForeignAgent<'static> {
    PreviousForeignAgent {
        lifetime_s: 10,
        previous_agent: OLD_AGENT,
        care_of_address: NEW_AGENT,
        spi: 300,
        code: &[1; 16],
    }
}

/// A Mobile IP message of a fixed part and what `extend` appends.
fn mobile_ip(fixed: impl Fn(&mut Vec<u8>), extend: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut message = Vec::new();
    fixed(&mut message);
    extend(&mut message);
    in_udp(mobile_ip::PORT, &message)
}

fn registrations() -> [Sample; 5] {
    let reply = registration::Reply {
        code: registration::Code::HOME_IDENTIFICATION_MISMATCH,
        lifetime_s: 60,
        home_address: MOBILE,
        home_agent: HOME_AGENT,
        identification: 9,
    };
    let update = binding::Update::for_previous_agent(&request(), &notification());
    let acknowledge =
        binding::Acknowledge { reserved: 0, status: 0, home_address: MOBILE, identification: 9 };
    let prove =
        |between: Authenticator| move |message: &mut Vec<u8>| between.append(&key(), message);
    let with_all = |message: &mut Vec<u8>| {
        Extension::Nai(b"m@example").emit(message).unwrap();
        prove(Authenticator::MobileHome)(message);
        prove(Authenticator::MobileForeign)(message);
        prove(Authenticator::ForeignHome)(message);
    };
    let with_notification = |message: &mut Vec<u8>| {
        Extension::PreviousForeignAgent(notification()).emit(message).unwrap();
        prove(Authenticator::MobileHome)(message);
    };
    let route = prove(Authenticator::RouteOptimization);
    [
        ("request", &["1", "131,32,33,34"], mobile_ip(|into| request().emit(into), with_all)),
        (
            "request with notification",
            &["1", "96,32"],
            mobile_ip(|into| request().emit(into), with_notification),
        ),
        (
            "reply",
            &["3", "133", "32"],
            mobile_ip(|into| reply.emit(into), prove(Authenticator::MobileHome)),
        ),
        // tshark has no fields for messages for experiments.
        ("binding update", &["434"], mobile_ip(|into| update.emit(into), route)),
        ("binding acknowledge", &["434"], mobile_ip(|into| acknowledge.emit(into), route)),
    ]
}

fn tunnels() -> [Sample; 2] {
    let mut inner = Vec::new();
    let ip = header(FIXED, MOBILE, Protocol::UDP);
    wire::datagram::emit_udp(&ip, &wire::udp::Header::new(1, 2), b"data", &mut inner).unwrap();
    let mut in_ip = Vec::new();
    let outer = header(HOME_AGENT, NEW_AGENT, Protocol::IP_IN_IP);
    wire::datagram::emit(&outer, &inner, &mut in_ip).unwrap();
    let data = [&tunnel::TUNNEL_DATA_HEADER[..], &inner].concat();
    [
        ("tunnel in IP", &["192.0.2.1,192.0.2.77"], in_ip),
        ("tunnel in UDP", &["4", "198.51.100.1,192.0.2.77"], in_udp(mobile_ip::PORT, &data)),
    ]
}

fn handoffs() -> Vec<Sample> {
    let mut beacon = Vec::new();
    Beacon { id: 3, address: NEW_AGENT, sent_at: 1, interval_ms: 1_000, sequence: 2 }
        .emit(&mut beacon);
    let messages = bodies().map(|body| -> Sample {
        let header = control::Header {
            mobile: MOBILE,
            sender: MOBILE,
            receiver: NEW_AGENT,
            generation: 1,
            sent_at: 2,
            request: 3,
        };
        let mut bytes = Vec::new();
        control::Message { header, body }.emit(&key(), &mut bytes);
        (body.name(), &["51434"], in_udp(control::PORT, &bytes))
    });
    let beacon: Sample = ("beacon", &["51434"], in_udp(control::PORT, &beacon));
    [beacon].into_iter().chain(messages).collect()
}

fn bodies() -> [Body; 7] {
    use control::{Role, Status};
    let status = Status::ACCEPTED;
    [
        Body::Greeting { previous: Previous::new([OLD_AGENT]), wants_buffer: true, lifetime_s: 60 },
        Body::GreetingAck { status },
        Body::MovedNotice { wants_buffer: true, lifetime_s: 10 },
        Body::HandoffAck { status, buffered: 3 },
        Body::Completion { status },
        Body::SetRole {
            role: Role::Forward,
            group: [239, 1, 0, 9].into(),
            received: Received::digests([1, 2, 3]),
        },
        Body::RoleAck { status, role: Role::Buffer },
    ]
}

#[test]
fn tshark_decodes_each_message_without_a_malformed_field() {
    use std::process::Command;
    use wire::pcapng::{Direction, LinkType, Record, Writer};
    let messages: Vec<Sample> =
        [discovery().to_vec(), registrations().to_vec(), tunnels().to_vec(), handoffs()].concat();
    let mut writer = Writer::new(Vec::new(), "lasthop").unwrap();
    let interface = writer.add_interface("agents", LinkType::Ip).unwrap();
    for (number, (name, _, bytes)) in messages.iter().enumerate() {
        wire::datagram::parse(bytes, Checksums::Verify)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let record = Record {
            interface,
            at_nanoseconds: number as u64,
            direction: Direction::Unknown,
            packet_id: None,
            comment: name,
        };
        writer.packet(&record, bytes).unwrap();
    }
    let path = std::env::temp_dir().join(format!("lasthop-mobility-{}.pcapng", std::process::id()));
    std::fs::write(&path, writer.into_inner().unwrap()).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=|"]);
    command.args(["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]);
    for field in [
        "_ws.malformed",
        "ip.checksum.status",
        "udp.checksum.status",
        "icmp.checksum.status",
        "ip.src",
        "icmp.type",
        "icmp.mip.type",
        "mip.type",
        "mip.code",
        "mip.ext.type",
        "udp.dstport",
    ] {
        command.args(["-e", field]);
    }
    let output = command.output();
    std::fs::remove_file(&path).unwrap();
    let output = output.expect("tshark is missing: apt-get install -y tshark");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), messages.len(), "{text}{error}");
    for (line, (name, expected, _)) in lines.into_iter().zip(messages) {
        let fields: Vec<&str> = line.split('|').collect();
        assert_eq!(fields[0], "", "{name} is malformed: {line}");
        for checksum in &fields[1..4] {
            // 1: good; nothing where there is none.
            let is_good = checksum.split(',').all(|status| matches!(status, "" | "1"));
            assert!(is_good, "{name} has a wrong checksum: {line}");
        }
        for value in expected {
            assert!(fields[4..].contains(value), "{name} has no field {value}: {line}");
        }
    }
}
