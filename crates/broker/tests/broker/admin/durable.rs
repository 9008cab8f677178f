//! Waiting until changes are durable.

use crate::support::{World, WorldOnDisk};
use courser_broker::admin::Durable;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll(durable: &mut Durable, count: &Arc<Count>) -> Poll<bool> {
    let waker = Waker::from(Arc::clone(count));
    Pin::new(durable).poll(&mut Context::from_waker(&waker)).map(|done| done.is_ok())
}

#[test]
fn it_is_over_when_the_log_is_durable_and_wakes_the_task() {
    let disk = WorldOnDisk::new();
    let admin = disk.broker.admin();
    admin.declare_queue("/", "q", Default::default()).expect("a queue");
    admin.set_global_parameter("n", "1").expect("a parameter");
    let (mut durable, count) = (admin.durable(), Arc::default());
    assert_eq!(poll(&mut durable, &count), Poll::Pending);
    assert_eq!(poll(&mut durable, &count), Poll::Pending);
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    disk.sync();
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert_eq!(poll(&mut durable, &count), Poll::Ready(true));
}

#[test]
fn it_fails_with_the_store() {
    let disk = WorldOnDisk::new();
    let admin = disk.broker.admin();
    admin.set_global_parameter("n", "1").expect("a parameter");
    let (mut durable, count) = (admin.durable(), Arc::default());
    assert_eq!(poll(&mut durable, &count), Poll::Pending);
    disk.break_disk();
    assert_eq!(poll(&mut durable, &count), Poll::Ready(false));
}

#[test]
fn in_memory_there_is_nothing_to_wait_for() {
    let world = World::new();
    let admin = world.broker.admin();
    admin.set_global_parameter("n", "1").expect("a parameter");
    assert_eq!(poll(&mut admin.durable(), &Arc::default()), Poll::Ready(true));
}
