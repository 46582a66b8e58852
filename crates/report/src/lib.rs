//! Results and traces as tables and plots: [`table`] for the terminal, [`page`] for one HTML file
//! that opens offline, [`svg`] for drawings in a paper, [`article`] and [`figure`] for what is
//! printed and cited: text, tables and SVG without a script.
//!
//! This crate takes values that are ready to be shown. It knows records ([`trace::timeline`]) but
//! not how runs are made or summarised, so whoever has rows and series can have a report.
//!
//! ```text
//!   table::Table ──────────────▶ text, as wide as the terminal
//!        └──▶ page::Page ──▶ page::write ──▶ one HTML file: text and tables as they are,
//!   page::Lines ──┘   ▲                      plots as data, drawn by the script it carries
//!   trace::Timeline ──┘
//! ```

pub mod article;
mod blob;
pub mod figure;
mod html;
pub mod page;
mod plot;
mod roaming;
mod story;
pub mod svg;
pub mod table;
