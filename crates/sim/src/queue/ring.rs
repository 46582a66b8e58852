//! Keys of the near future in unsorted lists, one for each span of time.

use super::{Key, nanos};

/// Lists of keys for the spans from the horizon on; the list of a span is at its number modulo the
/// number of lists.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// All spans before this one have passed.
    next: u64,
    /// The first node of each list, or [`END`]; none are made before a key comes.
    heads: Vec<u32>,
    /// One bit per list: it is not empty.
    occupied: Vec<u64>,
    nodes: Vec<Node>,
    /// The first of the unused nodes.
    unused: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    next: u32,
}

/// 2^15 ns, some 33 us.
const SPAN_BITS: u32 = 15;
/// Together 268 ms: retransmission timers lie beyond, packets under way within.
const SPANS: u64 = 8192;
const WORDS: usize = SPANS as usize / 64;
const END: u32 = u32::MAX;

impl Ring {
    pub(super) fn new() -> Self {
        Ring { next: 0, heads: Vec::new(), occupied: Vec::new(), nodes: Vec::new(), unused: END }
    }

    /// The span of a time in nanoseconds.
    #[inline]
    pub(super) fn span(nanos: u64) -> u64 {
        nanos >> SPAN_BITS
    }

    /// Time, in nanoseconds, before which no key is here or will be taken.
    #[inline]
    pub(super) fn horizon(&self) -> u64 {
        self.next << SPAN_BITS
    }

    /// Takes a key at or after the horizon; false if it is beyond the last list.
    #[inline]
    pub(super) fn add(&mut self, key: Key) -> bool {
        let span = Self::span(nanos(key));
        if span >= self.next + SPANS {
            return false;
        }
        if self.heads.is_empty() {
            self.heads = vec![END; SPANS as usize];
            self.occupied = vec![0; WORDS];
        }
        let list = (span % SPANS) as usize;
        let node = Node { key, next: self.heads[list] };
        let place = self.unused;
        self.heads[list] = match self.nodes.get_mut(place as usize) {
            Some(unused) => {
                self.unused = unused.next;
                *unused = node;
                place
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        self.occupied[list / 64] |= 1 << (list % 64);
        true
    }

    /// The first span that holds keys.
    pub(super) fn next_span(&self) -> Option<u64> {
        let from = (self.next % SPANS) as usize;
        let first = self.occupied.get(from / 64)? & (u64::MAX << (from % 64));
        // Around once, and the part of the first word before `from` last.
        let words = (0..=WORDS).map(|step| {
            let word = (from / 64 + step) % WORDS;
            (word, if step == 0 { first } else { self.occupied[word] })
        });
        let (word, bits) = words.into_iter().find(|(_, bits)| *bits != 0)?;
        let list = (word * 64) as u64 + u64::from(bits.trailing_zeros());
        Some(self.next + (list + SPANS - from as u64) % SPANS)
    }

    /// Moves the horizon past a span, none before which holds keys, and gives its keys away.
    pub(super) fn pass(&mut self, span: u64, mut give: impl FnMut(Key)) {
        debug_assert!(span >= self.next, "time does not run backwards");
        // A time beyond all spans would have no horizon after it.
        self.next = (span + 1).min(u64::MAX >> SPAN_BITS);
        let list = (span % SPANS) as usize;
        let Some(head) = self.heads.get_mut(list) else { return };
        let mut place = core::mem::replace(head, END);
        self.occupied[list / 64] &= !(1 << (list % 64));
        while let Some(node) = self.nodes.get_mut(place as usize) {
            give(node.key);
            let next = core::mem::replace(&mut node.next, self.unused);
            self.unused = place;
            place = next;
        }
    }
}
