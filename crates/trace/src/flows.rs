//! What is known of the flows of each machine.

use crate::NodeId;
use sansio::FlowKey;

/// A value for each flow of each machine. Most machines have one or two flows, and packets come in
/// trains, so the flow of the last packet is looked at first.
#[derive(Clone, Debug)]
pub(crate) struct Flows<V> {
    /// By the machine's number.
    machines: Vec<Machine<V>>,
}

#[derive(Clone, Debug)]
struct Machine<V> {
    /// In the order of their keys.
    flows: Vec<(FlowKey, V)>,
    /// The place of the last one that was found.
    recent: usize,
}

impl<V> Flows<V> {
    pub(crate) fn new() -> Self {
        Flows { machines: Vec::new() }
    }

    /// The values of a machine, in the order of their flows.
    pub(crate) fn of(&self, node: NodeId) -> impl Iterator<Item = &V> {
        let machine = self.machines.get(node.0 as usize);
        machine.into_iter().flat_map(|machine| &machine.flows).map(|(_, value)| value)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, node: NodeId, flow: &FlowKey) -> Option<&mut V> {
        let machine = self.machines.get_mut(node.0 as usize)?;
        let place = machine.place(flow).ok()?;
        Some(&mut machine.flows[place].1)
    }

    /// The value of a flow, which is `first` if it had none.
    #[inline]
    pub(crate) fn get_or_insert(&mut self, node: NodeId, flow: &FlowKey, first: V) -> &mut V {
        let number = node.0 as usize;
        if number >= self.machines.len() {
            let none = || Machine { flows: Vec::new(), recent: 0 };
            self.machines.resize_with(number + 1, none);
        }
        let machine = &mut self.machines[number];
        let place = machine.place(flow).unwrap_or_else(|place| {
            machine.flows.insert(place, (*flow, first));
            place
        });
        &mut machine.flows[place].1
    }

    pub(crate) fn remove(&mut self, node: NodeId, flow: &FlowKey) {
        if let Some(machine) = self.machines.get_mut(node.0 as usize)
            && let Ok(place) = machine.place(flow)
        {
            machine.flows.remove(place);
        }
    }
}

impl<V> Machine<V> {
    /// Where a flow is, or belongs.
    #[inline]
    fn place(&mut self, flow: &FlowKey) -> Result<usize, usize> {
        if self.flows.get(self.recent).is_some_and(|(recent, _)| recent == flow) {
            return Ok(self.recent);
        }
        let place = self.flows.binary_search_by_key(flow, |(known, _)| *known);
        let (Ok(found) | Err(found)) = place;
        self.recent = found;
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sansio::Host;
    use std::collections::BTreeMap;

    fn flow(number: u8) -> FlowKey {
        let host = |last, port| Host { address: [10, 0, 0, last].into(), port };
        FlowKey { source: host(number % 3, 1), destination: host(number / 3, 80) }
    }

    proptest! {
        /// Differential: against a sorted map.
        #[test]
        fn the_flows_agree_with_a_sorted_map(
            steps in prop::collection::vec((0u32..3, 0u8..9, 0u8..4, any::<u16>()), 1..200)
        ) {
            let (mut flows, mut model) = (Flows::new(), BTreeMap::new());
            for (node, number, verb, value) in steps {
                let (node, flow) = (NodeId(node), flow(number));
                match verb {
                    0 => {
                        flows.remove(node, &flow);
                        model.remove(&(node, flow));
                    }
                    1 => prop_assert_eq!(
                        flows.get_mut(node, &flow), model.get_mut(&(node, flow))
                    ),
                    _ => prop_assert_eq!(
                        flows.get_or_insert(node, &flow, value),
                        model.entry((node, flow)).or_insert(value)
                    ),
                }
                let own = model.iter().filter(|((owner, _), _)| *owner == node);
                prop_assert!(flows.of(node).eq(own.map(|(_, value)| value)));
            }
        }
    }
}
