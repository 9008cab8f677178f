//! What is served, by subject: each module has its part of the table and the handlers for it.

mod absent;
mod accounts;
mod bind;
mod bindings;
mod certificates;
mod channels;
mod close;
mod cluster;
mod connections;
mod consumers;
mod declare;
mod definitions;
mod diagnosis;
mod events;
mod exchanges;
mod features;
mod general;
mod health;
mod listeners;
pub(crate) mod live;
mod log;
mod message_sizes;
mod messages;
mod moves;
mod nodes;
mod oauth;
mod overview;
mod parameters;
mod pause;
mod peek;
mod policies;
mod policy_preview;
mod questions;
mod queues;
mod refused;
mod runtime;
mod scrub;
mod search;
mod session;
mod settings;
mod stats;
mod streams;
mod users;
mod vhost_changes;
pub(crate) mod vhost_limits;
mod vhosts;

pub(crate) use definitions::{
    definitions_file, exported, exports, import_of, imported_with, tell_plan,
};
pub(crate) use diagnosis::QUEUES_MAX;
pub(crate) use health::reply_alarms;
pub(crate) use nodes::{NODE_COUNTERS, memory_parts};
pub(crate) use parameters::{check_parameter, is_component, name_of_cluster};
pub(crate) use refused::RefusedPermissions;
pub(crate) use settings::policy;
pub(crate) use settings::{changes_policies, turn};
pub(crate) use vhost_changes::{Said, change_placed};

use crate::routes::{Changes, Handler, Needs, Route, Verb};

/// Everything that is served.
pub(crate) const TABLE: &[&[Route]] = &[
    general::ROUTES,
    session::ROUTES,
    oauth::ROUTES,
    absent::ROUTES,
    events::ROUTES,
    log::ROUTES,
    certificates::ROUTES,
    overview::ROUTES,
    message_sizes::ROUTES,
    nodes::ROUTES,
    listeners::ROUTES,
    scrub::ROUTES,
    runtime::ROUTES,
    health::ROUTES,
    cluster::ROUTES,
    vhosts::ROUTES,
    users::ROUTES,
    connections::ROUTES,
    channels::ROUTES,
    consumers::ROUTES,
    exchanges::ROUTES,
    queues::ROUTES,
    bindings::ROUTES,
    policies::ROUTES,
    accounts::ROUTES,
    settings::ROUTES,
    declare::ROUTES,
    bind::ROUTES,
    messages::ROUTES,
    peek::ROUTES,
    streams::ROUTES,
    moves::ROUTES,
    pause::ROUTES,
    questions::ROUTES,
    diagnosis::ROUTES,
    close::ROUTES,
    features::ROUTES,
    definitions::ROUTES,
    vhost_changes::ROUTES,
    parameters::ROUTES,
];

const fn get(pattern: &'static str, needs: Needs, handler: Handler, doc: &'static str) -> Route {
    Route { method: Verb::Get, pattern, needs, changes: Changes::Nothing, handler, doc }
}
