//! The thread of a node's group, and of the connections on which its packets travel.
//!
//! It is a tokio runtime of its own: a packet is read, handled and answered there by one thread, with no other one to wake in between.
//! It does not hold up the threads that serve clients, nor wait for them; but for connections with TLS that another node has opened:
//! the runtime that took them watches their sockets.

use courser_store::critical::{self, Section};
use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread for a [`Member`](crate::Member) and its [`Links`](crate::transport::Links). Dropped, it ends, with all that runs on it.
pub struct GroupThread {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GroupThread {
    /// Starts it.
    ///
    /// # Errors
    /// When the system has no thread or no descriptors for it.
    pub fn start() -> io::Result<Self> {
        let (made, runtime) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel::<()>();
        // The runtime is made there: the caller may be in another one, where none can be dropped.
        let thread = thread::Builder::new().name("group".into()).spawn(move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(made.send(Err(error))),
            };
            let section = critical::enter(Section::GroupThread);
            if made.send(Ok(runtime.handle().clone())).is_ok() {
                // An error means that it was dropped: it is to end as well.
                let _ = runtime.block_on(stopped);
            }
            drop(section);
            // A name that is being looked up is not waited for.
            runtime.shutdown_background();
        })?;
        let handle = runtime.recv().map_err(io::Error::other)??;
        Ok(GroupThread { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Where tasks that are to run on it are spawned.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether the caller runs on it.
    pub(super) fn is_current(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.thread().id() == thread::current().id())
    }
}

impl Drop for GroupThread {
    fn drop(&mut self) {
        let is_current = self.is_current();
        drop(self.stop.take());
        // A task of its own that had it last can't wait for its end.
        if let Some(thread) = self.thread.take()
            && !is_current
            && thread.join().is_err()
        {
            tracing::error!("the thread of a group has panicked");
        }
    }
}
