//! What an operator sees of the broker and may do to it, without sockets.

mod bindings;
mod commands;
mod connections;
mod counts;
mod events;
mod messages;
mod paging;
mod paging_under_change;
mod publish;
mod views;
