//! Arithmetic modulo 2^32, and checksums changed in place.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::checksum::{Change, Sum, update_double_word, update_word};
use wire::tcp::Seq;

/// RFC 1071 to the letter: word by word, carries folded in at the end.
fn checksum_by_words(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for word in bytes.chunks(2) {
        sum += u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

proptest! {
    #[test]
    fn sums_equal_those_by_words(bytes in vec(any::<u8>(), 0..300), cut in 0..150_usize) {
        let cut = (2 * cut).min(bytes.len() & !1);
        let sum = Sum::default().add_bytes(&bytes[..cut]).add_bytes(&bytes[cut..]);
        prop_assert_eq!(sum.checksum(), checksum_by_words(&bytes));
    }

    #[test]
    fn words_and_double_words_count_as_their_bytes(word: u16, words: u32) {
        let bytes = [&word.to_be_bytes()[..], &words.to_be_bytes()].concat();
        let sum = Sum::default().add_word(word).add_double_word(words);
        prop_assert_eq!(sum.checksum(), checksum_by_words(&bytes));
    }

    #[test]
    fn an_updated_checksum_equals_a_recomputed_one(
        mut bytes in vec(any::<u8>(), 20..60), at in 1..8_usize, word: u16, words: u32,
    ) {
        // As in every header that is covered, some word stays other than zero.
        bytes[0] = 0x45;
        let at = 2 * at;
        let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let before = checksum_by_words(&bytes);
        bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
        let between = checksum_by_words(&bytes);
        prop_assert_eq!(update_word(before, Change { old, new: word }), between);

        let old = bytes[at..at + 4].try_into().map(u32::from_be_bytes).unwrap();
        bytes[at..at + 4].copy_from_slice(&words.to_be_bytes());
        let after = checksum_by_words(&bytes);
        prop_assert_eq!(update_double_word(between, Change { old, new: words }), after);
    }

    #[test]
    fn mod_18_order_is_that_of_the_distance_wherever_the_numbers_wrap(
        start in prop_oneof![any::<u32>(), u32::MAX - 5..=u32::MAX, 0..5_u32],
        distance in prop_oneof![1..1_u32 << 31, Just((1 << 31) - 1), 1..10_u32],
    ) {
        let (early, late) = (Seq(start), Seq(start) + distance);
        prop_assert!(early.before(late) && early.at_or_before(late));
        prop_assert!(late.after(early) && late.at_or_after(early));
        prop_assert!(!late.before(early) && !late.at_or_before(early));
        prop_assert!(!early.after(late) && !early.at_or_after(late));
        prop_assert_eq!(late.since(early), distance);
        prop_assert_eq!(late - distance, early);
        prop_assert_eq!((early.max(late), early.min(late)), (late, early));
        prop_assert_eq!((late.max(early), late.min(early)), (late, early));
    }

    #[test]
    fn mod_18_a_number_is_at_itself_and_neither_before_nor_after(number: u32) {
        let seq = Seq(number);
        prop_assert!(seq.at_or_before(seq) && seq.at_or_after(seq));
        prop_assert!(!seq.before(seq) && !seq.after(seq));
        prop_assert_eq!(seq.since(seq), 0);
    }
}

#[test]
fn mod_18_the_byte_after_the_last_number_is_number_zero() {
    let mut seq = Seq(u32::MAX);
    seq += 1;
    assert_eq!(seq, Seq(0));
    assert!(Seq(u32::MAX).before(seq));
    assert_eq!(Seq(3).since(Seq(u32::MAX - 1)), 5);
}
