//! A threshold of signal strength with a margin against flutter (LINK-1, WINC-MH-4).

/// Below or above, with memory: what lies between the two marks changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    falls_below: i16,
    rises_to: i16,
    is_above: bool,
}

/// A signal went through a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// It is weak now.
    Fell,
    /// It is strong now.
    Rose,
}

impl Threshold {
    /// Weak below `falls_below`, strong again from `rises_to` on, which is not lower; both in
    /// tenths of a decibel. Weak at first.
    pub fn new(falls_below: i16, rises_to: i16) -> Self {
        Threshold { falls_below, rises_to: rises_to.max(falls_below), is_above: false }
    }

    /// Takes a sample; says if it crossed the threshold (LINK-1).
    pub fn sample(&mut self, decibels_10: i16) -> Option<Crossing> {
        if self.is_above && decibels_10 < self.falls_below {
            self.is_above = false;
            return Some(Crossing::Fell);
        }
        if !self.is_above && decibels_10 >= self.rises_to {
            self.is_above = true;
            return Some(Crossing::Rose);
        }
        None
    }

    /// True from the rise to the fall.
    pub fn is_above(&self) -> bool {
        self.is_above
    }
}
