//! The endpoint's behaviour, seen from outside.

mod ns2;
mod pair;
mod properties;
mod transfer;
