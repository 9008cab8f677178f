//! Critical sections: what others wait for while a thread is in it, and what the thread may do there.
//!
//! Nothing is done in one that takes as long as another program, a peer or a disk likes. What is right there all the same is
//! listed in `Section::allows`, with the reason. Debug builds, and with them all tests, panic at anything else; other builds
//! check nothing.

/// What others wait for while a thread is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The gate of a shard: a checkpoint waits, and with it those that share the thread's part of the gate.
    Gate,
    /// The thread of a log: every confirm waits.
    LogThread,
    /// The thread of a group: its heartbeats wait, without which the other nodes elect another leader.
    GroupThread,
    /// An outbox that deliveries are put into: its connection waits, and each queue that delivers to it.
    Outbox,
}

/// What is right in some sections, and in others not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A gate is passed.
    Gate,
    /// Bytes come from a socket or go to one. The socket is never waited for: one that is not ready wakes a task later.
    Socket,
    /// A file is opened, read, written, renamed or removed.
    File,
    /// A file or a folder is synced.
    Sync,
    /// A message of a queue is read from the log.
    Message,
    /// An append waits for room in the log.
    Room,
    /// A lock is waited for that another thread may hold while it reads a message or appends.
    Lock,
    /// A confirm is sent as soon as it is durable, by the thread that has made it so.
    Confirm,
}

/// As long as this lives, the thread is in a section, or does what one allows.
#[must_use]
#[derive(Debug)]
pub struct Within {
    #[cfg(debug_assertions)]
    left: Left,
    /// A section is left by the thread that is in it.
    _of_thread: std::marker::PhantomData<*const ()>,
}

/// What ends with a [`Within`].
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug)]
enum Left {
    Section(Section),
    /// What was done before.
    Work(Option<Work>),
}

impl Within {
    #[cfg(debug_assertions)]
    fn until(left: Left) -> Self {
        Within { left, _of_thread: std::marker::PhantomData }
    }

    #[cfg(not(debug_assertions))]
    #[inline(always)]
    fn unchecked() -> Self {
        Within { _of_thread: std::marker::PhantomData }
    }
}

#[cfg(debug_assertions)]
thread_local! {
    static INSIDE: std::cell::RefCell<Vec<Section>> = const { std::cell::RefCell::new(Vec::new()) };
    static DOING: std::cell::Cell<Option<Work>> = const { std::cell::Cell::new(None) };
}

#[cfg(debug_assertions)]
impl Section {
    /// Whether a thread in this section may do `work`, as a part of `doing` if that is there.
    fn allows(self, doing: Option<Work>, work: Work) -> bool {
        match (self, doing, work) {
            // The gate of another shard: a message moves from one to the other.
            (Section::Gate, _, Work::Gate) => true,
            // A queue hands a message out, settles it or sends it on while it is locked, as many as an outbox or an append takes.
            (Section::Gate, _, Work::Message) => true,
            (Section::Gate, Some(Work::Message), Work::File) => true,
            // An append and its effect are one. The log makes room on threads that pass no gate, and publishers are held back
            // before it is needed.
            (Section::Gate, _, Work::Room) => true,
            // Queues and outboxes. Who holds them waits for no gate.
            (Section::Gate, _, Work::Lock) => true,
            // Its own log.
            (Section::LogThread, None, Work::File | Work::Sync) => true,
            // `InlineConfirm`: to a socket that is written without a runtime, and a panic ends that connection alone. The log of
            // a cluster is durable where the group hears of it.
            (Section::LogThread | Section::GroupThread, None, Work::Confirm) => true,
            (Section::LogThread, Some(Work::Confirm), Work::Socket) => true,
            // Packets to and from other nodes.
            (Section::GroupThread, _, Work::Socket) => true,
            // A packet is taken when there is a file for it. One that is longer than a segment, as in tests only, needs two.
            (Section::GroupThread, _, Work::Room) => true,
            // One that its reader has at hand.
            (Section::Outbox, _, Work::Message) => true,
            _ => false,
        }
    }
}

/// Enters a section.
#[cfg(debug_assertions)]
pub fn enter(section: Section) -> Within {
    if section == Section::Gate {
        check(Work::Gate);
    }
    INSIDE.with_borrow_mut(|inside| inside.push(section));
    Within::until(Left::Section(section))
}

/// Enters a section.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn enter(_section: Section) -> Within {
    Within::unchecked()
}

/// Begins to do something of which other things are a part.
#[cfg(debug_assertions)]
pub fn begin(work: Work) -> Within {
    check(work);
    Within::until(Left::Work(DOING.replace(Some(work))))
}

/// Begins to do something of which other things are a part.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn begin(_work: Work) -> Within {
    Within::unchecked()
}

/// In debug builds, panics if this thread is in a section that does not allow `work`.
#[inline]
pub fn check(work: Work) {
    #[cfg(debug_assertions)]
    refuse(|section| !section.allows(DOING.get(), work), &format_args!("{work:?}"));
    let _ = work;
}

/// In debug builds, panics if this thread is in a section at all: `what` may take long, or waits itself for what others do in
/// theirs.
#[inline]
pub fn assert_outside(what: &str) {
    #[cfg(debug_assertions)]
    refuse(|_| true, &what);
    let _ = what;
}

#[cfg(debug_assertions)]
fn refuse(refuses: impl Fn(Section) -> bool, what: &dyn std::fmt::Display) {
    INSIDE.with_borrow(|inside| {
        let section = inside.iter().find(|section| refuses(**section));
        if let Some(section) = section.filter(|_| !std::thread::panicking()) {
            panic!("critical section {section:?}: {what}");
        }
    });
}

#[cfg(debug_assertions)]
impl Drop for Within {
    fn drop(&mut self) {
        match self.left {
            Left::Work(before) => DOING.set(before),
            Left::Section(left) => INSIDE.with_borrow_mut(|inside| {
                if let Some(last) = inside.iter().rposition(|section| *section == left) {
                    inside.remove(last);
                }
            }),
        }
    }
}
