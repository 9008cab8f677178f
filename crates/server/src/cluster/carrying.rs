//! A vhost from the node that leads its group to the node that leads another one.
//!
//! The one that takes it in opens a tunnel to the one that has it, which says: `4 length, piece` for each piece of it, then a length of
//! 0. The other one answers with [`HOLD`] when it has all of it on a majority of disks; then the one that has it holds it, and
//! says [`HELD`] when that is so on a majority of disks. A length of [`FAILED`] is followed by a reason: `4 length, text`.

use crate::service::stopped;
use courser_broker::admin::{Admin, VhostSettings};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::Instant;

/// In place of a length: it has failed.
const FAILED: u32 = u32::MAX;
const HOLD: u8 = 1;
const HELD: u8 = 2;

/// Bytes of a piece, and of a reason.
const PIECE_BYTES_MAX: usize = 2 << 20;
const REASON_BYTES_MAX: usize = 4096;
/// How long clients may take to leave the vhost.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often is looked whether they have.
const LEAVE_INTERVAL: Duration = Duration::from_millis(50);
/// How long the other node may take for a piece, or to have everything on a majority of disks.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads a vhost of this broker out for another one, for the move of this number. It stands still meanwhile, and goes on if that comes to nothing before the
/// other one has all of it. From then on it stays, until home says where it is.
pub(super) async fn give<S: AsyncRead + AsyncWrite + Unpin>(
    admin: Admin,
    (vhost, number): (String, u64),
    mut stream: S,
    mut stopping: watch::Receiver<bool>,
) {
    let giving = give_all(&admin, (&vhost, number), &mut stream);
    let given = tokio::select! {
        given = giving => given,
        () = stopped(&mut stopping) => return,
    };
    let Err(why) = given else { return };
    tracing::warn!(vhost, why, "the vhost is not moved to another group");
    let name = vhost.clone();
    if let Err(why) = blocking(move || admin.start_vhost(&name, number)).await {
        tracing::error!(vhost, why, "the vhost can't go on");
    }
    let sent = within(async {
        stream.write_u32_le(FAILED).await?;
        let reason = &why.as_bytes()[..why.len().min(REASON_BYTES_MAX)];
        stream.write_u32_le(reason.len() as u32).await?;
        stream.write_all(reason).await?;
        stream.shutdown().await
    });
    // The other node may be gone.
    let _ = sent.await;
}

/// Returns an error if the vhost may go on here.
async fn give_all<S: AsyncRead + AsyncWrite + Unpin>(
    admin: &Admin,
    (vhost, number): (&str, u64),
    stream: &mut S,
) -> Result<(), String> {
    let until = Instant::now() + LEAVE_TIMEOUT;
    loop {
        let (to, name) = (admin.clone(), vhost.to_owned());
        let left = blocking(move || to.stop_vhost(&name, number)).await?;
        if left == 0 {
            break;
        }
        if Instant::now() >= until {
            return Err(format!("{left} connections do not leave it"));
        }
        tokio::time::sleep(LEAVE_INTERVAL).await;
    }
    let (from, name) = (admin.clone(), vhost.to_owned());
    let mut export = blocking(move || from.export_vhost(&name)).await?;
    loop {
        let read = blocking(move || export.next_piece().map(|piece| (export, piece))).await?;
        export = read.0;
        let piece = read.1.unwrap_or_default();
        within(async {
            stream.write_u32_le(piece.len() as u32).await?;
            stream.write_all(&piece).await?;
            stream.flush().await
        })
        .await?;
        if piece.is_empty() {
            break;
        }
    }
    if within(stream.read_u8()).await? != HOLD {
        return Err("the other node has not taken it in".to_owned());
    }
    let left_behind = export.left_behind();
    blocking(move || export.hold()).await?;
    // From here on only home knows where it is.
    tracing::info!(
        vhost,
        ?left_behind,
        "the vhost is held until home says that it is in another group"
    );
    match tokio::time::timeout(STEP_TIMEOUT, admin.durable()).await {
        Ok(Ok(())) => {}
        _ => return Ok(()),
    }
    let told = within(async {
        stream.write_u8(HELD).await?;
        stream.flush().await
    });
    // If the other node does not hear it, home begins anew.
    let _ = told.await;
    Ok(())
}

/// Takes in a vhost that another broker reads out. When this returns, it has arrived here, and is held there.
///
/// # Errors
/// Why it did not. What has come of it is to be forgotten.
pub(super) async fn take<S: AsyncRead + AsyncWrite + Unpin>(
    admin: Admin,
    (vhost, number): (&str, u64),
    mut stream: S,
) -> Result<u64, String> {
    let (to, name) = (admin.clone(), vhost.to_owned());
    // What an operator says of it comes with the definitions of home.
    let settings = VhostSettings::default();
    let import = blocking(move || to.import_vhost(&name, number, &settings)).await?;
    let mut held = Import(Some(import));
    loop {
        let len = within(stream.read_u32_le()).await?;
        if len == FAILED {
            return Err(reason(&mut stream).await?);
        }
        let len = len as usize;
        if len == 0 {
            break;
        }
        if len > PIECE_BYTES_MAX {
            return Err("a piece is too long".to_owned());
        }
        let mut piece = vec![0; len];
        within(stream.read_exact(&mut piece)).await?;
        let Some(mut import) = held.0.take() else { break };
        held.0 = Some(blocking(move || import.take(&piece).map(|()| import)).await?);
    }
    let Some(import) = held.0.take() else { return Err("nothing was begun".to_owned()) };
    let messages = import.messages();
    blocking(move || import.finish()).await?;
    let durable = tokio::time::timeout(STEP_TIMEOUT, admin.durable()).await;
    durable.map_err(|_| "its log is on no majority of disks".to_owned())?.map_err(text)?;
    within(async {
        stream.write_u8(HOLD).await?;
        stream.flush().await
    })
    .await?;
    match within(stream.read_u8()).await? {
        HELD => Ok(messages),
        // The first byte of the length that says so.
        _ => Err("the node that has it can't hold it".to_owned()),
    }
}

/// An import that is thrown away where that may block.
struct Import(Option<courser_broker::admin::Import>);

impl Drop for Import {
    fn drop(&mut self) {
        if let Some(import) = self.0.take() {
            drop(tokio::task::spawn_blocking(move || drop(import)));
        }
    }
}

async fn reason<S: AsyncRead + Unpin>(stream: &mut S) -> Result<String, String> {
    let len = within(stream.read_u32_le()).await? as usize;
    let mut reason = vec![0; len.min(REASON_BYTES_MAX)];
    within(stream.read_exact(&mut reason)).await?;
    Ok(String::from_utf8_lossy(&reason).into_owned())
}

async fn within<T>(working: impl Future<Output = io::Result<T>>) -> Result<T, String> {
    match tokio::time::timeout(STEP_TIMEOUT, working).await {
        Ok(done) => done.map_err(|error| format!("the other node can't be reached: {error}")),
        Err(_) => Err("the other node is silent".to_owned()),
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, courser_broker::Fault> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(text),
        Err(error) => Err(error.to_string()),
    }
}

fn text(fault: courser_broker::Fault) -> String {
    fault.explanation
}

#[cfg(test)]
mod tests;
