//! Logins and renewals under way, as a connection waits for them.

use super::{LoginError, RenewalError};
use courser_auth::{Login, LoginRefused};
use courser_connection::Mechanism;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::JoinHandle;

/// A password that is being checked, or waits for its turn. It ends when it is dropped.
pub(crate) struct Pending {
    pub(super) task: JoinHandle<Result<Login, LoginRefused>>,
    pub(super) user: String,
    pub(super) mechanism: Mechanism,
}

impl Pending {
    /// Who the client says that it is.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// How it wants to log in.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }
}

impl Future for Pending {
    type Output = Result<Login, LoginError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(cx).map(|joined| match joined {
            Ok(decided) => Ok(decided?),
            Err(_) => Err(LoginError::Interrupted),
        })
    }
}

/// A token that shall renew what a user may do, and is being looked at. It ends when it is dropped.
pub(crate) struct Renewal(pub(super) JoinHandle<Result<(), RenewalError>>);

impl Future for Renewal {
    type Output = Result<(), RenewalError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|joined| joined.unwrap_or(Err(RenewalError::Interrupted)))
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.task.abort();
    }
}
