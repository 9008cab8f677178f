//! Whole copies of the log, for a node that can't follow with what the others still have of it.
//!
//! The node that lacks asks; the one that leads, or another one while none does, sends: `4 length, chunk`, and a length of 0 at the end.

use super::group::Group;
use courser_cluster::transport::{Endpoint, Purpose};
use courser_cluster::{CopyError, CopySink, CopySource, GroupNumber, MemberConfig, NodeId};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Bytes of a chunk.
const CHUNK_BYTES_MAX: usize = 2 << 20;
/// How long the other node may take for a chunk, also to read it from its disk.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a node that sends a copy checks whether its disk is full.
const ROOM_INTERVAL: Duration = Duration::from_secs(1);

/// How long a node may take from the end of its copy until it follows, or is nearer to it.
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(60);
/// How often is looked whether it does: it follows when it has what was the log's end the time before.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Sends a copy to a node that has asked for one, if this one may give it, and keeps the log from there on until that node follows:
/// under load, what comes next would else be gone before the copy is opened. Ends when this node needs a copy itself, for which
/// it has to let go of its log, and when what is kept for the copy has filled the disk. Blocks.
pub(super) fn send<S: AsyncWrite + Unpin>(
    group: &Group,
    to: NodeId,
    note: &str,
    mut stream: S,
    runtime: &Handle,
) -> Result<(), String> {
    let mut sending = group.begin_sending();
    let needs_term_above: Option<u64> =
        serde_json::from_str(note).map_err(|error| error.to_string())?;
    let member = group.member().ok_or("this node has no log of the group yet")?;
    if !member.status().members.contains(to) {
        return Err("the node is no member of the group".into());
    }
    let copy =
        group.begin_copy(to).ok_or("what was kept for the node's copy before is freed first")?;
    let mut given_up = copy.subscribe();
    let mut source = member.copy(needs_term_above).map_err(|error| error.to_string())?;
    drop(member);
    let mut put_one = |source: &CopySource, chunk: &[u8]| {
        let putting = async {
            tokio::select! {
                biased;
                _ = sending.changed() => Err(io::Error::other("this node does not have its log any more")),
                _ = given_up.changed() => Err(io::Error::other("the node has asked for another copy")),
                () = disk_kept_full(source) => Err(io::Error::other("this node's disk is full, and would not be without the copy")),
                done = put(&mut stream, chunk) => done,
            }
        };
        runtime.block_on(putting).map_err(|error| error.to_string())
    };
    while let Some(chunk) = source.next_chunk().map_err(|error| error.to_string())? {
        put_one(&source, &chunk)?;
    }
    put_one(&source, &[])?;
    wait_until_it_follows(group, to, &given_up);
    Ok(())
}

/// Returns when a copy keeps the disk full: this node may be needed for a majority, which it is no part of until there is room.
async fn disk_kept_full(source: &CopySource) {
    while !source.keeps_disk_full() {
        tokio::time::sleep(ROOM_INTERVAL).await;
    }
    tracing::warn!(
        "the disk is full, and nothing is freed while a copy of the log is sent: the copy is given up"
    );
}

/// Returns as well when this node leads no more or has no room for what it keeps, or the other one takes too long, or has asked for
/// another copy: it could not open this one.
fn wait_until_it_follows(group: &Group, node: NodeId, given_up: &watch::Receiver<bool>) {
    let mut catching_up = CatchingUp::new(Instant::now());
    while !*given_up.borrow() {
        let Some(member) = group.member().filter(|member| member.has_room()) else { return };
        let status = member.status();
        drop(member);
        let found = status.followers.iter().find(|follower| follower.node == node);
        let Some(follower) = found else { return };
        if !catching_up.goes_on(Instant::now(), follower.matched, status.last) {
            return;
        }
        thread::sleep(FOLLOW_INTERVAL);
    }
}

/// How a node that was sent a copy gets on with what came meanwhile, which may be more than the copy was.
struct CatchingUp {
    until: Instant,
    /// The log's end the time before.
    end_before: Option<u64>,
    /// What the node had then.
    matched: Option<u64>,
    /// Entries that it lacked when it had come nearest to the end.
    nearest: u64,
}

impl CatchingUp {
    fn new(now: Instant) -> Self {
        CatchingUp {
            until: now + FOLLOW_TIMEOUT,
            end_before: None,
            matched: None,
            nearest: u64::MAX,
        }
    }

    /// Whether it does not follow yet, and is worth waiting for: one that comes nearer to the end of the log has as long again.
    /// While it opens its copy, it has nothing new, and the end goes away from it.
    fn goes_on(&mut self, now: Instant, matched: u64, last: u64) -> bool {
        if self.end_before.is_some_and(|end| matched >= end) {
            return false;
        }
        let lacks = last.saturating_sub(matched);
        if self.matched.is_some_and(|before| matched > before) && lacks < self.nearest {
            (self.nearest, self.until) = (lacks, now + FOLLOW_TIMEOUT);
        }
        (self.end_before, self.matched) = (Some(last), Some(matched));
        now < self.until
    }
}

/// Why there is no copy.
pub(super) struct NoCopy {
    pub why: String,
    /// There is no room for it on this node's disk.
    pub lacks_room: bool,
}

impl From<String> for NoCopy {
    fn from(why: String) -> Self {
        NoCopy { why, lacks_room: false }
    }
}

impl From<CopyError> for NoCopy {
    fn from(error: CopyError) -> Self {
        NoCopy { why: error.to_string(), lacks_room: error.lacks_room() }
    }
}

/// Takes a copy from the node at `address`, if that gives one. Blocks.
pub(super) fn fetch(
    group: GroupNumber,
    config: &MemberConfig,
    endpoint: &Arc<Endpoint>,
    address: &str,
    runtime: &Handle,
) -> Result<(), NoCopy> {
    let mut sink = CopySink::new(config)
        .map_err(|error| NoCopy { why: error.to_string(), lacks_room: error.lacks_room() })?;
    let note =
        serde_json::to_string(&sink.needs_term_above()).map_err(|error| error.to_string())?;
    let (purpose, note) = match group {
        GroupNumber::HOME => (Purpose::Copy, note),
        other => (Purpose::GroupCopy, format!("{other} {note}")),
    };
    let dialled = runtime.block_on(endpoint.dial(address, purpose, &note));
    let mut stream = dialled.map_err(|error| error.to_string())?.stream;
    loop {
        let chunk = runtime.block_on(next(&mut stream)).map_err(|error| error.to_string())?;
        if chunk.is_empty() {
            return Ok(sink.finish()?);
        }
        sink.chunk(&chunk.into())?;
    }
}

/// Sends a chunk; the empty one is the end.
async fn put<S: AsyncWrite + Unpin>(stream: &mut S, chunk: &[u8]) -> io::Result<()> {
    within(async {
        stream.write_u32_le(chunk.len() as u32).await?;
        stream.write_all(chunk).await?;
        if chunk.is_empty() { stream.shutdown().await } else { Ok(()) }
    })
    .await
}

/// Takes the next chunk.
async fn next<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Vec<u8>> {
    within(async {
        let len = stream.read_u32_le().await? as usize;
        if len > CHUNK_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a chunk is too long"));
        }
        let mut chunk = vec![0; len];
        stream.read_exact(&mut chunk).await?;
        Ok(chunk)
    })
    .await
}

async fn within<T>(working: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(CHUNK_TIMEOUT, working).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the other node is silent")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    /// What comes of something that another node does not take part in any more, before all the world's time is over.
    async fn ended<T>(what: impl Future<Output = io::Result<T>>) -> io::ErrorKind {
        let began = Instant::now();
        let done = tokio::time::timeout(10 * CHUNK_TIMEOUT, what).await;
        assert!(began.elapsed() >= CHUNK_TIMEOUT, "it had less time than it has");
        done.expect("it ends").err().expect("an error").kind()
    }

    /// Seconds that a node is waited for which has so much of a log that ends there, as of each second.
    fn waited(history: impl Iterator<Item = (u64, u64)>) -> usize {
        let begun = std::time::Instant::now();
        let mut catching_up = CatchingUp::new(begun);
        let at = |second: usize| begun + Duration::from_secs(second as u64);
        let mut history = history.enumerate();
        history
            .find(|(second, (matched, last))| !catching_up.goes_on(at(*second), *matched, *last))
            .map_or(usize::MAX, |(second, _)| second)
    }

    #[test]
    fn a_node_with_much_to_catch_up_is_waited_for_as_long_as_it_comes_nearer() {
        // While it opens its copy, which takes 50 s, the log grows as before.
        let matched = |second: u64| 1_000 + second.saturating_sub(50) * 110;
        let history = (0..).map(|second| (matched(second), 11_000 + second * 100));
        let ended = waited(history.take(10_000));
        assert!((1_500..2_000).contains(&ended), "after {ended} s");
    }

    #[test]
    fn a_node_that_never_comes_nearer_is_not_waited_for_long() {
        let timeout = FOLLOW_TIMEOUT.as_secs() as usize;
        assert_eq!(waited((0..500).map(|second| (7, 1_000 + second))), timeout);
        let ended = waited((0..500).map(|second| (7 + 10 * second, 1_000 + 20 * second)));
        assert!((timeout..timeout + 3).contains(&ended), "after {ended} s");
        // It has stopped after some time.
        let ended = waited((0..500u64).map(|second| (100 * second.min(30), 9_000 + second)));
        assert_eq!(ended, 30 + timeout);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_stops_within_a_chunk_is_given_up() {
        for said in [&b""[..], &[9, 0, 0, 0], &[9, 0, 0, 0, 1, 2]] {
            let (mut ours, mut theirs) = tokio::io::duplex(64);
            theirs.write_all(said).await.expect("there is room");
            assert_eq!(ended(next(&mut ours)).await, io::ErrorKind::TimedOut, "{said:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_takes_no_chunk_is_given_up() {
        let (mut ours, _theirs) = tokio::io::duplex(64);
        assert_eq!(ended(put(&mut ours, &[0; 65])).await, io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn chunks_come_as_they_were_sent_and_none_is_too_long() {
        let (mut ours, mut theirs) = tokio::io::duplex(64);
        for chunk in [&b"some"[..], b""] {
            put(&mut theirs, chunk).await.expect("sent");
            assert_eq!(next(&mut ours).await.expect("a chunk"), chunk);
        }
        assert_eq!(
            theirs.write(b"more").await.map_err(|error| error.kind()),
            Err(io::ErrorKind::BrokenPipe)
        );
        let (mut ours, mut theirs) = tokio::io::duplex(64);
        theirs.write_u32_le(CHUNK_BYTES_MAX as u32 + 1).await.expect("a length");
        let error = next(&mut ours).await.expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
