//! A checkpoint is written while clients go on: they do not wait for its disk, and it has everything that
//! was there all the while.

use crate::support::{Client, Heard, WorldOnDisk, declare_with, short};
use courser_codec::{FieldTable, Table, queue};
use courser_store::recovered::Recovered;
use courser_store::{ShardId, ShardState};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What waits longer for a checkpoint waits for its disk.
const LONG: Duration = Duration::from_secs(20);
/// Bindings of each kind that stay, and others that go.
const BINDINGS: usize = 600;

/// Where a checkpoint goes; between its writes something else changes.
struct Slow {
    bytes: Vec<u8>,
    writes: usize,
    ask: Sender<usize>,
    done: Receiver<()>,
    has_waited: bool,
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        self.writes += 1;
        if self.writes.is_multiple_of(32) && !self.has_waited {
            self.ask.send(self.writes).expect("it is asked");
            self.has_waited = self.done.recv_timeout(LONG).is_err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Binds `q` to `amq.headers` for messages with this header.
fn bind_header(client: &mut Client, name: &str) {
    let entries = FieldTable::new().with("name", name).to_entries();
    let arguments = Table::from_entries(&entries);
    let (queue, exchange) = (short("q"), short("amq.headers"));
    let bind = queue::Bind { queue, exchange, arguments, ..Default::default() };
    assert_eq!(client.call(bind), Heard::Done("queue.bind-ok"));
}

fn unbind_header(client: &mut Client, name: &str) {
    let entries = FieldTable::new().with("name", name).to_entries();
    let arguments = Table::from_entries(&entries);
    let (queue, exchange) = (short("q"), short("amq.headers"));
    let unbind = queue::Unbind { queue, exchange, arguments, ..Default::default() };
    assert_eq!(client.call(unbind), Heard::Done("queue.unbind-ok"));
}

#[test]
fn who_binds_waits_for_no_checkpoint_and_it_has_all_that_stays() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    for queue in ["q", "other"] {
        declare_with(&mut client, queue, true, &FieldTable::new());
    }
    for nth in 0..BINDINGS {
        for kind in ["stays", "goes"] {
            let queue = if nth % 8 == 0 { "other" } else { "q" };
            client.bind(queue, "amq.direct", &format!("{kind} {nth:04}"));
            bind_header(&mut client, &format!("{kind} {nth:04}"));
        }
    }
    let state = world.broker.state_of(ShardId::HOME).expect("it is open");
    let start = state.start();
    let (ask, asked) = channel();
    let (tell, done) = channel();
    let mut out = Slow { bytes: Vec::new(), writes: 0, ask, done, has_waited: false };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (nth, writes) in asked.iter().enumerate() {
                client.bind("q", "amq.direct", &format!("comes {writes}"));
                bind_header(&mut client, &format!("comes {writes}"));
                for goes in (nth * 4..nth * 4 + 4).filter(|goes| *goes < BINDINGS) {
                    let queue = if goes % 8 == 0 { "other" } else { "q" };
                    client.unbind(queue, "amq.direct", &format!("goes {goes:04}"));
                    unbind_header(&mut client, &format!("goes {goes:04}"));
                }
                let _ = tell.send(());
            }
        });
        state.write(start, &mut out).expect("it is written");
        drop(std::mem::replace(&mut out.ask, channel().0));
    });
    assert!(!out.has_waited, "who binds waits for the checkpoint's disk");
    let recovered = Recovered::from_checkpoint(&out.bytes).expect("it is whole");
    let staying = |exchange: &[u8]| {
        let has = |key: &[u8], what: &[u8]| key.windows(what.len()).any(|part| part == what);
        let keys = recovered.definitions.keys();
        keys.filter(|key| has(key, exchange) && has(key, b"stays ")).count()
    };
    assert_eq!((staying(b"amq.direct"), staying(b"amq.headers")), (BINDINGS, BINDINGS));
}
