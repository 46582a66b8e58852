//! Caches are bounded: a base station never keeps more than its named limit.

use super::Failures;
use crate::{Record, What};

/// No state: every record says it all.
#[derive(Clone, Copy, Debug)]
pub struct Caches;

impl Caches {
    pub(super) fn record(&mut self, record: &Record<'_>, failures: &mut Failures) {
        if let What::Cached { bytes, limit } = record.what
            && bytes > limit
        {
            let what = format!("{bytes} bytes cached, {limit} allowed");
            failures.add("caches", record.at, record.node, what);
        }
    }
}
