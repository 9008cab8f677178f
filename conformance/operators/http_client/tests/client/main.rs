//! The HTTP API as the crate `rabbitmq_http_client` sees it. The broker is at the usual ports of this
//! machine, with nothing in it and the user guest.

mod accounts;
mod messages;
mod node;
mod settings;
mod support;
mod topology;
