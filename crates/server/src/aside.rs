//! What may wait for long on a thread of the runtime.

use courser_store::aside;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Does some work that may take long: another thread of the runtime, if it has several, looks after this one's tasks
/// meanwhile, and after the sockets of all, which an idle thread does not wake up for.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Has appends, and what is held while they wait for the disk, waited for so.
pub(crate) fn begin() {
    aside::set(|wait| aside(wait));
}

/// The same if it may.
pub(crate) fn aside_if<T>(takes_long: bool, work: impl FnOnce() -> T) -> T {
    if takes_long { aside(work) } else { work() }
}
