//! Reading an input as a script: whatever the bytes are, they mean something.

/// The rest of an input. What is read past its end is zero.
pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Script(bytes)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn double_word(&mut self) -> u32 {
        u32::from(self.word()) << 16 | u32::from(self.word())
    }

    /// Up to `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// One of several, by the next byte.
    pub(crate) fn one_of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[usize::from(self.byte()) % N]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_reads_to_its_end_and_then_zeros() {
        let mut script = Script::new(&[1, 2, 3, 4, 5]);
        assert_eq!(script.byte(), 1);
        assert_eq!(script.word(), 0x0203);
        assert_eq!(script.one_of([10, 11, 12]), 11);
        assert_eq!(script.bytes(9), [5]);
        assert!(script.is_over());
        assert_eq!((script.byte(), script.double_word()), (0, 0));
    }
}
