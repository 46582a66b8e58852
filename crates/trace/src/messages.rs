//! What a message of mobility says, in a few words, for those who look at a handoff.
//!
//! Nothing is proved here: what is shown is what stands in the message.

use core::net::Ipv4Addr;
use sansio::{Packet, Payload, Transport};
use wire::control::{self, Body, Envelope, Role, Status};
use wire::ip::Protocol;
use wire::mobile_ip::registration::{Code, LIFETIME_INFINITE_S};
use wire::mobile_ip::{self, Message, advertisement};

/// About whom a message is, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What.
    pub what: String,
    /// The mobile host by its home address, or the multicast group; none if it is about nobody.
    pub about: Option<Ipv4Addr>,
}

/// What a packet says; `None` if it is no message of mobility, or one that cannot be read.
pub fn read(packet: &Packet) -> Option<Said> {
    let Payload::Bytes(bytes) = &packet.payload else { return None };
    match packet.transport {
        Transport::Udp { source_port, destination_port } => {
            let ports = [source_port, destination_port];
            if ports.contains(&control::PORT) {
                handoff(bytes)
            } else if ports.contains(&mobile_ip::PORT) {
                registration(bytes)
            } else {
                None
            }
        }
        Transport::Opaque if packet.ip.protocol == Protocol::ICMP => discovery(bytes),
        Transport::Opaque if packet.ip.protocol == IGMP => membership(bytes),
        Transport::Opaque | Transport::Tcp(_) => None,
    }
}

/// RFC 2236.
const IGMP: Protocol = Protocol(2);

fn handoff(bytes: &[u8]) -> Option<Said> {
    let envelope = Envelope::parse(bytes).ok()?;
    let what = match envelope.unproved().ok()? {
        Body::Greeting { lifetime_s: 0, .. } => "greeting: leaves".to_owned(),
        Body::Greeting { wants_buffer: true, .. } => "greeting, wants the buffer".to_owned(),
        Body::Greeting { .. } => "greeting".to_owned(),
        Body::GreetingAck { status } => format!("greeting acknowledged{}", refused(status)),
        Body::MovedNotice { .. } => "moved notice".to_owned(),
        Body::HandoffAck { status, buffered } => {
            format!("handoff acknowledged, {buffered} buffered{}", refused(status))
        }
        Body::Completion { status } => format!("completion{}", refused(status)),
        Body::SetRole { role, .. } => format!("role: {}", role_name(role)),
        Body::RoleAck { status, role } => {
            format!("role acknowledged: {}{}", role_name(role), refused(status))
        }
    };
    Some(Said { what, about: Some(envelope.header.mobile) })
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::None => "none",
        Role::Buffer => "buffer",
        Role::Forward => "forward",
    }
}

fn refused(status: Status) -> &'static str {
    match status {
        Status::ACCEPTED => "",
        Status::STALE => " (refused: stale)",
        Status::FULL => " (refused: full)",
        Status::UNKNOWN => " (refused: unknown here)",
        Status::TIMEOUT => " (refused: nobody answered)",
        _ => " (refused)",
    }
}

fn registration(bytes: &[u8]) -> Option<Said> {
    let (what, about) = match Message::parse(bytes).ok()? {
        Message::Request(request, _) => {
            let what = match request.lifetime_s {
                0 => "deregistration request".to_owned(),
                LIFETIME_INFINITE_S => "registration request".to_owned(),
                seconds => format!("registration request, {seconds} s"),
            };
            (what, request.home_address)
        }
        Message::Reply(reply, _) => {
            (format!("registration reply, {}", answer(reply.code)), reply.home_address)
        }
        Message::Update(update, _) => ("binding update".to_owned(), update.home_address),
        Message::Acknowledge(done, _) => ("binding acknowledge".to_owned(), done.home_address),
        Message::Tunnelled(_) => return None,
    };
    Some(Said { what, about: Some(about) })
}

fn answer(code: Code) -> String {
    if code.is_accepted() { "accepted".to_owned() } else { format!("refused: code {code}") }
}

fn discovery(bytes: &[u8]) -> Option<Said> {
    let what = match *bytes.first()? {
        advertisement::ADVERTISEMENT => "agent advertisement",
        advertisement::SOLICITATION => "agent solicitation",
        _ => return None,
    };
    Some(Said { what: what.to_owned(), about: None })
}

/// A report or the end of a membership (RFC 2236, 2).
fn membership(bytes: &[u8]) -> Option<Said> {
    let what = match *bytes.first()? {
        0x16 => "joins the group",
        0x17 => "leaves the group",
        _ => return None,
    };
    let group = bytes.get(4..8)?.first_chunk::<4>()?;
    Some(Said { what: what.to_owned(), about: Some(Ipv4Addr::from(*group)) })
}
