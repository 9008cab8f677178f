//! Answers that wait for a proof that this machine still leads.

use crate::copy::{new_disk, open_telling};
use courser_journal::{
    Failure,
    replica::{EntryId, EntryKind, Events},
};
use courser_store::Proof;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::{Wake, Waker},
};

/// How often a round was asked for.
#[derive(Default)]
struct Told(AtomicU64);

impl Events for Told {
    fn synced(&self, _ticket: u64) {}
    fn gathered(&self) {}
    fn proof_wanted(&self) {
        self.0.fetch_add(1, SeqCst);
    }
    fn room(&self) {}
    fn fetched(&self) {}
    fn failed(&self, _failure: &Failure) {}
    fn overrun(&self) {}
}

#[test]
fn a_proof_of_the_lead_counts_for_what_waits_when_its_round_begins() {
    let told = Arc::new(Told::default());
    let copy = open_telling(&new_disk(3), Arc::clone(&told) as Arc<dyn Events>).unwrap();
    copy.place_note(EntryId { term: 1, index: 1 }, EntryKind::Start, &[]).unwrap();
    let lead = copy.lead(1);
    assert_eq!(copy.begin_proof(), None, "no answer waits");
    let first = [lead.prove_lead(), lead.prove_lead()];
    assert_eq!(first[0], first[1]);
    assert_eq!(told.0.load(SeqCst), 1);
    let round = copy.begin_proof().unwrap();
    assert_eq!(Proof(round), first[0]);
    let next = lead.prove_lead();
    assert!(next > first[0], "it came when the round had begun");
    assert_eq!(told.0.load(SeqCst), 2);

    let woken = [first[0], next].map(|proof| {
        let woken = Arc::new(CountingWaker::default());
        lead.when_proven(proof, Waker::from(Arc::clone(&woken)).into());
        woken
    });
    let woken = || [0, 1].map(|at| woken[at].0.load(SeqCst));
    assert_eq!((lead.proven(), woken()), (Proof::default(), [0, 0]));
    copy.proven(round);
    assert_eq!((lead.proven(), woken()), (first[0], [1, 0]));
    let round = copy.begin_proof().unwrap();
    assert_eq!(copy.begin_proof(), None);
    copy.follow();
    assert_eq!((lead.proven(), woken()), (Proof::default(), [1, 1]), "it can't be proven any more");
    copy.proven(round);
    let late = Arc::new(CountingWaker::default());
    lead.when_proven(next, Waker::from(Arc::clone(&late)).into());
    assert_eq!((lead.proven(), late.0.load(SeqCst)), (Proof::default(), 1));
    let second = copy.lead(2);
    assert!(second.prove_lead() > next, "what was proven in another term proves nothing here");
    assert_eq!(lead.proven(), Proof::default());
}

#[derive(Default)]
struct CountingWaker(AtomicU64);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}
