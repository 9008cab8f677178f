//! The groups of a cluster, as its home broker keeps them: which there are is decided once, by its log.

use super::Admin;
use crate::fault::{Fault, store_fault};
use crate::persistence::definition;

/// A group of the cluster besides the home group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterGroup {
    /// Its number, from 1 on.
    pub number: u16,
    /// What the nodes have to know of it, in their own words.
    pub formation: Vec<u8>,
}

impl Admin {
    /// The group of a cluster whose vhosts this broker serves.
    pub fn group(&self) -> u16 {
        self.broker.group()
    }

    /// The group that a vhost is in; none if there is no such vhost.
    pub fn group_of(&self, vhost: &str) -> Option<u16> {
        self.broker.vhost(vhost).map(|vhost| vhost.group())
    }

    /// The groups of the cluster that were defined here, by their numbers.
    pub fn cluster_groups(&self) -> Vec<ClusterGroup> {
        let all = self.broker.kept.of_kind(definition::CLUSTER_GROUP);
        let read = |(key, formation): (Vec<u8>, Vec<u8>)| {
            let number = u16::from_be_bytes(key.try_into().ok()?);
            Some(ClusterGroup { number, formation })
        };
        all.into_iter().filter_map(read).collect()
    }

    /// Defines a group of the cluster. One that is there stays as it is.
    ///
    /// # Errors
    /// When the store takes nothing.
    pub fn define_cluster_group(&self, group: &ClusterGroup) -> Result<(), Fault> {
        let [high, low] = group.number.to_be_bytes();
        let key = vec![definition::CLUSTER_GROUP, high, low];
        if self.broker.kept.get(&key).is_some() {
            return Ok(());
        }
        let defined = self.broker.define_for_broker(key, &group.formation);
        defined.map(drop).map_err(store_fault)
    }
}
