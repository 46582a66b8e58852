//! Columns of numbers as base64 text (RFC 4648, section 4), one element of the page for each; the
//! index of plots refers to them. Instants and offsets rise by little from one to the next, so
//! whole numbers are written as differences: two to four bytes instead of eight.

use sansio::Instant;
use serde::Serialize;
use std::io::{self, Write};

/// The columns of a page, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    texts: Vec<String>,
}

/// Where a column is and how to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Blob {
    /// Number of the element, in its `id` after "blob-".
    id: usize,
    /// How its elements are written.
    kind: ElementKind,
    /// Number of elements.
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ElementKind {
    /// Binary floating point, 64 bits; NaN where there is no value.
    F64,
    /// Whole numbers: of each only the difference to the one before, in as many bytes as it needs.
    Whole,
    /// The same, nanoseconds; the page reads them as seconds.
    Nanos,
}

impl Blobs {
    /// A column of floating point numbers.
    pub(crate) fn floats(&mut self, values: impl ExactSizeIterator<Item = f64>) -> Blob {
        let length = values.len();
        self.add(ElementKind::F64, length, &values.flat_map(f64::to_le_bytes).collect::<Vec<_>>())
    }

    /// A column of whole numbers, each exact in the page up to 2^52.
    pub(crate) fn whole(&mut self, values: impl ExactSizeIterator<Item = u64>) -> Blob {
        self.some_whole(values.map(Some))
    }

    /// A column of whole numbers of which some are missing.
    pub(crate) fn some_whole(
        &mut self,
        values: impl ExactSizeIterator<Item = Option<u64>>,
    ) -> Blob {
        self.add(ElementKind::Whole, values.len(), &differences(values))
    }

    /// A column of instants.
    pub(crate) fn instants(&mut self, values: impl ExactSizeIterator<Item = Instant>) -> Blob {
        self.some_instants(values.map(Some))
    }

    /// A column of instants of which some are missing.
    pub(crate) fn some_instants(
        &mut self,
        values: impl ExactSizeIterator<Item = Option<Instant>>,
    ) -> Blob {
        let length = values.len();
        let nanos = values.map(|at| at.map(Instant::as_nanos));
        self.add(ElementKind::Nanos, length, &differences(nanos))
    }

    /// Writes the elements that hold the columns.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for (id, text) in self.texts.iter().enumerate() {
            let kind = "application/octet-stream";
            writeln!(out, "<script type=\"{kind}\" id=\"blob-{id}\">{text}</script>")?;
        }
        Ok(())
    }

    fn add(&mut self, kind: ElementKind, length: usize, bytes: &[u8]) -> Blob {
        let id = self.texts.len();
        self.texts.push(base64(bytes));
        Blob { id, kind, length }
    }
}

/// Each number as its difference to the one before it, from 0 on: the sign in the lowest bit, one
/// added, 7 bits a byte, lowest first, the top bit set where more follow. A missing one is a 0.
fn differences(values: impl Iterator<Item = Option<u64>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut previous = 0;
    for value in values {
        let mut rest = value.map_or(0, |value| {
            let difference = value.wrapping_sub(previous) as i64;
            previous = value;
            ((difference << 1 ^ difference >> 63) as u64).saturating_add(1)
        });
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sextet = bits >> (18 - 6 * place) & 0x3F;
            let known = place <= chunk.len();
            text.push(if known { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_agrees_with_the_test_vectors_of_rfc_4648_section_10() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in vectors {
            assert_eq!(base64(plain.as_bytes()), encoded, "of {plain:?}");
        }
    }

    #[test]
    fn a_difference_takes_as_many_bytes_as_it_needs_and_a_missing_number_one() {
        let of = |values: &[Option<u64>]| differences(values.iter().copied());
        assert_eq!(of(&[Some(5), None, Some(4), Some(4)]), [11, 0, 2, 1]);
        assert_eq!(of(&[Some(63)]), [127]);
        assert_eq!(of(&[Some(64)]), [129, 1], "129 = 1 + 1 * 128");
        assert_eq!(of(&[Some(1 << 52), Some(0)]).len(), 16);
    }
}
