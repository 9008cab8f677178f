//! Every call of the store fails once: for each thing that a client or an operator does, the first call fails,
//! then the second, until all have passed. After each, the truth was told, the thing is done whole or not at
//! all, in memory and after a restart, and nothing waits for ever.

mod accounts;
mod clients;
mod commits;
mod disks;
mod moves;
mod operators;
mod returns;
mod scene;
mod streams;
mod timers;

use courser_journal::testing::Call;
use courser_store::StoreError;
use parking_lot::Mutex;
use scene::{Census, Scene, in_any_order, together};
use std::sync::Arc;

/// What became of a request, as far as was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Done,
    Refused,
    /// It has no answer.
    Nothing,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// There is no room, once.
    Full,
    /// It is too much at once, once.
    TooLarge,
    /// A message can't be read, once.
    Unread,
    /// The log can't be told what is done with, once: in memory all goes on as if it knew.
    Untold,
    /// Everything fails from then on.
    Failed,
}

impl Fault {
    const ALL: [Fault; 5] =
        [Fault::Full, Fault::TooLarge, Fault::Unread, Fault::Untold, Fault::Failed];

    fn error(self) -> StoreError {
        match self {
            Fault::Full => StoreError::Full,
            Fault::TooLarge => StoreError::TooLarge(7),
            Fault::Unread => StoreError::Unread("on purpose".to_owned()),
            Fault::Untold | Fault::Failed => StoreError::Failed("on purpose".to_owned()),
        }
    }

    fn is_for(self, call: Call, log: On) -> bool {
        match self {
            // A leader that can't gather what was done gives up its lead.
            Fault::Full => call != Call::Read && (call != Call::Settle || log == On::Journal),
            Fault::TooLarge => matches!(call, Call::Append | Call::Keep),
            Fault::Unread => call == Call::Read,
            Fault::Untold => call == Call::Settle,
            Fault::Failed => true,
        }
    }
}

/// What the broker logs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Journal,
    /// One copy of a replicated log: what it does not take has not happened.
    Copy,
}

/// Where the test checks what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Memory,
    Restart,
    Checkpoint,
}

/// Something that is done, and how it is checked.
struct Trial {
    prepare: fn(&mut Scene),
    act: fn(&mut Scene) -> Told,
    logs: Vec<On>,
    endings: Vec<Ending>,
    faults: Vec<Fault>,
    /// With this, it was told before it could be kept.
    told_early: Option<Fault>,
    excuse: fn(Ending, Fault, &mut Census),
}

/// What `act` does after `prepare`.
fn trial(prepare: fn(&mut Scene), act: fn(&mut Scene) -> Told) -> Trial {
    let endings = vec![Ending::Memory, Ending::Restart, Ending::Checkpoint];
    let logs = vec![On::Journal, On::Copy];
    let faults = Fault::ALL.to_vec();
    Trial { prepare, act, logs, endings, faults, told_early: None, excuse: |_, _, _| {} }
}

impl Trial {
    /// It is done in clusters only.
    fn in_clusters(mut self) -> Self {
        self.logs.retain(|log| *log == On::Copy);
        self
    }

    /// It is not whole after this.
    fn not_after(mut self, ending: Ending) -> Self {
        self.endings.retain(|other| *other != ending);
        self
    }

    /// It has no meaning with this.
    fn not_with(mut self, fault: Fault) -> Self {
        self.faults.retain(|other| *other != fault);
        self
    }

    /// With this, a client may have heard of it before it could be kept: it is as before, then.
    fn may_be_told_early(mut self, fault: Fault) -> Self {
        self.told_early = Some(fault);
        self
    }

    /// Has `excuse` leave out of what is compared what may differ.
    fn excusing(mut self, excuse: fn(Ending, Fault, &mut Census)) -> Self {
        self.excuse = excuse;
        self
    }

    /// Has every call fail once that it needs.
    #[track_caller]
    fn every_call_fails_once(&self) {
        let mut problems = Vec::new();
        for log in &self.logs {
            for ending in &self.endings {
                problems.extend(self.problems(*log, *ending));
            }
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[track_caller]
    fn problems(&self, log: On, ending: Ending) -> Vec<String> {
        let before = Scene::new(log, self.prepare).end(ending);
        let mut untouched = Scene::new(log, self.prepare);
        assert_ne!((self.act)(&mut untouched), Told::Refused, "nothing is wrong");
        let after = untouched.end(ending);
        assert_ne!(before, after, "it does something");
        let mut problems = Vec::new();
        for fault in &self.faults {
            for nth in 0.. {
                let Some(mut outcome) = self.run(log, *fault, nth, ending) else { break };
                let excused = |mut census: Census| {
                    (self.excuse)(ending, *fault, &mut census);
                    census
                };
                outcome.found = outcome.found.map(excused);
                let (before, after) = (excused(before.clone()), excused(after.clone()));
                problems.extend(outcome.problem(&before, &after).map(|problem| {
                    format!("on {log:?}, {ending:?}, {fault:?} at call {nth}: {problem}")
                }));
            }
        }
        problems
    }

    /// Has one call fail; none if there are not so many.
    fn run(&self, log: On, fault: Fault, nth: usize, ending: Ending) -> Option<Outcome> {
        if fault == Fault::Untold && ending != Ending::Memory {
            return None;
        }
        let mut scene = Scene::new(log, self.prepare);
        let failed = fail(&scene, log, fault, nth);
        let told = (self.act)(&mut scene);
        let call = (*failed.lock())?;
        // What finds no room when it is done with comes back with a crash; a store that has failed takes
        // nothing of what has no answer.
        let may_return = match fault {
            Fault::Full => ending == Ending::Restart && log == On::Journal,
            Fault::Failed => told == Told::Nothing,
            Fault::TooLarge | Fault::Unread | Fault::Untold => false,
        };
        let may_return = may_return || self.told_early == Some(fault);
        let is_done = match told {
            Told::Done => true,
            Told::Nothing => scene.is_connected(),
            Told::Refused => false,
        };
        // Nothing goes on in memory when the store has failed.
        let found = (fault != Fault::Failed || ending != Ending::Memory).then(|| scene.end(ending));
        Some(Outcome { call, told, is_done: is_done && !may_return, found })
    }
}

/// Letters that can't be read now come behind the others, and those that have not arrived are in their queue after a restart: none
/// is lost, and none is there twice.
fn letters_come_late(ending: Ending, fault: Fault, census: &mut Census) {
    const QUEUES: [&str; 5] = ["dying", "letters", "short-lived", "limited", "new"];
    if ending != Ending::Memory {
        together(census, &QUEUES);
    } else if fault == Fault::Unread {
        in_any_order(census, "letters");
    }
}

/// What came of it.
struct Outcome {
    call: Call,
    told: Told,
    is_done: bool,
    found: Option<Census>,
}

impl Outcome {
    /// What is wrong with it.
    fn problem(&self, before: &Census, after: &Census) -> Option<String> {
        let found = self.found.as_ref()?;
        let is_right = found == after || !self.is_done && found == before;
        let differs = |(what, is): &(&String, &Vec<String>)| after.get(*what) != Some(*is);
        let other: Vec<_> = found.iter().filter(differs).collect();
        let missing: Vec<_> = after.keys().filter(|what| !found.contains_key(*what)).collect();
        let Outcome { call, told, is_done, .. } = self;
        (!is_right).then(|| {
            format!("{call:?}, {told:?}, done {is_done}: there is {other:?}, not {missing:?}")
        })
    }
}

/// Has a call fail. Returns which one that was, once it has.
fn fail(scene: &Scene, log: On, fault: Fault, nth: usize) -> Arc<Mutex<Option<Call>>> {
    let failed = Arc::new(Mutex::new(None));
    let (note, mut calls) = (Arc::clone(&failed), 0);
    scene.world.store().set_faults(move |call| {
        if !fault.is_for(call, log) {
            return None;
        }
        calls += 1;
        let is_now = calls == nth + 1;
        if is_now {
            *note.lock() = Some(call);
        }
        (is_now || fault == Fault::Failed && calls > nth).then(|| fault.error())
    });
    failed
}
