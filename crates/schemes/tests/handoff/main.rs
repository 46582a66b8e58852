//! The schemes of a handoff, step by step: fast retransmission and window control, each test named
//! by the row of the specification that it shows.

mod drill;
mod fast_retransmit;
mod properties;
mod window_mobile;
mod window_station;
