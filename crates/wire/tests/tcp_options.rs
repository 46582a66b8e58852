//! TCP options read, appended and changed in place.

use wire::Error;
use wire::tcp::{HANDOFF_MARK, Options, SackBlock, Seq, Timestamps, kind};

const TIMESTAMPS: Timestamps = Timestamps { value: 0x0102_0304, echo: 0x0506_0708 };
const TIMESTAMPS_BYTES: [u8; 10] = [kind::TIMESTAMPS, 10, 1, 2, 3, 4, 5, 6, 7, 8];

fn options(parts: &[&[u8]]) -> Options {
    Options::from_bytes(&parts.concat()).unwrap()
}

fn block(start: u32, end: u32) -> SackBlock {
    SackBlock { start: Seq(start), end: Seq(end) }
}

/// A SYN of Linux: MSS, SACK permitted, timestamps, NOP, window scale.
fn syn() -> Options {
    options(&[&[2, 4, 5, 180], &[4, 2], &TIMESTAMPS_BYTES, &[1], &[3, 3, 7]])
}

#[test]
fn each_known_option_is_found_wherever_it_stands() {
    let syn = syn();
    assert_eq!(syn.validate(), Ok(()));
    assert_eq!(syn.mss(), Some(1460));
    assert_eq!(syn.window_scale(), Some(7));
    assert_eq!(syn.timestamps(), Some(TIMESTAMPS));
    assert!(syn.sack_permitted());
    assert_eq!(syn.sack_blocks().count(), 0);
}

#[test]
fn nothing_is_found_where_there_is_nothing() {
    for options in [Options::default(), options(&[&[1, 1, 1, 0]])] {
        assert_eq!(options.timestamps(), None);
        assert_eq!((options.mss(), options.window_scale()), (None, None));
        assert!(!options.sack_permitted());
        assert_eq!(options.sack_blocks().count(), 0);
    }
}

#[test]
fn sack_blocks_are_found_after_aligned_timestamps() {
    let mut options = Options::default();
    options.push_timestamps(TIMESTAMPS).unwrap();
    let blocks = [block(1, 2), block(u32::MAX, 3), block(4, 5), block(6, 7)];
    // 12 bytes of timestamps leave room for three blocks (RFC 2018, section 3).
    assert_eq!(options.push_sack(&blocks), 3);
    assert_eq!(options.as_bytes().len(), 40);
    assert_eq!(options.timestamps(), Some(TIMESTAMPS));
    assert_eq!(options.sack_blocks().collect::<Vec<_>>(), blocks[..3]);
    assert_eq!(options.push_sack(&blocks), 0);
    assert_eq!(options.push(&[kind::NOP]), Err(Error::Length { field: "TCP options", value: 1 }));
}

#[test]
fn timestamps_change_in_place_and_nothing_else_does() {
    let new = Timestamps { value: 0xa1a2_a3a4, echo: 0xb1b2_b3b4 };
    let new_bytes = [8, 10, 0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xb3, 0xb4];
    let before: [&[u8]; 4] = [&[], &[1, 1], &[2, 4, 5, 180, 4, 2], &[253, 5, 8, 10, 8]];
    for before in before {
        let mut changed = options(&[before, &TIMESTAMPS_BYTES, &[3, 3, 7]]);
        assert!(changed.set_timestamps(new));
        assert_eq!(changed, options(&[before, &new_bytes, &[3, 3, 7]]));
        assert_eq!(changed.timestamps(), Some(new));
    }
}

#[test]
fn timestamps_that_are_not_there_are_not_set() {
    let without: [&[u8]; 6] = [
        &[],
        &[2, 4, 5, 180],
        // After the end of the list; cut; of another length; after an option that cannot be
        // stepped over.
        &[0, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8],
        &[8, 10, 1, 2, 3, 4, 5, 6, 7],
        &[8, 6, 1, 2, 3, 4],
        &[253, 0, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8],
    ];
    for bytes in without {
        let mut options = options(&[bytes]);
        assert!(!options.set_timestamps(TIMESTAMPS), "{bytes:?}");
        assert_eq!(options.as_bytes(), bytes);
        assert_eq!(options.timestamps(), None);
    }
}

#[test]
fn a_length_below_two_or_past_the_list_is_named() {
    let cases: [(&[u8], u8, u8); 5] = [
        (&[253, 0, 1, 1], 253, 0),
        (&[253, 1, 1, 1], 253, 1),
        (&[1, 1, 253, 3], 253, 3),
        (&[1, 1, 1, 253], 253, 0),
        // Begins like the common list but is another.
        (&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7], 8, 10),
    ];
    for (bytes, kind, length) in cases {
        let error = Error::TcpOption { kind, length };
        assert_eq!(options(&[bytes]).validate(), Err(error), "{bytes:?}");
        assert!(options(&[bytes]).iter().count() <= 3);
    }
    // What follows the end of the list is padding, whatever it says.
    assert_eq!(options(&[&[1, 0, 253, 0]]).validate(), Ok(()));
}

#[test]
fn more_than_forty_bytes_are_refused() {
    assert!(Options::from_bytes(&[1; 40]).is_ok());
    let error = Error::Length { field: "TCP options", value: 41 };
    assert_eq!(Options::from_bytes(&[1; 41]), Err(error));
}

#[test]
fn ci_frx_4_the_mark_is_found_among_other_options_and_nothing_else_is_taken_for_it() {
    let with = |lists: &[&[u8]]| {
        let mut options = Options::default();
        lists.iter().for_each(|list| options.push(list).expect("room"));
        options
    };
    let stamps = [&[kind::NOP, kind::NOP][..], &TIMESTAMPS_BYTES].concat();
    for marked in [with(&[&HANDOFF_MARK]), with(&[&stamps, &HANDOFF_MARK])] {
        assert!(marked.validate().is_ok() && marked.has_handoff_mark());
    }
    let [kind, length, first, second] = HANDOFF_MARK;
    for other in [
        with(&[]),
        with(&[&stamps]),
        with(&[&stamps, &[kind, length, second, first]]),
        with(&[&stamps, &[kind, 6, first, second, 0, 0]]),
        with(&[&[kind + 1, length, first, second]]),
    ] {
        assert!(!other.has_handoff_mark(), "{other:?}");
    }
}
