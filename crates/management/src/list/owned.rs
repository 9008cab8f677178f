//! How much memory the items of a list take that is whole in memory.

use courser_auth::{PermissionRow, TopicPermissionRow};
use courser_broker::admin::{
    BindingView, ChannelView, ConsumerView, GlobalParameter, Parameter, Policy, VhostView,
    table_bytes,
};
use std::sync::Arc;

/// What may have memory of its own.
pub(crate) trait Owned {
    /// Bytes that it takes beyond its own size.
    fn owned_bytes(&self) -> usize;
}

/// What others have too takes nothing more.
impl<T> Owned for Arc<T> {
    fn owned_bytes(&self) -> usize {
        0
    }
}

impl<A: Owned, B: Owned> Owned for (A, B) {
    fn owned_bytes(&self) -> usize {
        self.0.owned_bytes() + self.1.owned_bytes()
    }
}

impl Owned for String {
    fn owned_bytes(&self) -> usize {
        self.len()
    }
}

impl Owned for BindingView {
    fn owned_bytes(&self) -> usize {
        let names = [&self.source, &self.destination, &self.routing_key];
        let names: usize = names.iter().map(|name| name.len()).sum();
        self.vhost.len() + names + table_bytes(&self.arguments)
    }
}

impl Owned for ConsumerView {
    fn owned_bytes(&self) -> usize {
        let names: usize = [&self.queue, &self.tag, &self.user].iter().map(|name| name.len()).sum();
        self.vhost.len() + self.connection.len() + names
    }
}

impl Owned for ChannelView {
    fn owned_bytes(&self) -> usize {
        self.vhost.len() + self.connection.len() + self.user.len()
    }
}

impl Owned for Policy {
    fn owned_bytes(&self) -> usize {
        self.name.len() + self.pattern.len() + table_bytes(&self.definition)
    }
}

impl Owned for Parameter {
    fn owned_bytes(&self) -> usize {
        self.vhost.len() + self.component.len() + self.name.len() + self.value.len()
    }
}

impl Owned for GlobalParameter {
    fn owned_bytes(&self) -> usize {
        self.name.len() + self.value.len()
    }
}

impl Owned for PermissionRow {
    fn owned_bytes(&self) -> usize {
        let PermissionRow { user, vhost, configure, write, read } = self;
        bytes_of([user, vhost, configure, write, read])
    }
}

impl Owned for TopicPermissionRow {
    fn owned_bytes(&self) -> usize {
        let TopicPermissionRow { user, vhost, exchange, write, read } = self;
        bytes_of([user, vhost, exchange, write, read])
    }
}

fn bytes_of(texts: [&String; 5]) -> usize {
    texts.iter().map(|text| text.len()).sum()
}

impl Owned for VhostView {
    fn owned_bytes(&self) -> usize {
        let tags: usize = self.tags.iter().map(|tag| size_of::<String>() + tag.len()).sum();
        let kind = self.default_queue_type.as_ref().map_or(0, String::len);
        self.name.len() + self.description.len() + tags + kind
    }
}
