use super::*;
use courser_journal::{Damaged, Lsn};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A journal with much damage. Each repair is told of, and waits until it may go on.
struct Damage {
    begun: Mutex<Sender<Part>>,
    goes_on: Mutex<Receiver<()>>,
}

const DAMAGED: u64 = 100;

impl Readable for Damage {
    fn bytes(&self) -> u64 {
        DAMAGED
    }

    fn scrub(&self, by: &mut dyn Scrubbing) -> Pass {
        for position in 0..DAMAGED {
            let part = Part::Record(Lsn(position));
            by.found(Damaged { part, path: PathBuf::new(), offset: position, error: None });
        }
        Pass::Ended
    }

    fn repair(&self, part: Part) -> bool {
        self.begun.lock().send(part).expect("the test waits");
        // Once it is said, all go on.
        self.goes_on.lock().recv().is_err()
    }
}

/// A pass whose first repair has begun, what tells of the next ones, and what lets all of them go on when it is dropped.
fn in_repair() -> (ScrubThread, Receiver<Part>, Sender<()>) {
    let ((begun, repairs), (go_on, goes_on)) = (channel(), channel());
    let damage: Arc<dyn Readable> =
        Arc::new(Damage { begun: Mutex::new(begun), goes_on: Mutex::new(goes_on) });
    let journals: Journals = Box::new(move || {
        let damage = Arc::clone(&damage);
        vec![("journal".to_owned(), Box::new(move || Some(Arc::clone(&damage))) as Open)]
    });
    let (clock, notices) = (Clock::system(), Arc::new(Notices::new(Clock::system())));
    let thread = ScrubThread::start(journals, 0, &clock, &notices).expect("a thread");
    thread.scrubber().start();
    assert_eq!(repairs.recv(), Ok(Part::Record(Lsn(0))));
    (thread, repairs, go_on)
}

#[test]
fn a_stop_waits_for_one_repair_and_no_more() {
    let (thread, repairs, go_on) = in_repair();
    thread.stop();
    drop(go_on);
    let scrubber = thread.scrubber();
    drop(thread);
    assert_eq!(repairs.try_iter().count(), 0);
    assert_eq!(scrubber.state().damaged, DAMAGED, "what is found is counted");
}

#[test]
fn a_journal_is_let_go_of_after_one_repair_and_no_more() {
    let (thread, repairs, go_on) = in_repair();
    let scrubber = thread.scrubber();
    let letting_go = std::thread::spawn(move || scrubber.let_go("journal"));
    while !thread.scrubber.state.lock().let_go {
        std::thread::yield_now();
    }
    drop(go_on);
    letting_go.join().expect("let go of");
    assert_eq!(repairs.try_iter().count(), 0);
}
