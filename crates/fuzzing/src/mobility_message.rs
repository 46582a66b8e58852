//! Mobile IP messages, agent discovery, and our own handoff messages and beacons, from any bytes.
//!
//! Invariants: nothing panics; what a parser accepts, its emitter writes back byte for byte; a
//! message that no key made is proved by none; a message made from what was read is read again.

use wire::auth::{Algorithm, Key};
use wire::control::{Beacon, Envelope};
use wire::ip::Version;
use wire::mobile_ip::advertisement::{self, Advertisement};
use wire::mobile_ip::{Authenticator, Extension, Extensions, Message, tunnel};
use wire::{Error, control, icmp};

/// The key of the seeds: bytes that it proves are opened.
pub fn mobility_key() -> Key {
    Key::new(Key::SPI_MIN, Algorithm::HmacSha256, b"the key of the seeds").expect("a valid key")
}

/// Reads `bytes` as a message of every kind.
///
/// # Panics
/// If an invariant breaks.
pub fn mobility_message(bytes: &[u8]) {
    read_registration(bytes);
    read_control(bytes);
    read_discovery(bytes);
    if let Ok(datagram) = tunnel::in_ip(bytes) {
        assert_eq!(datagram, bytes);
    }
    if let Ok(extensions) = Extensions::parse(bytes) {
        read_extensions(extensions);
    }
}

fn read_registration(bytes: &[u8]) {
    let Ok(message) = Message::parse(bytes) else { return };
    let mut again = Vec::new();
    message.emit(&mut again);
    assert_eq!(again, bytes, "written back byte for byte");
    let extensions = match message {
        Message::Request(_, extensions)
        | Message::Reply(_, extensions)
        | Message::Update(_, extensions)
        | Message::Acknowledge(_, extensions) => extensions,
        Message::Tunnelled(datagram) => return assert_eq!(tunnel::in_ip(datagram), Ok(datagram)),
    };
    read_extensions(extensions);
    let key = Key::new(Key::SPI_MIN + 1, Algorithm::HmacMd5, b"known to nobody else");
    let key = key.expect("a valid key");
    for between in [Authenticator::MobileHome, Authenticator::MobileForeign] {
        assert!(extensions.verify(between, &key, bytes).is_err(), "no key of ours made it");
        if matches!(extensions.verify(between, &key, bytes), Err(Error::NotAuthenticated { .. })) {
            between.append(&key, &mut again);
            let Ok(Message::Request(_, proved) | Message::Reply(_, proved)) =
                Message::parse(&again)
            else {
                return;
            };
            let covered = proved.verify(between, &key, &again).expect("we made it");
            assert_eq!(
                covered.as_bytes(),
                &again[again.len() - proved.as_bytes().len()..][..covered.as_bytes().len()]
            );
            again.truncate(bytes.len());
        }
    }
}

fn read_extensions(extensions: Extensions) {
    let mut again = Vec::new();
    for extension in extensions.iter() {
        extension.emit(&mut again).expect("what was read fits");
        if let Extension::Other { kind, .. } = extension {
            assert!(extensions.not_understood().is_some() || kind >= 128);
        }
    }
    assert_eq!(again, extensions.as_bytes());
}

fn read_control(bytes: &[u8]) {
    if let Ok(beacon) = Beacon::parse(bytes) {
        let mut again = Vec::new();
        beacon.emit(&mut again);
        assert_eq!(again, bytes);
        assert!(Envelope::parse(bytes).is_err(), "a beacon proves nothing");
    }
    let Ok(envelope) = Envelope::parse(bytes) else { return };
    let key = mobility_key();
    if let Ok(message) = envelope.open(&key) {
        let mut again = Vec::new();
        message.emit(&key, &mut again);
        assert_eq!(again, bytes);
    }
    // The same bytes, proved: the body is read, too.
    let mut proved = bytes.to_vec();
    proved[16..20].copy_from_slice(&key.spi().to_be_bytes());
    let end = proved.len() - control::Message::CODE_BYTES;
    let code = key.code(&proved[..end]).truncated(control::Message::CODE_BYTES);
    proved[end..].copy_from_slice(code.as_bytes());
    let envelope = Envelope::parse(&proved).expect("only the key and its code have changed");
    if let Ok(message) = envelope.open(&key) {
        let mut again = Vec::new();
        message.emit(&key, &mut again);
        assert_eq!(again, proved);
    }
}

fn read_discovery(bytes: &[u8]) {
    let [kind, code, body @ ..] = bytes else { return };
    let message = icmp::Message { version: Version::V4, kind: *kind, code: *code, body };
    let _ = advertisement::is_solicitation(&message);
    let Ok(read) = Advertisement::parse(&message) else { return };
    assert_eq!(read.body(), body);
    let routers: Vec<_> = read.routers().collect();
    let extensions: Vec<_> = read.extensions().collect();
    let again = advertisement::body(read.lifetime_s, &routers, &extensions);
    assert_eq!(again.expect("what was read fits"), body);
    let _ = read.agent();
}
