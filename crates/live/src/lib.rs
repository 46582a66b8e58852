//! The Linux driver: the same engines as in the simulator, between real kernels.
//!
//! Map: [`daemon`] (a base station on real devices), [`io`] (where its packets come from),
//! [`frame`] (frames to packets and back), [`buffers`] (their memory), [`radio`] (the emulated hops
//! and their observer), [`lab`] (three hosts in namespaces, runs, commands), [`doctor`] (what this
//! machine allows), [`sys`] (system calls: all the unsafe code there is).

pub mod buffers;
pub mod daemon;
pub mod doctor;
pub mod frame;
pub mod io;
pub mod lab;
pub mod radio;
pub mod sys;
