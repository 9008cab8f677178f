//! The groups of the cluster as the HTTP API of home knows them: how it reaches the brokers of the others.

use super::front::{Front, Serves};
use courser_cluster::GroupNumber;
use courser_management::{Exporter, Groups, Later, RelayStream};
use std::io;
use std::sync::{Arc, Weak};

/// The groups of the node that a front belongs to.
pub(crate) struct Apis(Weak<Front>);

impl Apis {
    /// `None` for a broker by itself.
    pub fn of(front: &Weak<Front>) -> Option<Arc<dyn Groups>> {
        front.upgrade().map(|_| Arc::new(Apis(Weak::clone(front))) as _)
    }
}

impl Groups for Apis {
    fn others(&self) -> Vec<u16> {
        let Some(front) = self.0.upgrade() else { return Vec::new() };
        let all = front.groups.all().into_iter();
        all.filter(|group| !group.is_home()).map(|group| group.number.0).collect()
    }

    fn connect(&self, group: u16) -> Later<io::Result<RelayStream>> {
        let front = self.0.upgrade();
        Box::pin(async move {
            let front = front.ok_or(io::ErrorKind::NotConnected)?;
            front.connect_inside(GroupNumber(group)).await
        })
    }

    fn changed(&self) -> Later<()> {
        let front = self.0.upgrade();
        Box::pin(async move {
            if let Some(front) = front {
                front.spread_definitions().await;
            }
        })
    }
}

impl Front {
    /// What shows the metrics of the brokers on this node, that of home first.
    pub(super) fn exporters(&self) -> Vec<Arc<Exporter>> {
        let here = |serves| match serves {
            Serves::Here(service) => Some(Arc::clone(&service.exporter)),
            _ => None,
        };
        self.groups.all().iter().filter_map(|group| here(group.serves())).collect()
    }
}
