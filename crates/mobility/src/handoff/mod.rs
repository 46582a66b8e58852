//! A handoff between base stations by greeting, moved notice and completion (CI-HO-3 to CI-HO-6).
//!
//! ```text
//!   mobile host            new base station          old base station
//!        ── greeting ──────────▶
//!        ◀── greeting ack ─────── ── moved notice ─────▶  forwards from now on
//!                                ◀── handoff ack ──────
//!        ◀── completion ─────────
//! ```
//!
//! [`mobile`] is the mobile host's side, [`station`] that of both base stations. A generation, the
//! time of the attachment by the mobile host's clock, settles races: whoever knows of a later
//! attachment takes no message about an earlier one. The mobile host repeats its greeting until
//! it has the completion; a base station that has it already only answers again.
//!
//! Messages get lost, and so more than one base station may take the mobile host for its own: one
//! that was greeted and not heard, one that no notice reached. The greeting names all of them, the
//! new base station tells all, and only when all have answered is the handoff complete.

pub mod mobile;
pub mod station;
