//! Keys and keyed message authentication codes: HMAC (RFC 2104) with MD5, which is the default of
//! Mobile IPv4 (RFC 5944, 5.1), and with SHA-256 (RFC 6234).
//!
//! The hash functions are those of the crates `hmac`, `md-5` and `sha2`; comparison takes the same
//! time wherever two codes differ. RFC 2002's prefix+suffix MD5 is not here: RFC 5944 has it for
//! compatibility with that RFC only.

use core::fmt;
use hmac::{Hmac, KeyInit, Mac as _};
use md5::Md5;
use sha2::Sha256;

/// Which code a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// HMAC-MD5: 16 bytes.
    HmacMd5,
    /// HMAC-SHA-256: 32 bytes.
    HmacSha256,
}

impl Algorithm {
    /// Length of the code in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Algorithm::HmacMd5 => 16,
            Algorithm::HmacSha256 => 32,
        }
    }
}

/// A secret that two nodes share, with its name and what it is used with: a mobility security
/// association (RFC 5944, 1.7).
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    spi: u32,
    algorithm: Algorithm,
    secret: Vec<u8>,
}

impl Key {
    /// The smallest security parameter index: those below are reserved (RFC 5944, 1.6).
    pub const SPI_MIN: u32 = 256;
    /// The shortest secret in bytes: 128 bits (RFC 5944, 5.1).
    pub const SECRET_BYTES_MIN: usize = 16;

    /// A key named `spi`.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] if `spi` is reserved, [`crate::Error::Length`] if the secret
    /// is shorter than 16 bytes.
    pub fn new(spi: u32, algorithm: Algorithm, secret: &[u8]) -> Result<Key, crate::Error> {
        if spi < Self::SPI_MIN {
            return Err(crate::Error::Unsupported {
                field: "security parameter index",
                value: spi,
            });
        }
        if secret.len() < Self::SECRET_BYTES_MIN {
            return Err(crate::Error::Length { field: "secret", value: secret.len() });
        }
        Ok(Key { spi, algorithm, secret: secret.to_vec() })
    }

    /// The security parameter index: the key's name in messages.
    pub fn spi(&self) -> u32 {
        self.spi
    }

    /// What the key is used with.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The code of `bytes`.
    pub fn code(&self, bytes: &[u8]) -> Code {
        code(self.algorithm, &self.secret, bytes)
    }
}

/// Without the secret: it belongs into no log.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key {{ spi: {}, algorithm: {:?}, .. }}", self.spi, self.algorithm)
    }
}

/// A message authentication code.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    bytes: [u8; 32],
    length: usize,
}

impl Code {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// True if `received` is this code, in a time that does not depend on where they differ.
    pub fn is(&self, received: &[u8]) -> bool {
        received.len() == self.length && equal(&self.bytes[..self.length], received)
    }

    /// The first `bytes` of it, at most all: some protocols send no more.
    #[must_use]
    pub fn truncated(self, bytes: usize) -> Code {
        Code { length: self.length.min(bytes), ..self }
    }
}

fn equal(ours: &[u8], received: &[u8]) -> bool {
    let differences = ours.iter().zip(received).fold(0, |all, (a, b)| all | (a ^ b));
    core::hint::black_box(differences) == 0
}

/// The code of `bytes` under a secret of any length.
pub fn code(algorithm: Algorithm, secret: &[u8], bytes: &[u8]) -> Code {
    let mut code = Code { bytes: [0; 32], length: algorithm.bytes() };
    match algorithm {
        Algorithm::HmacMd5 => {
            let hmac = Hmac::<Md5>::new_from_slice(secret).map(|hmac| hmac.chain_update(bytes));
            let hmac = hmac.expect("HMAC takes a key of any length");
            code.bytes[..16].copy_from_slice(&hmac.finalize().into_bytes());
        }
        Algorithm::HmacSha256 => {
            let hmac = Hmac::<Sha256>::new_from_slice(secret).map(|hmac| hmac.chain_update(bytes));
            let hmac = hmac.expect("HMAC takes a key of any length");
            code.bytes.copy_from_slice(&hmac.finalize().into_bytes());
        }
    }
    code
}
