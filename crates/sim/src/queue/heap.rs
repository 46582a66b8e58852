//! A four-ary heap of keys whose groups of children lie in one cache line each.
//!
//! Whoever takes the least key often adds another one soon: the first key that is added after one
//! was taken goes into its place and sinks from there, which costs half of a removal and an
//! addition.

use super::Key;

/// Four siblings, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([Key; 4]);

/// Keys, the least first.
#[derive(Clone, Debug)]
pub(super) struct Heap {
    first: Key,
    /// The first key was taken and its place not filled yet.
    vacant: bool,
    /// Group g holds the children of node g; node 0 is `first`, node n > 0 is the key
    /// (n - 1) % 4 of group (n - 1) / 4. Places beyond the last are [`EMPTY`].
    groups: Vec<Group>,
    /// Places in use, a vacant one included.
    length: usize,
}

const EMPTY: Key = Key::MAX;

impl Heap {
    pub(super) fn new() -> Self {
        Heap { first: EMPTY, vacant: false, groups: Vec::new(), length: 0 }
    }

    /// Places in use; one more than there are keys just after [`Heap::take_first`].
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The least key.
    #[inline]
    pub(super) fn first(&mut self) -> Option<Key> {
        if self.vacant {
            self.close_up();
        }
        (self.length > 0).then_some(self.first)
    }

    /// Takes the least key, the one that [`Heap::first`] just named, away.
    #[inline]
    pub(super) fn take_first(&mut self) {
        debug_assert!(self.length > 0 && !self.vacant, "there is a first key");
        self.vacant = true;
    }

    /// Adds a key.
    #[inline]
    pub(super) fn add(&mut self, key: Key) {
        if self.vacant {
            self.vacant = false;
            self.sink(key);
        } else {
            self.rise(key);
        }
    }

    /// Puts a key at the end and lets it rise to its place.
    fn rise(&mut self, key: Key) {
        let mut node = self.length;
        self.length += 1;
        if node > 0 && (node - 1) / 4 == self.groups.len() {
            self.groups.push(Group([EMPTY; 4]));
        }
        while node > 0 {
            let parent = (node - 1) / 4;
            let above = self.get(parent);
            if above <= key {
                break;
            }
            self.put(node, above);
            node = parent;
        }
        self.put(node, key);
    }

    /// Fills the vacant first place with the last key.
    fn close_up(&mut self) {
        self.vacant = false;
        self.length -= 1;
        let last = self.get(self.length);
        self.put(self.length, EMPTY);
        if self.length > 0 {
            self.sink(last);
        }
    }

    /// Lets a key sink from the top to its place.
    #[inline]
    fn sink(&mut self, key: Key) {
        let mut node = 0;
        // By reference: a copy of the group would have to wait for the keys just stored in it.
        while let Some(Group(children)) = self.groups.get(node) {
            let left = usize::from(children[1] < children[0]);
            let right = 2 + usize::from(children[3] < children[2]);
            let least = if children[right] < children[left] { right } else { left };
            let above = children[least];
            if above >= key {
                break;
            }
            self.put(node, above);
            node = node * 4 + 1 + least;
        }
        self.put(node, key);
    }

    #[inline]
    fn get(&self, node: usize) -> Key {
        match node {
            0 => self.first,
            _ => self.groups[(node - 1) / 4].0[(node - 1) % 4],
        }
    }

    #[inline]
    fn put(&mut self, node: usize, key: Key) {
        match node {
            0 => self.first = key,
            _ => self.groups[(node - 1) / 4].0[(node - 1) % 4] = key,
        }
    }
}
