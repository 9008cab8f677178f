//! Definitions: what a broker, or one vhost, is made of, as a JSON file that RabbitMQ reads and writes.

mod around;
mod bindings;
mod check;
mod compare;
mod error;
mod export;
mod foreign;
mod import;
mod permissions;
mod policies;
mod skipped;
mod users;
mod vhosts;

pub(crate) use compare::compare;
pub use error::ImportError;
pub(crate) use export::OWN_PARAMETERS;
pub use export::{FIRST_USERS_MADE, IMPORTED_BY_NODES, IMPORTED_HASH, LEFT_OUT};
pub(crate) use export::{leave_out_foreign_hashes, metadata, of_broker, of_vhost};
pub(crate) use import::import_into;
pub use import::{Imported, import};
pub(crate) use permissions::named_permission;
pub use skipped::Rows;
