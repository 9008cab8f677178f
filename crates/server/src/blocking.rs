//! What may take long on a thread of the runtime.

use crate::read_buffers;
use courser_store::blocking;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Does some work that may take long: another thread of the runtime, if it has several, looks after this one's tasks
/// meanwhile, and after the sockets of all, which an idle thread does not wake up for.
pub(crate) fn in_place<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => {
            read_buffers::release();
            tokio::task::block_in_place(work)
        }
        _ => work(),
    }
}

/// [`in_place`] if the work takes long.
pub(crate) fn in_place_if<T>(takes_long: bool, work: impl FnOnce() -> T) -> T {
    if takes_long { in_place(work) } else { work() }
}

/// Makes what waits for the disk, or for a lock that is held meanwhile, wait [`in_place`].
pub(crate) fn install() {
    blocking::set_handler(|wait| in_place(wait));
}
