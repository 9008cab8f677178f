//! A store with somebody between it and the broker.

use courser_store::{
    Figures, Location, Log, Lsn, MessageRef, Messages, Position, Reader, Record, Store, StoreError,
    Sync, Unlogged, Waiter,
};
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

/// Done once, before something is appended.
type BeforeAppend = Box<dyn FnOnce() + Send>;

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

/// Any store; a test can say that it is behind or has no room, be called before it takes the next change,
/// and have calls fail.
pub struct WatchedStore {
    store: Arc<dyn Store>,
    is_behind: AtomicBool,
    is_full: AtomicBool,
    /// Those that wait for room.
    waiting: Mutex<Vec<Waker>>,
    before_append: Mutex<Option<BeforeAppend>>,
    faults: Arc<Mutex<Option<Faults>>>,
}

/// A reader of such a store.
struct WatchedReader {
    reader: Box<dyn Reader>,
    faults: Arc<Mutex<Option<Faults>>>,
}

impl WatchedStore {
    /// Stands before `store`, and does nothing yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        WatchedStore {
            store,
            is_behind: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            waiting: Mutex::default(),
            before_append: Mutex::default(),
            faults: Arc::default(),
        }
    }

    /// Has `call` called before the next change is appended.
    pub fn before_next_append(&self, call: impl FnOnce() + Send + 'static) {
        *self.before_append.lock() = Some(Box::new(call));
    }

    /// Nothing is called before the next change any more.
    pub fn call_nothing(&self) {
        *self.before_append.lock() = None;
    }

    /// Says that it has enough to write, or has not.
    pub fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
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

    fn call(&self) {
        let call = self.before_append.lock().take();
        call.into_iter().for_each(|call| call());
    }
}

/// Fails if that is what is to happen.
fn check(faults: &Mutex<Option<Faults>>, call: Call) -> Result<(), StoreError> {
    let mut faults = faults.lock();
    faults.as_mut().and_then(|fault| fault(call)).map_or(Ok(()), Err)
}

impl Reader for WatchedReader {
    fn read<'a>(&'a mut self, location: &'a Location) -> Result<MessageRef<'a>, StoreError> {
        if location.position().is_some() {
            check(&self.faults, Call::Read)?;
        }
        self.reader.read(location)
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
        self.call();
        check(&self.faults, Call::Append)?;
        self.store.append(records, sync, locations)
    }

    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[Position],
    ) -> Result<(), StoreError> {
        self.call();
        match check(&self.faults, Call::Settle) {
            Ok(()) => {}
            Err(error) => {
                let unlogged = self.unlogged().filter(|_| matches!(error, StoreError::Full));
                return unlogged.map(|unlogged| unlogged.release(positions)).ok_or(error);
            }
        }
        self.store.settle(records, sync, positions)
    }

    fn unlogged(&self) -> Option<&dyn Unlogged> {
        self.store.unlogged()
    }

    fn end(&self) -> Lsn {
        self.store.end()
    }

    fn durable(&self) -> Lsn {
        self.store.durable()
    }

    fn when_durable(&self, lsn: Lsn, waiter: Waiter) {
        self.store.when_durable(lsn, waiter);
    }

    fn failure(&self) -> Option<String> {
        self.store.failure()
    }

    fn is_deposed(&self) -> bool {
        self.store.is_deposed()
    }

    fn has_room(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed) && self.store.has_room()
    }

    fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed) || self.store.is_behind()
    }

    fn is_nearly_full(&self) -> bool {
        self.store.is_nearly_full()
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
        Box::new(WatchedReader { reader, faults })
    }

    fn hold(&self, position: Position) {
        self.store.hold(position);
    }

    fn release(&self, positions: &[Position]) {
        self.store.release(positions);
    }
}
