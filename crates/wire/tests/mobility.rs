//! Mobile IP and our own handoff messages: what is written is read back, what is read is written
//! back byte for byte, an authenticator proves exactly what stands before it, and no length lies.

mod strategies;

use core::net::IpAddr;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use strategies::mobility as any_of;
use wire::Error;
use wire::auth::{Algorithm, Key};
use wire::control::{self, Beacon, Body, Envelope, Received};
use wire::icmp;
use wire::ip::{self, Protocol};
use wire::mobile_ip::advertisement::{self, Advertisement, AgentFlags, MobilityAgent, Router};
use wire::mobile_ip::{Authenticator, Extension, Extensions, Message, registration, tunnel};

fn written(extensions: &[any_of::Owned], into: &mut Vec<u8>) {
    for extension in extensions {
        extension.borrowed().emit(into).expect("it fits");
    }
}

fn expect_extensions(read: Extensions, written: &[any_of::Owned]) {
    let written: Vec<Extension> = written.iter().map(any_of::Owned::borrowed).collect();
    assert_eq!(read.iter().collect::<Vec<_>>(), written);
}

/// Every length but the whole one ends in the midst of something or between two extensions.
fn expect_cut_is_refused_or_shorter(bytes: &[u8]) {
    for end in 0..bytes.len() {
        if let Ok(cut) = Message::parse(&bytes[..end]) {
            let mut again = Vec::new();
            cut.emit(&mut again);
            assert_eq!(again, bytes[..end]);
        }
    }
}

/// A datagram that a tunnel may carry.
fn inner() -> Vec<u8> {
    let ip =
        ip::Header::new(IpAddr::from([192, 0, 2, 77]), IpAddr::from([192, 0, 2, 9]), Protocol::UDP);
    let mut bytes = Vec::new();
    wire::datagram::emit_udp(&ip, &wire::udp::Header::new(1, 2), b"data", &mut bytes).unwrap();
    bytes
}

proptest! {
    #[test]
    fn every_registration_and_binding_survives(
        request in any_of::request(), reply in any_of::reply(), update in any_of::update(),
        acknowledge in any_of::acknowledge(), extensions in vec(any_of::extension(), 0..4),
    ) {
        for which in 0..4 {
            let mut bytes = Vec::new();
            match which {
                0 => request.emit(&mut bytes),
                1 => reply.emit(&mut bytes),
                2 => update.emit(&mut bytes),
                _ => acknowledge.emit(&mut bytes),
            }
            written(&extensions, &mut bytes);
            let message = Message::parse(&bytes).unwrap();
            let read = match message {
                Message::Request(fixed, read) => {
                    prop_assert_eq!(fixed, request);
                    read
                }
                Message::Reply(fixed, read) => {
                    prop_assert_eq!(fixed, reply);
                    read
                }
                Message::Update(fixed, read) => {
                    prop_assert_eq!(fixed, update);
                    read
                }
                Message::Acknowledge(fixed, read) => {
                    prop_assert_eq!(fixed, acknowledge);
                    read
                }
                Message::Tunnelled(_) => panic!("no tunnel was written"),
            };
            expect_extensions(read, &extensions);
            let mut again = Vec::new();
            message.emit(&mut again);
            prop_assert_eq!(&again, &bytes);
            expect_cut_is_refused_or_shorter(&bytes);
        }
    }

    /// MOD-10: a bit anywhere before the end of the authenticator, or another key, and it proves
    /// nothing; what stands behind it may change.
    #[test]
    fn mod_10_an_authenticator_proves_what_stands_before_it(
        request in any_of::request(), key in any_of::key(), other in any_of::key(),
        before in vec(any_of::extension(), 0..2), after in vec(any_of::extension(), 0..2),
        between in any_of::authenticator(), bit in any::<Index>(),
    ) {
        let is_another = |extension: &any_of::Owned| {
            !matches!(extension, any_of::Owned::Authentication(found, ..) if *found == between)
        };
        let before: Vec<_> = before.into_iter().filter(is_another).collect();
        let mut bytes = Vec::new();
        request.emit(&mut bytes);
        written(&before, &mut bytes);
        between.append(&key, &mut bytes);
        let proved_end = bytes.len();
        written(&after, &mut bytes);
        let verify = |bytes: &[u8], key: &Key| {
            let (_, extensions) = registration::Request::parse(bytes)?;
            extensions.verify(between, key, bytes).map(|covered| covered.as_bytes().len())
        };
        let covered_bytes = verify(&bytes, &key).unwrap();
        prop_assert_eq!(covered_bytes, {
            let mut covered = Vec::new();
            written(&before, &mut covered);
            covered.len()
        });
        prop_assert_eq!(verify(&bytes, &other).is_ok(), key == other);
        let bit = bit.index(proved_end * 8);
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(verify(&changed, &key).is_err(), "bit {} of byte {}", bit % 8, bit / 8);
    }

    #[test]
    fn every_handoff_message_survives_and_is_proved_whole(
        message in any_of::message(), key in any_of::key(), other in any_of::key(),
        bit in any::<Index>(),
    ) {
        let mut bytes = Vec::new();
        message.emit(&key, &mut bytes);
        prop_assert!(bytes.len() <= control::Message::BYTES_MAX);
        let envelope = Envelope::parse(&bytes).unwrap();
        prop_assert_eq!(envelope.header, message.header);
        prop_assert_eq!(envelope.open(&key), Ok(message));
        prop_assert_eq!(envelope.open(&other).is_ok(), key == other);
        let bit = bit.index(bytes.len() * 8);
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Envelope::parse(&changed).and_then(|changed| changed.open(&key)).is_err());
        for end in 0..bytes.len() {
            prop_assert!(Envelope::parse(&bytes[..end]).is_err(), "cut to {}", end);
        }
        let longer = [&bytes[..], &[0]].concat();
        prop_assert!(Envelope::parse(&longer).is_err());
    }

    #[test]
    fn mcast_7_every_beacon_survives(beacon in any_of::beacon()) {
        let mut bytes = Vec::new();
        beacon.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), Beacon::BYTES);
        prop_assert_eq!(Beacon::parse(&bytes), Ok(beacon));
        for end in 0..bytes.len() {
            prop_assert!(Beacon::parse(&bytes[..end]).is_err());
        }
        prop_assert!(Beacon::parse(&[&bytes[..], &[0]].concat()).is_err());
        prop_assert!(Envelope::parse(&bytes).is_err(), "a beacon is no handoff message");
    }

    #[test]
    fn every_advertisement_survives(
        lifetime: u16, code: u8, sequence: u16, registration: u16, flags: u16,
        routers in vec((any::<[u8; 4]>(), any::<i32>()), 0..4),
        care_of in vec(any::<[u8; 4]>(), 0..4), lengths in vec(any::<u8>(), 0..4),
        other in (1_u8.., vec(any::<u8>(), 0..9)), padding: bool,
    ) {
        prop_assume!(!matches!(other.0, 16 | 19));
        let routers: Vec<Router> = routers
            .into_iter()
            .map(|(address, preference)| Router { address: address.into(), preference })
            .collect();
        let agent = MobilityAgent {
            sequence,
            registration_lifetime_s: registration,
            flags: AgentFlags(flags),
            care_of: &care_of,
        };
        let mut extensions = vec![
            advertisement::Extension::MobilityAgent(agent),
            advertisement::Extension::PrefixLengths(&lengths),
            advertisement::Extension::Other { kind: other.0, data: &other.1 },
        ];
        extensions.extend(padding.then_some(advertisement::Extension::Padding));
        let body = advertisement::body(lifetime, &routers, &extensions).unwrap();
        let (version, kind) = (ip::Version::V4, advertisement::ADVERTISEMENT);
        let message = icmp::Message { version, kind, code, body: &body };
        let read = Advertisement::parse(&message).unwrap();
        prop_assert_eq!((read.code, read.lifetime_s), (code, lifetime));
        prop_assert_eq!(read.routers().collect::<Vec<_>>(), routers);
        prop_assert_eq!(read.extensions().collect::<Vec<_>>(), extensions);
        prop_assert_eq!(read.agent(), Some(agent));
        prop_assert_eq!(read.body(), body.clone());
        for end in 0..body.len() {
            let cut = icmp::Message { body: &body[..end], ..message };
            if let Ok(read) = Advertisement::parse(&cut) {
                prop_assert_eq!(read.body(), &body[..end]);
            }
        }
    }

    #[test]
    fn mod_24_any_bytes_are_refused_or_written_back(mut bytes in vec(any::<u8>(), 0..120)) {
        for first in [1, 3, 4, 0, 255] {
            if let Some(byte) = bytes.first_mut() {
                *byte = first;
            }
            if let Ok(message) = Message::parse(&bytes) {
                let mut again = Vec::new();
                message.emit(&mut again);
                prop_assert_eq!(&again, &bytes);
            }
        }
        let _ = (tunnel::in_ip(&bytes), Envelope::parse(&bytes), Beacon::parse(&bytes));
    }
}

fn key() -> Key {
    Key::new(300, Algorithm::HmacSha256, b"0123456789abcdef").unwrap()
}

fn some_request() -> registration::Request {
    registration::Request {
        flags: registration::Flags::default(),
        lifetime_s: 60,
        home_address: [192, 0, 2, 9].into(),
        home_agent: [192, 0, 2, 1].into(),
        care_of_address: [198, 51, 100, 1].into(),
        identification: 0x0102_0304_0506_0708,
    }
}

#[rustfmt::skip]
#[test]
fn every_byte_of_a_registration_request() {
    let mut bytes = Vec::new();
    let flags = registration::Flags::CO_LOCATED.with(registration::Flags::REVERSE_TUNNEL);
    registration::Request { flags, ..some_request() }.emit(&mut bytes);
    Extension::Nai(b"m@example").emit(&mut bytes).unwrap();
    assert_eq!(bytes, [
        &[1, 0x22, 0, 60, 192, 0, 2, 9, 192, 0, 2, 1, 198, 51, 100, 1][..],
        &[1, 2, 3, 4, 5, 6, 7, 8], &[131, 9], b"m@example",
    ].concat());
}

#[rustfmt::skip]
#[test]
fn mcast_13_every_byte_of_a_begin_forwarding() {
    let header = control::Header {
        mobile: [192, 0, 2, 9].into(),
        sender: [192, 0, 2, 9].into(),
        receiver: [198, 51, 100, 2].into(),
        generation: 0x1112_1314_1516_1718,
        sent_at: 0x2122_2324_2526_2728,
        request: 0x3132_3334,
    };
    let body = Body::SetRole {
        role: control::Role::Forward,
        group: [239, 1, 0, 9].into(),
        received: Received::identifications([7, 6, 5, 4]),
    };
    let mut bytes = Vec::new();
    control::Message { header, body }.emit(&key(), &mut bytes);
    let covered = [
        &b"LH"[..], &[1, 6], &[192, 0, 2, 9, 192, 0, 2, 9, 198, 51, 100, 2], &[0, 0, 1, 44],
        &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18],
        &[0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28], &[0x31, 0x32, 0x33, 0x34],
        // Three names of the four, the newest first.
        &[0, 13, 2, 239, 1, 0, 9, 0, 3, 0, 7, 0, 6, 0, 5],
    ].concat();
    assert_eq!(bytes[..covered.len()], covered);
    assert_eq!(bytes[covered.len()..], key().code(&covered).as_bytes()[..16]);
}

#[test]
fn what_is_not_understood_is_told_apart_from_what_is_skipped() {
    for (kind, skipped) in [(1, false), (95, false), (127, false), (128, true), (255, true)] {
        let mut bytes = Vec::new();
        Extension::Other { kind, data: b"?" }.emit(&mut bytes).unwrap();
        let not_understood = Extensions::parse(&bytes).unwrap().not_understood();
        assert_eq!(not_understood, (!skipped).then_some(kind));
    }
    let mut long = Vec::new();
    Extension::OtherLong { kind: 38, subtype: 0, data: &[0; 300] }.emit(&mut long).unwrap();
    assert_eq!(Extensions::parse(&long).unwrap().not_understood(), Some(38));
}

#[test]
fn extensions_that_lie_about_their_length_are_refused() {
    let truncated = |need, have| Err(Error::Truncated { need, have });
    assert_eq!(Extensions::parse(&[131]), truncated(2, 1));
    assert_eq!(Extensions::parse(&[131, 2, 0]), truncated(4, 3));
    assert_eq!(Extensions::parse(&[38, 0, 1]), truncated(4, 3));
    assert_eq!(Extensions::parse(&[38, 0, 1, 0, 0]), truncated(260, 5));
    let short = |value| Err(Error::Length { field: "Mobile IP extension", value });
    assert_eq!(Extensions::parse(&[32, 3, 0, 0, 0]), short(3));
    assert_eq!(Extensions::parse(&[&[96, 13][..], &[0; 13]].concat()), short(13));
    let mut into = Vec::new();
    assert_eq!(
        Extension::Nai(&[0; 256]).emit(&mut into),
        Err(Error::Length { field: "Mobile IP extension", value: 256 })
    );
    assert!(into.is_empty());
}

/// A second authenticator of the same kind, appended by somebody else, proves nothing more.
#[test]
fn mod_10_the_first_authenticator_counts() {
    let mut bytes = Vec::new();
    some_request().emit(&mut bytes);
    let forger = Key::new(300, Algorithm::HmacSha256, b"fedcba9876543210").unwrap();
    Authenticator::MobileHome.append(&forger, &mut bytes);
    Authenticator::MobileHome.append(&key(), &mut bytes);
    let (_, extensions) = registration::Request::parse(&bytes).unwrap();
    let wrong = extensions.verify(Authenticator::MobileHome, &key(), &bytes);
    assert_eq!(wrong, Err(Error::Authenticator { authenticator: "mobile-home" }));
    let missing = extensions.verify(Authenticator::ForeignHome, &key(), &bytes);
    assert_eq!(missing, Err(Error::NotAuthenticated { authenticator: "foreign-home" }));
}

#[test]
fn a_solicitation_is_eight_bytes_of_icmp() {
    let message = |kind, code, body| icmp::Message { version: ip::Version::V4, kind, code, body };
    assert!(advertisement::is_solicitation(&message(10, 0, &advertisement::SOLICITATION_BODY)));
    assert!(!advertisement::is_solicitation(&message(10, 0, &[0; 3])));
    assert!(!advertisement::is_solicitation(&message(10, 1, &[0; 4])));
    assert!(!advertisement::is_solicitation(&message(9, 0, &[0; 4])));
}

#[test]
fn a_tunnel_carries_one_whole_datagram() {
    let inner = inner();
    assert_eq!(tunnel::in_ip(&inner), Ok(&inner[..]));
    let in_udp = [&tunnel::TUNNEL_DATA_HEADER[..], &inner].concat();
    assert_eq!(tunnel::in_udp(&in_udp), Ok(&inner[..]));
    assert_eq!(Message::parse(&in_udp), Ok(Message::Tunnelled(&inner)));
    assert!(tunnel::in_ip(&inner[..inner.len() - 1]).is_err());
    assert!(tunnel::in_ip(&[&inner[..], &[0]].concat()).is_err());
    // Next header 55, minimal encapsulation.
    assert!(tunnel::in_udp(&[&[4, 55, 0, 0][..], &inner].concat()).is_err());
}
