//! The datagram inside a tunnel: IP in IP (RFC 2003), and IP in UDP through address translators
//! (RFC 3519, 3.3).
//!
//! Outside stands an ordinary header: [`crate::datagram::emit`] with
//! [`crate::ip::Protocol::IP_IN_IP`], or [`crate::datagram::emit_udp`] to [`super::PORT`] with
//! [`TUNNEL_DATA_HEADER`] before the datagram.

use crate::checksum::Checksums;
use crate::{Error, ipv4};

/// The type of a tunnel data message (RFC 3519, 3.3).
pub const TUNNEL_DATA: u8 = 4;
/// What stands before a tunnelled IPv4 datagram: type, next header 4 (IP), two reserved bytes.
pub const TUNNEL_DATA_HEADER: [u8; 4] = [TUNNEL_DATA, 4, 0, 0];

/// The IPv4 datagram that is the whole payload of a datagram of protocol 4. Only its header and
/// length are looked at.
///
/// # Errors
/// As [`ipv4::Header::parse`]; [`Error::Length`] if bytes follow the datagram.
pub fn in_ip(payload: &[u8]) -> Result<&[u8], Error> {
    let header = ipv4::Header::parse(payload, Checksums::Trust)?;
    let end = header.payload(payload.len())?.end;
    if end < payload.len() {
        return Err(Error::Length { field: "tunnelled datagram", value: payload.len() });
    }
    Ok(payload)
}

/// The IPv4 datagram in a UDP payload that begins with [`TUNNEL_DATA_HEADER`].
///
/// # Errors
/// [`Error::Unsupported`] for another header, and as [`in_ip`].
pub fn in_udp(payload: &[u8]) -> Result<&[u8], Error> {
    let have = payload.len();
    let (header, datagram) =
        payload.split_first_chunk::<4>().ok_or(Error::Truncated { need: 4, have })?;
    if *header != TUNNEL_DATA_HEADER {
        let value = u32::from_be_bytes(*header);
        return Err(Error::Unsupported { field: "header of a tunnel in UDP", value });
    }
    in_ip(datagram)
}
