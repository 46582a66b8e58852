//! Columns of numbers as base64 text (RFC 4648, section 4), little-endian, one element of the page
//! for each; the index of plots refers to them.

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
    /// Element type.
    kind: ElementKind,
    /// Number of elements.
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ElementKind {
    /// Binary floating point, 64 bits; NaN where there is no value.
    F64,
    /// Unsigned, 32 bits.
    U32,
}

impl Blobs {
    /// A column of floating point numbers.
    pub(crate) fn floats(&mut self, values: impl ExactSizeIterator<Item = f64>) -> Blob {
        self.add(ElementKind::F64, values.len(), values.map(f64::to_le_bytes))
    }

    /// A column of 32-bit numbers.
    pub(crate) fn words(&mut self, values: impl ExactSizeIterator<Item = u32>) -> Blob {
        self.add(ElementKind::U32, values.len(), values.map(u32::to_le_bytes))
    }

    /// A column of whole numbers: 32 bits each if all fit, else floating point, which is exact up
    /// to 2^53.
    pub(crate) fn whole(&mut self, values: impl ExactSizeIterator<Item = u64> + Clone) -> Blob {
        if values.clone().all(|value| value <= u64::from(u32::MAX)) {
            self.words(values.map(|value| value as u32))
        } else {
            self.floats(values.map(|value| value as f64))
        }
    }

    /// Writes the elements that hold the columns.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for (id, text) in self.texts.iter().enumerate() {
            let kind = "application/octet-stream";
            writeln!(out, "<script type=\"{kind}\" id=\"blob-{id}\">{text}</script>")?;
        }
        Ok(())
    }

    fn add<const N: usize>(
        &mut self,
        kind: ElementKind,
        length: usize,
        values: impl Iterator<Item = [u8; N]>,
    ) -> Blob {
        let id = self.texts.len();
        self.texts.push(base64(length * N, values.flatten()));
        Blob { id, kind, length }
    }
}

fn base64(length: usize, mut bytes: impl Iterator<Item = u8>) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(length.div_ceil(3) * 4);
    while let Some(first) = bytes.next() {
        let rest = [bytes.next(), bytes.next()];
        let [second, third] = rest.map(|byte| u32::from(byte.unwrap_or(0)));
        let bits = u32::from(first) << 16 | second << 8 | third;
        let known = 2 + rest.iter().flatten().count();
        for place in 0..4 {
            let sextet = bits >> (18 - 6 * place) & 0x3F;
            text.push(if place < known { char::from(ALPHABET[sextet as usize]) } else { '=' });
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
            assert_eq!(base64(plain.len(), plain.bytes()), encoded, "of {plain:?}");
        }
    }

    #[test]
    fn whole_numbers_take_four_bytes_until_one_needs_more() {
        let mut blobs = Blobs::default();
        let most = u64::from(u32::MAX);
        assert_eq!(blobs.whole([0, most].into_iter()).kind, ElementKind::U32);
        assert_eq!(blobs.whole([0, most + 1].into_iter()).kind, ElementKind::F64);
    }
}
