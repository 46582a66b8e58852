//! What is known of machines, by their numbers.

use crate::NodeId;

/// A value for each of some machines.
#[derive(Clone, Debug)]
pub(crate) struct ByNode<V> {
    values: Vec<Option<V>>,
}

impl<V> ByNode<V> {
    pub(crate) fn insert(&mut self, node: NodeId, value: V) {
        let number = node.0 as usize;
        if number >= self.values.len() {
            self.values.resize_with(number + 1, || None);
        }
        self.values[number] = Some(value);
    }

    #[inline]
    pub(crate) fn get(&self, node: &NodeId) -> Option<&V> {
        self.values.get(node.0 as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, node: &NodeId) -> Option<&mut V> {
        self.values.get_mut(node.0 as usize)?.as_mut()
    }
}

impl<V> Default for ByNode<V> {
    fn default() -> Self {
        ByNode { values: Vec::new() }
    }
}
