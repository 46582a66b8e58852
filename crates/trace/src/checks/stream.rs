//! The stream is intact: what an application gets are the bytes its peer wrote, each once, in
//! order. Virtual payload names its stream and offset, so this is proved, not sampled.

use super::Failures;
use crate::{NodeId, Record, What};
use sansio::{Payload, StreamId};
use std::collections::BTreeMap;

/// Next expected offset per receiving machine and stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    next: BTreeMap<(NodeId, StreamId), u64>,
}

impl Stream {
    pub(super) fn record(&mut self, record: &Record<'_>, failures: &mut Failures) {
        let What::Delivered { payload } = record.what else { return };
        let Payload::Virtual { stream, offset, length } = payload else { return };
        let next = self.next.entry((record.node, *stream)).or_insert(0);
        if offset != next {
            let what = format!("stream {}: byte {offset} delivered, {next} expected", stream.0);
            failures.add("stream", record.at, record.node, what);
        }
        *next = offset + u64::from(*length);
    }
}
