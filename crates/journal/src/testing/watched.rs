//! A store that a test watches: it may have calls fail, or act before them.

use courser_store::{
    Figures, Location, Log, Lsn, MessageRef, Messages, Position, Proof, Reader, Record, Store,
    StoreError, Sync, Unlogged, Waiter,
};
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Waker,
};

/// Done once, at some moment.
type Once = Box<dyn FnOnce() + Send>;

/// Says what is wrong with a call, if anything is.
type Faults = Box<dyn FnMut(Call) -> Option<StoreError> + Send>;

/// A call that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Log::append`].
    Append,
    /// [`Log::settle`], which is done even without room: with [`StoreError::Full`], it is done unlogged.
    Settle,
    /// [`Messages::keep`].
    Keep,
    /// [`Reader::read`] of a message in the log.
    Read,
}

/// Any store; a test can say that it is behind or has no room, or that another machine may lead it or has a copy, be called
/// before it takes the next change or lets go of messages or after a look how far it is durable or whether it has room, and have
/// calls fail.
pub struct WatchedStore {
    store: Arc<dyn Store>,
    is_behind: AtomicBool,
    looks_behind: AtomicU64,
    is_full: AtomicBool,
    may_block: AtomicBool,
    /// Another machine has a copy of the log.
    is_copied: AtomicBool,
    /// Those that wait for room.
    waiting: Mutex<Vec<Waker>>,
    before_append: Mutex<Option<Once>>,
    before_release: Mutex<Option<Once>>,
    before_read: Arc<Mutex<Option<Once>>>,
    reads: Arc<AtomicU64>,
    after_look: Mutex<Option<Once>>,
    after_room: Mutex<Option<Once>>,
    faults: Arc<Mutex<Option<Faults>>>,
    /// Set where another machine may lead the log.
    lead: Mutex<Option<Lead>>,
}

/// A lead that has to be proven.
#[derive(Default)]
struct Lead {
    wanted: u64,
    proven: u64,
    deposed: bool,
    waiters: Vec<Waiter>,
}

/// A reader of such a store.
struct WatchedReader {
    reader: Box<dyn Reader>,
    before_read: Arc<Mutex<Option<Once>>>,
    reads: Arc<AtomicU64>,
    faults: Arc<Mutex<Option<Faults>>>,
}

impl WatchedStore {
    /// Stands before `store`, and does nothing yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        WatchedStore {
            store,
            is_behind: AtomicBool::new(false),
            looks_behind: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            may_block: AtomicBool::new(false),
            is_copied: AtomicBool::new(false),
            waiting: Mutex::default(),
            before_append: Mutex::default(),
            before_release: Mutex::default(),
            before_read: Arc::default(),
            reads: Arc::default(),
            after_look: Mutex::default(),
            after_room: Mutex::default(),
            faults: Arc::default(),
            lead: Mutex::default(),
        }
    }

    /// Has `call` called before the next change is appended.
    pub fn before_next_append(&self, call: impl FnOnce() + Send + 'static) {
        *self.before_append.lock() = Some(Box::new(call));
    }

    /// Has `call` called before messages are released next.
    pub fn before_next_release(&self, call: impl FnOnce() + Send + 'static) {
        *self.before_release.lock() = Some(Box::new(call));
    }

    /// Has `call` called before a message in the log is read next.
    pub fn before_next_read(&self, call: impl FnOnce() + Send + 'static) {
        *self.before_read.lock() = Some(Box::new(call));
    }

    /// How often it was asked whether it is behind.
    pub fn looks_behind(&self) -> u64 {
        self.looks_behind.load(Ordering::Relaxed)
    }

    /// How often a message in the log was to be read.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Nothing is called before the next change any more.
    pub fn call_nothing(&self) {
        *self.before_append.lock() = None;
    }

    /// Has `call` called when it has said next how far it is durable: what comes of that, comes right behind.
    pub fn after_next_look(&self, call: impl FnOnce() + Send + 'static) {
        *self.after_look.lock() = Some(Box::new(call));
    }

    /// Has `call` called when it has said next that it has room.
    pub fn after_next_room(&self, call: impl FnOnce() + Send + 'static) {
        *self.after_room.lock() = Some(Box::new(call));
    }

    /// Says that it has enough to write, or has not.
    pub fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
    }

    /// Says that an append may block, or that none may.
    pub fn set_may_block(&self, may_block: bool) {
        self.may_block.store(may_block, Ordering::Relaxed);
    }

    /// Says from now on that only what is durable may be handed out, as where another machine has a copy of the log. To be
    /// called before there is a broker.
    pub fn have_copies(&self) {
        self.is_copied.store(true, Ordering::Relaxed);
    }

    /// Says that it has no room, or has some again, which wakes those that wait for it.
    pub fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::Relaxed);
        let waiting = if is_full { Vec::new() } else { std::mem::take(&mut *self.waiting.lock()) };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Has calls fail from now on, as `faults` says for each: nothing else is done then.
    pub fn set_faults(&self, faults: impl FnMut(Call) -> Option<StoreError> + Send + 'static) {
        *self.faults.lock() = Some(Box::new(faults));
    }

    /// No call fails any more, but for what the store behind finds wrong.
    pub fn heal(&self) {
        *self.faults.lock() = None;
    }

    /// Says that another machine may lead the log: each answer waits for [`WatchedStore::prove`].
    pub fn contest(&self) {
        *self.lead.lock() = Some(Lead::default());
    }

    /// Proves the lead for all that waits.
    pub fn prove(&self) {
        self.change_lead(|lead| lead.proven = lead.wanted);
    }

    /// Whether a proof is wanted that is not there yet, and how many are to be told when it is.
    pub fn awaits_proof(&self) -> (bool, usize) {
        let lead = self.lead.lock();
        lead.as_ref().map_or((false, 0), |lead| (lead.wanted > lead.proven, lead.waiters.len()))
    }

    /// Says that another machine leads.
    pub fn depose(&self) {
        self.change_lead(|lead| lead.deposed = true);
    }

    fn change_lead(&self, change: impl FnOnce(&mut Lead)) {
        let mut lead = self.lead.lock();
        let waiters = lead.as_mut().map_or_else(Vec::new, |lead| {
            change(lead);
            std::mem::take(&mut lead.waiters)
        });
        drop(lead);
        waiters.into_iter().for_each(|waiter| waiter.notify(false));
    }
}

/// Does what is to be done at this moment.
fn call(once: &Mutex<Option<Once>>) {
    let call = once.lock().take();
    call.into_iter().for_each(|call| call());
}

/// Fails if that is what is to happen.
fn check(faults: &Mutex<Option<Faults>>, call: Call) -> Result<(), StoreError> {
    let mut faults = faults.lock();
    faults.as_mut().and_then(|fault| fault(call)).map_or(Ok(()), Err)
}

impl Reader for WatchedReader {
    fn read_while<'a>(
        &'a mut self,
        location: &'a Location,
        is_kept: &dyn Fn() -> bool,
    ) -> Result<MessageRef<'a>, StoreError> {
        if location.position().is_some() {
            call(&self.before_read);
            self.reads.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = check(&self.faults, Call::Read) {
                return Err(if is_kept() { error } else { StoreError::Lost(error.to_string()) });
            }
        }
        self.reader.read_while(location, is_kept)
    }

    fn is_at_hand(&self, location: &Location) -> bool {
        self.reader.is_at_hand(location)
    }

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }
}

impl fmt::Debug for WatchedReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedReader").field("reader", &self.reader).finish_non_exhaustive()
    }
}

impl Log for WatchedStore {
    fn append(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        call(&self.before_append);
        check(&self.faults, Call::Append)?;
        self.store.append(records, sync, locations)
    }

    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[Position],
    ) -> Result<bool, StoreError> {
        call(&self.before_append);
        let Err(error) = check(&self.faults, Call::Settle) else {
            return self.store.settle(records, sync, positions);
        };
        let unlogged = self.unlogged().filter(|_| matches!(error, StoreError::Full));
        unlogged.ok_or(error)?.release(positions);
        Ok(false)
    }

    fn unlogged(&self) -> Option<&dyn Unlogged> {
        self.store.unlogged().map(|_| self as &dyn Unlogged)
    }

    fn end(&self) -> Lsn {
        self.store.end()
    }

    fn durable(&self) -> Lsn {
        let durable = self.store.durable();
        call(&self.after_look);
        durable
    }

    fn deliverable(&self) -> Lsn {
        match self.is_copied.load(Ordering::Relaxed) {
            true => self.store.durable(),
            false => self.store.deliverable(),
        }
    }

    fn when_durable(&self, lsn: Lsn, waiter: Waiter) {
        self.store.when_durable(lsn, waiter);
    }

    fn prove_lead(&self) -> Proof {
        let mut lead = self.lead.lock();
        let Some(lead) = &mut *lead else { return self.store.prove_lead() };
        lead.wanted += 1;
        Proof(lead.wanted)
    }

    fn proven(&self) -> Proof {
        let lead = self.lead.lock();
        let Some(lead) = &*lead else { return self.store.proven() };
        if lead.deposed { Proof::default() } else { Proof(lead.proven) }
    }

    fn when_proven(&self, proof: Proof, waiter: Waiter) {
        let mut lead = self.lead.lock();
        match &mut *lead {
            None => self.store.when_proven(proof, waiter),
            Some(lead) if lead.deposed || lead.proven >= proof.0 => waiter.notify(false),
            Some(lead) => lead.waiters.push(waiter),
        }
    }

    fn failure(&self) -> Option<String> {
        let deposed = || self.is_deposed().then(|| "another machine leads".to_owned());
        self.store.failure().or_else(deposed)
    }

    fn is_deposed(&self) -> bool {
        self.lead.lock().as_ref().is_some_and(|lead| lead.deposed) || self.store.is_deposed()
    }

    fn has_room(&self) -> bool {
        let has_room = !self.is_full.load(Ordering::Relaxed) && self.store.has_room();
        if has_room {
            call(&self.after_room);
        }
        has_room
    }

    fn is_behind(&self) -> bool {
        self.looks_behind.fetch_add(1, Ordering::Relaxed);
        self.is_behind.load(Ordering::Relaxed) || self.store.is_behind()
    }

    fn may_block(&self) -> bool {
        self.may_block.load(Ordering::Relaxed) || self.store.may_block()
    }

    fn when_room(&self, waker: &Waker) {
        match self.is_full.load(Ordering::Relaxed) {
            true => self.waiting.lock().push(waker.clone()),
            false => self.store.when_room(waker),
        }
    }

    fn figures(&self) -> Figures {
        self.store.figures()
    }
}

impl Messages for WatchedStore {
    fn keep(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError> {
        check(&self.faults, Call::Keep)?;
        self.store.keep(messages, locations)
    }

    fn reader(&self) -> Box<dyn Reader> {
        let (reader, faults) = (self.store.reader(), Arc::clone(&self.faults));
        let (before_read, reads) = (Arc::clone(&self.before_read), Arc::clone(&self.reads));
        Box::new(WatchedReader { reader, before_read, reads, faults })
    }

    fn spill_from(&self, bytes: u64) {
        self.store.spill_from(bytes);
    }

    fn hold(&self, position: Position) {
        self.store.hold(position);
    }

    fn release(&self, positions: &[Position]) {
        call(&self.before_release);
        self.store.release(positions);
    }
}

impl Unlogged for WatchedStore {
    fn release(&self, positions: &[Position]) {
        call(&self.before_release);
        if let Some(store) = self.store.unlogged() {
            store.release(positions);
        }
    }
}
