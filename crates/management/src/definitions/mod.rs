//! Definitions: what a broker, or one vhost, is made of, as a JSON file that RabbitMQ reads and writes.

mod around;
mod bindings;
mod check;
mod compare;
mod export;
mod foreign;
mod import;
mod permissions;
mod skipped;
mod users;
mod vhosts;

pub(crate) use compare::compare;
pub(crate) use export::OWN_PARAMETERS;
pub use export::{IMPORTED_BY_NODES, IMPORTED_HASH};
pub(crate) use export::{leave_out_foreign_hashes, metadata, of_broker, of_vhost};
pub(crate) use import::import_into;
pub use import::{ImportError, Imported, import};
pub(crate) use permissions::named_permission;
pub(crate) use skipped::Rows;
