//! A small data folder, what can be done to it, and what a broker finds in it.

use courser_broker::{Broker, Limits, names_in_log};
use courser_codec::FieldTable;
use courser_journal::testing::{FakeDisk, Faults};
use courser_journal::{JournalStore, Options, Survived, tools};
use courser_sim::{Client, PLAIN, Start, checkpoint};
use courser_store::{MemoryGauge, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIR: &str = "journal";
const QUEUES: [&str; 3] = ["kept", "worked", "dead"];

/// One thing that happens to a file; files are counted in the order of their names.
#[derive(Clone, Debug)]
pub enum Harm {
    Flip {
        file: usize,
        offset: usize,
    },
    /// A page can't be read.
    Refuse {
        file: usize,
        offset: usize,
    },
    Cut {
        file: usize,
        len: usize,
    },
    Remove {
        file: usize,
    },
    Swap {
        one: usize,
        other: usize,
    },
    Stray {
        start: u64,
        contents: Vec<u8>,
    },
}

/// What a start says of what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Nothing,
    Survived,
}

/// What a start finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It says why it is refused.
    Refused(String),
    /// Messages that are not there, and such as should not be.
    Started { missing: usize, extra: usize, told: Told },
}

/// A data folder of a broker that was stopped.
pub struct Sample {
    /// Names and contents, without what holds nothing.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The messages of each queue.
    queues: BTreeMap<&'static str, Vec<u64>>,
    /// Messages of one batch, which a byte can cost at most.
    pub batch_max: usize,
}

fn options() -> Options {
    Options { segment_bytes: 16 << 10, threads: false, ..Options::default() }
}

impl Sample {
    /// Early segments of which little is left, two checkpoints, segments to be replayed, and an end in
    /// order.
    pub fn new() -> Self {
        let disk = FakeDisk::new(1);
        let (store, broker, mut client) =
            Start { options: options(), ..Start::default() }.on(&disk);
        client.declare("dead", None).expect("declared");
        client.declare("kept", None).expect("declared");
        client.declare("worked", Some("dead")).expect("declared");
        client.declare_with("stream", &stream()).expect("declared");
        for round in 0..60_u64 {
            let queue = if round % 4 == 0 { "kept" } else { "worked" };
            let ids: Vec<(u64, usize)> = (1..=3).map(|n| (round * 10 + n, 300)).collect();
            client.publish(PLAIN, "", queue, &ids, true).expect("published");
            if round % 10 == 5 {
                client.publish(PLAIN, "", "stream", &[(round * 10, 100)], true).expect("published");
                client.reject_next("worked").expect("it is there");
            }
            store.journal().flush_once();
            store.journal().maintain_once();
            if round % 20 == 18 {
                client.take_all("worked").expect("declared");
            }
            if round == 30 || round == 45 {
                assert!(checkpoint(&store, &broker));
            }
        }
        store.journal().close().expect("nothing fails");
        drop((client, broker, store));
        let is_kept = |path: &PathBuf| path.extension().is_some_and(|is| is != "spare");
        let files: Vec<_> = disk.names().into_iter().filter(is_kept).collect();
        let files =
            files.into_iter().filter_map(|path| Some((path.clone(), disk.contents(&path)?)));
        let mut sample = Sample { files: files.collect(), queues: BTreeMap::new(), batch_max: 3 };
        sample.queues = sample.read(&sample.put(&sample.files)).expect("it is whole").0;
        assert_eq!(sample.queues["kept"].len(), 45);
        assert!(sample.files.len() > 6 && sample.queues.values().all(|queue| !queue.is_empty()));
        sample
    }

    /// Whether one of the two checkpoints is hit, and nothing else: the other one is enough.
    pub fn hits_a_checkpoint(&self, harm: &Harm) -> bool {
        match harm {
            Harm::Flip { file, .. }
            | Harm::Refuse { file, .. }
            | Harm::Cut { file, .. }
            | Harm::Remove { file } => self.messages_in(*file) == 0,
            Harm::Swap { .. } | Harm::Stray { .. } => false,
        }
    }

    /// How many messages are in a file at most: for a checkpoint none, as the other one has them.
    pub fn messages_in(&self, file: usize) -> usize {
        let is_segment = self.files[file].0.extension().is_some_and(|is| is == "log");
        if is_segment { 45 } else { 0 }
    }

    /// Whether there is a segment that starts here.
    pub fn has_segment(&self, start: u64) -> bool {
        let path = Path::new(DIR).join(format!("{start:016x}.log"));
        self.files.iter().any(|(other, _)| *other == path)
    }

    fn put(&self, files: &[(PathBuf, Vec<u8>)]) -> FakeDisk {
        let disk = FakeDisk::new(1);
        files.iter().for_each(|(path, contents)| disk.put(path, contents));
        disk
    }

    /// A disk with the folder after this.
    pub fn harmed(&self, harm: &Harm) -> FakeDisk {
        let mut files = self.files.clone();
        match harm {
            Harm::Flip { file, offset } => files[*file].1[*offset] ^= 0x10,
            Harm::Refuse { .. } => {}
            Harm::Cut { file, len } => files[*file].1.truncate(*len),
            Harm::Remove { file } => drop(files.remove(*file)),
            Harm::Swap { one, other } => {
                let contents = files[*one].1.clone();
                files[*one].1 = std::mem::replace(&mut files[*other].1, contents);
            }
            Harm::Stray { start, contents } => {
                let name = format!("{start:016x}.log");
                files.push((Path::new(DIR).join(name), contents.clone()));
            }
        }
        let disk = self.put(&files);
        if let Harm::Refuse { file, offset } = *harm {
            let (bad_file, bad_spot) =
                (Some(files[file].0.clone()), offset as u64..offset as u64 + 1);
            disk.set_faults(Faults { bad_file, bad_spot, ..Faults::default() });
        }
        disk
    }

    /// Whether the tool says that all is well.
    pub fn verify(&self, disk: &FakeDisk) -> bool {
        let mut out = Vec::new();
        let disk = Arc::new(disk.clone());
        tools::verify_store(Path::new(DIR), disk, &names_in_log, &mut out).unwrap_or(false)
    }

    /// Whether the tool has changed anything, and says that something is lost; none if it gives up.
    pub fn repair(&self, disk: &FakeDisk) -> Option<(bool, bool)> {
        let mut out = Vec::new();
        let disk = Arc::new(disk.clone());
        let done = tools::repair_store(Path::new(DIR), options(), disk, &names_in_log, &mut out);
        done.inspect_err(|error| println!("{error}")).ok().map(|done| (done.changed, done.lost))
    }

    /// What a broker finds.
    pub fn start(&self, disk: &FakeDisk) -> Found {
        let (queues, told) = match self.read(disk) {
            Ok(found) => found,
            Err(error) => return Found::Refused(error),
        };
        let (mut missing, mut extra) = (0, 0);
        for (queue, expected) in &self.queues {
            let found = &queues[queue];
            missing += expected.iter().filter(|id| !found.contains(id)).count();
            extra += found.iter().filter(|id| !expected.contains(id)).count();
            extra += found.len() - found.iter().collect::<std::collections::BTreeSet<_>>().len();
        }
        Found::Started { missing, extra, told }
    }

    #[allow(clippy::type_complexity, reason = "it is read at two places")]
    fn read(&self, disk: &FakeDisk) -> Result<(BTreeMap<&'static str, Vec<u64>>, Told), String> {
        let survived = self.survived(disk)?;
        let gauge = Arc::new(MemoryGauge::default());
        let dir = Path::new(DIR);
        let disk = Arc::new(disk.clone());
        let (store, recovered, _) =
            JournalStore::open(dir, options(), disk, Arc::clone(&gauge), u64::MAX, &mut |_| {})
                .map_err(|error| error.to_string())?;
        let broker = Broker::new(store as Arc<dyn Store>, gauge, Limits::default(), 1);
        broker.restore(recovered).map_err(|error| error.to_string())?;
        let mut client = Client::new(&broker);
        let mut queues = BTreeMap::new();
        for queue in QUEUES {
            queues.insert(queue, client.take_all(queue).unwrap_or_default());
        }
        Ok((queues, if survived.is_empty() { Told::Nothing } else { Told::Survived }))
    }

    fn survived(&self, disk: &FakeDisk) -> Result<Vec<Survived>, String> {
        let disk = Arc::new(disk.clone());
        let recovery = courser_journal::Journal::open(Path::new(DIR), options(), disk);
        Ok(recovery.map_err(|error| error.to_string())?.survived().to_vec())
    }
}

fn stream() -> FieldTable {
    FieldTable::new().with("x-queue-type", "stream")
}
