//! What a base station still has when somebody asks.

use super::Agent;
use sansio::PacketRef;

impl Agent {
    /// All packets that wait: for a window, or for a tunnel to drain.
    pub fn packets(&self) -> impl Iterator<Item = &PacketRef> {
        let sequencers = self.mobiles.values().filter_map(|mobile| mobile.sequencer.as_ref());
        let sequenced = sequencers.flat_map(|sequencer| sequencer.packets());
        self.buffers.values().flat_map(|buffer| buffer.packets()).chain(sequenced)
    }
}
