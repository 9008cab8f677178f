//! What an operator sees of the broker and may do to it, without sockets.

mod bindings;
mod capacity;
mod commands;
mod connections;
mod contents;
mod counts;
mod durable;
mod events;
mod far_out;
mod figures;
mod interventions;
mod messages;
mod paging;
mod paging_under_change;
mod parameters;
mod pause;
mod publish;
mod questions;
mod refused_moves;
mod relocate;
mod streams;
mod vhost_settings;
mod views;
