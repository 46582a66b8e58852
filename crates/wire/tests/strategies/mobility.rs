//! Random messages of Mobile IP and of our own agents.

use core::net::Ipv4Addr;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::auth::{Algorithm, Key};
use wire::control::{Beacon, Body, Header, Message, Previous, Received, Role, Status};
use wire::mobile_ip::extension::PreviousForeignAgent;
use wire::mobile_ip::{Authenticator, Extension, binding, registration};

pub(crate) fn address() -> impl Strategy<Value = Ipv4Addr> {
    any::<[u8; 4]>().prop_map(Ipv4Addr::from)
}

pub(crate) fn key() -> impl Strategy<Value = Key> {
    let algorithm = prop_oneof![Just(Algorithm::HmacMd5), Just(Algorithm::HmacSha256)];
    (Key::SPI_MIN.., algorithm, vec(any::<u8>(), Key::SECRET_BYTES_MIN..70))
        .prop_map(|(spi, algorithm, secret)| Key::new(spi, algorithm, &secret).expect("valid"))
}

pub(crate) fn request() -> impl Strategy<Value = registration::Request> {
    (any::<u8>(), any::<u16>(), [address(), address(), address()], any::<u64>()).prop_map(
        |(flags, lifetime_s, [home_address, home_agent, care_of_address], identification)| {
            registration::Request {
                flags: registration::Flags(flags),
                lifetime_s,
                home_address,
                home_agent,
                care_of_address,
                identification,
            }
        },
    )
}

pub(crate) fn reply() -> impl Strategy<Value = registration::Reply> {
    (any::<u8>(), any::<u16>(), [address(), address()], any::<u64>()).prop_map(
        |(code, lifetime_s, [home_address, home_agent], identification)| registration::Reply {
            code: registration::Code(code),
            lifetime_s,
            home_address,
            home_agent,
            identification,
        },
    )
}

pub(crate) fn update() -> impl Strategy<Value = binding::Update> {
    (any::<u8>(), any::<u16>(), [address(), address()], any::<u64>()).prop_map(
        |(flags, lifetime_s, [home_address, care_of_address], identification)| binding::Update {
            flags: binding::Flags(flags),
            lifetime_s,
            home_address,
            care_of_address,
            identification,
        },
    )
}

pub(crate) fn acknowledge() -> impl Strategy<Value = binding::Acknowledge> {
    (any::<u16>(), any::<u8>(), address(), any::<u64>()).prop_map(
        |(reserved, status, home_address, identification)| binding::Acknowledge {
            reserved,
            status,
            home_address,
            identification,
        },
    )
}

/// An extension that owns what the wire's borrows.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    Authentication(Authenticator, u32, Vec<u8>),
    PreviousForeignAgent(u16, [Ipv4Addr; 2], u32, Vec<u8>),
    Nai(Vec<u8>),
    Other(u8, Vec<u8>),
    OtherLong(u8, u8, Vec<u8>),
}

impl Owned {
    pub(crate) fn borrowed(&self) -> Extension<'_> {
        match self {
            Owned::Authentication(between, spi, code) => {
                Extension::Authentication { between: *between, spi: *spi, code }
            }
            Owned::PreviousForeignAgent(lifetime_s, [previous, care_of], spi, code) => {
                Extension::PreviousForeignAgent(PreviousForeignAgent {
                    lifetime_s: *lifetime_s,
                    previous_agent: *previous,
                    care_of_address: *care_of,
                    spi: *spi,
                    code,
                })
            }
            Owned::Nai(name) => Extension::Nai(name),
            Owned::Other(kind, data) => Extension::Other { kind: *kind, data },
            Owned::OtherLong(kind, subtype, data) => {
                Extension::OtherLong { kind: *kind, subtype: *subtype, data }
            }
        }
    }
}

pub(crate) fn authenticator() -> impl Strategy<Value = Authenticator> {
    prop_oneof![
        Just(Authenticator::MobileHome),
        Just(Authenticator::MobileForeign),
        Just(Authenticator::ForeignHome),
        Just(Authenticator::RouteOptimization),
    ]
}

/// Every extension, of any length that its length field can say.
pub(crate) fn extension() -> impl Strategy<Value = Owned> {
    let other = any::<u8>()
        .prop_filter("a type of no other extension", |kind| !matches!(kind, 32..=38 | 96 | 131));
    let bytes = |max: usize| vec(any::<u8>(), 0..=max);
    prop_oneof![
        (authenticator(), any::<u32>(), bytes(251))
            .prop_map(|(between, spi, code)| Owned::Authentication(between, spi, code)),
        (any::<u16>(), [address(), address()], any::<u32>(), bytes(241)).prop_map(
            |(lifetime, addresses, spi, code)| {
                Owned::PreviousForeignAgent(lifetime, addresses, spi, code)
            }
        ),
        bytes(255).prop_map(Owned::Nai),
        (other, bytes(255)).prop_map(|(kind, data)| Owned::Other(kind, data)),
        (36..=38_u8, any::<u8>(), bytes(300))
            .prop_map(|(kind, subtype, data)| Owned::OtherLong(kind, subtype, data)),
    ]
}

fn received() -> impl Strategy<Value = Received> {
    prop_oneof![
        vec(any::<u16>(), 0..=Received::MAX).prop_map(Received::identifications),
        vec(any::<u64>(), 0..=Received::MAX).prop_map(Received::digests),
    ]
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::None), Just(Role::Buffer), Just(Role::Forward)]
}

fn body() -> impl Strategy<Value = Body> {
    let status = || any::<u8>().prop_map(Status);
    let previous = vec(address(), 0..=Previous::MAX).prop_map(Previous::new);
    prop_oneof![
        (previous, any::<bool>(), any::<u16>()).prop_map(|(previous, wants_buffer, lifetime_s)| {
            Body::Greeting { previous, wants_buffer, lifetime_s }
        }),
        status().prop_map(|status| Body::GreetingAck { status }),
        (any::<bool>(), any::<u16>())
            .prop_map(|(wants_buffer, lifetime_s)| Body::MovedNotice { wants_buffer, lifetime_s }),
        (status(), any::<u16>())
            .prop_map(|(status, buffered)| Body::HandoffAck { status, buffered }),
        status().prop_map(|status| Body::Completion { status }),
        (role(), address(), received()).prop_map(|(role, group, received)| Body::SetRole {
            role,
            group,
            received
        }),
        (status(), role()).prop_map(|(status, role)| Body::RoleAck { status, role }),
    ]
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let addresses = [address(), address(), address()];
    (addresses, any::<[u64; 2]>(), any::<u32>(), body()).prop_map(
        |([mobile, sender, receiver], [generation, sent_at], request, body)| Message {
            header: Header { mobile, sender, receiver, generation, sent_at, request },
            body,
        },
    )
}

pub(crate) fn beacon() -> impl Strategy<Value = Beacon> {
    (any::<u32>(), address(), any::<u64>(), 1..=u16::MAX, any::<u16>()).prop_map(
        |(id, address, sent_at, interval_ms, sequence)| Beacon {
            id,
            address,
            sent_at,
            interval_ms,
            sequence,
        },
    )
}
