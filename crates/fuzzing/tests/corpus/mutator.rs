//! Changes to kept inputs, drawn from a fixed seed.

use sansio::Random;

/// Values that sit on the edges of fields.
const EDGES: [u32; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_f000,
    0xffff_ffff,
];
/// No input grows beyond this.
const BYTES_MAX: usize = 1_600;
/// Inputs at hand, kept ones and mutations of theirs.
const POOL_MAX: usize = 400;

/// Draws inputs from a pool that its own mutations join.
pub(crate) struct Mutator {
    random: Random,
    pool: Vec<Vec<u8>>,
    kept: usize,
}

impl Mutator {
    pub(crate) fn new(name: &str, pool: Vec<Vec<u8>>) -> Self {
        assert!(!pool.is_empty(), "there is something to mutate");
        Mutator { random: Random::new(1, name), kept: pool.len(), pool }
    }

    pub(crate) fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.any_of_pool();
        for _ in 0..=self.below(5) {
            self.mutate(&mut input);
        }
        input.truncate(BYTES_MAX);
        if self.below(8) == 0 {
            if self.pool.len() < self.kept + POOL_MAX {
                self.pool.push(input.clone());
            } else {
                let index = self.kept + self.below(POOL_MAX);
                self.pool[index] = input.clone();
            }
        }
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        match self.below(9) {
            0 | 1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            2 => self.overwrite_with_edge(input, at),
            3 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = self.random.bits() as u8;
                }
            }
            4 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = byte.wrapping_add(self.random.below(9) as u8).wrapping_sub(4);
                }
            }
            5 => input.truncate(at),
            6 => {
                let end = (at + self.below(12)).min(input.len());
                input.drain(at..end);
            }
            7 => {
                // A piece of its own once more, at another place.
                let end = (at + self.below(24)).min(input.len());
                let piece = input[at..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            _ => {
                // The rest of another input.
                let other = self.any_of_pool();
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }

    fn overwrite_with_edge(&mut self, input: &mut [u8], at: usize) {
        let edge = EDGES[self.below(EDGES.len())].to_be_bytes();
        let width = [1, 2, 4][self.below(3)];
        for (byte, value) in input[at..].iter_mut().zip(&edge[4 - width..]) {
            *byte = *value;
        }
    }

    fn any_of_pool(&mut self) -> Vec<u8> {
        let index = self.below(self.pool.len());
        self.pool[index].clone()
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }
}
