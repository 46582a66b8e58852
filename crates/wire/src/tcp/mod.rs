//! TCP: sequence numbers, flags, the header and its options (RFC 9293, 7323, 2018).
//!
//! Options stay the bytes they were: [`Options`] keeps all of them in order, with padding and
//! unknown kinds, and reads or writes the known ones in place. So a header that was parsed is
//! emitted byte for byte.

mod flags;
mod header;
mod options;
mod seq;

pub use flags::Flags;
pub use header::Header;
pub use options::{
    HANDOFF_MARK, Iter, Options, SackBlock, SackBlocks, TcpOption, Timestamps, kind,
};
pub use seq::Seq;
