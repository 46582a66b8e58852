//! Which transfers end at a machine. With many hosts that is asked for at every crossing and every
//! first ACK, so it is not searched for.

use super::TransferSpec;
use crate::NodeId;

/// Transfers by the machines at their ends.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// Machine and transfer, in order.
    sorted: Vec<(NodeId, usize)>,
}

impl Ends {
    pub(super) fn new(specs: &[TransferSpec]) -> Self {
        let both =
            |(index, spec): (usize, &TransferSpec)| [(spec.sender, index), (spec.receiver, index)];
        let mut sorted: Vec<_> = specs.iter().enumerate().flat_map(both).collect();
        sorted.sort_unstable();
        sorted.dedup();
        Ends { sorted }
    }

    /// The transfers that a machine sends or receives, in their order.
    pub(super) fn of(&self, node: NodeId) -> impl Iterator<Item = usize> {
        let first = self.sorted.partition_point(|(other, _)| *other < node);
        self.sorted[first..].iter().take_while(move |(other, _)| *other == node).map(|it| it.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sansio::StreamId;

    proptest! {
        /// Differential: against a search of all.
        #[test]
        fn the_transfers_of_a_machine_are_those_that_end_there(
            ends in prop::collection::vec((0_u32..8, 0_u32..8), 0..30)
        ) {
            let spec = |(sender, receiver)| TransferSpec {
                stream: StreamId(0),
                sender: NodeId(sender),
                receiver: NodeId(receiver),
                base: NodeId(9),
                size: None,
                messages: None,
            };
            let specs: Vec<_> = ends.into_iter().map(spec).collect();
            let sorted = Ends::new(&specs);
            for node in (0..9).map(NodeId) {
                let ends_there = |spec: &TransferSpec| [spec.sender, spec.receiver].contains(&node);
                let all = (0..specs.len()).filter(|index| ends_there(&specs[*index]));
                prop_assert!(sorted.of(node).eq(all));
            }
        }
    }
}
