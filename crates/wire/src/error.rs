//! Why bytes are not a packet.

/// A reason to refuse bytes. Every variant is counted under its own name where packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Fewer bytes than the header, or than the length it announces.
    #[error("truncated: {have} bytes where {need} were announced")]
    Truncated {
        /// Bytes needed.
        need: usize,
        /// Bytes there.
        have: usize,
    },
    /// A version, type or hardware field that this parser does not speak.
    #[error("{field} is {value}, which is not supported here")]
    Unsupported {
        /// The header field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// A length field that contradicts the header it stands in.
    #[error("{field} is {value}, which contradicts the packet")]
    Length {
        /// The header field.
        field: &'static str,
        /// Its value, in bytes.
        value: usize,
    },
    /// The Internet checksum does not verify.
    #[error("wrong {protocol} checksum")]
    Checksum {
        /// Which protocol's checksum.
        protocol: &'static str,
    },
    /// A TCP option whose length runs past the header or is below two.
    #[error("TCP option kind {kind} has length {length}")]
    TcpOption {
        /// Option kind (RFC 9293, 3.1).
        kind: u8,
        /// The length byte, 0 when it is missing.
        length: u8,
    },
    /// A message that has to prove who sent it carries no authenticator of this kind.
    #[error("no {authenticator} authenticator")]
    NotAuthenticated {
        /// Which authenticator was expected.
        authenticator: &'static str,
    },
    /// The authenticator names a key (its security parameter index) that is not the one expected.
    #[error("security parameter index {spi} is not that of the key")]
    SecurityIndex {
        /// The index in the message.
        spi: u32,
    },
    /// The authenticator is not the one that the key gives.
    #[error("wrong {authenticator} authenticator")]
    Authenticator {
        /// Which authenticator.
        authenticator: &'static str,
    },
}
