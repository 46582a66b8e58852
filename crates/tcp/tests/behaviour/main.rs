//! The endpoint's behaviour, seen from outside.

mod pair;
mod transfer;
