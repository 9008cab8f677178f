//! What an exchange remembers is read from the disk while others go on.

use crate::recent_history_beside_others::{history, publish};
use crate::support::WorldOnDisk;
use courser_journal::testing::Call;
use courser_store::{ShardId, ShardState};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// What waits longer waits for the read.
const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_checkpoint_waits_for_no_history_that_is_read() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    history(&mut client, "h", 20, true);
    publish(&mut client, "h", 3);
    client.disconnect();
    world.restart();
    let mut client = world.connect();
    client.declare("q");
    let broker = Arc::clone(&world.broker);
    let (tell, told) = channel();
    world.store().set_faults(move |call| {
        if call == Call::Read {
            let (broker, (done, is_done)) = (Arc::clone(&broker), channel());
            // It needs the gate, and what the history has.
            let checkpoint = move || {
                let state = broker.state_of(ShardId::HOME).expect("it is open");
                state.write(state.start(), &mut io::sink()).expect("it is written");
                let _ = done.send(());
            };
            std::thread::Builder::new().spawn(checkpoint).expect("a thread");
            tell.send(is_done.recv_timeout(LONG).is_ok()).expect("it is heard");
        }
        None
    });
    client.bind("q", "h", "");
    world.store().heal();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [true; 3]);
    assert_eq!(client.pop_all("q").len(), 3);
}
