//! Transactions.

use courser_codec::{Method, tx};

use super::Channel;
use crate::error::Error;

impl Channel {
    /// Makes the channel transactional: publishes and acknowledgements take effect when they are committed.
    ///
    /// So does what gives back to a queue what a dropped consumer or [`get`](Channel::get) has not taken, which may come
    /// behind the last commit: the messages stay with the channel until the next one, or until it is closed.
    ///
    /// # Errors
    /// 406 on a channel in confirm mode.
    pub async fn tx_select(&self) -> Result<(), Error> {
        let expects = (tx::CLASS_ID, tx::SelectOk::METHOD_ID);
        self.ask(&Method::TxSelect(tx::Select {}), expects).await.map(drop)
    }

    /// Lets publishes and acknowledgements since the last commit or rollback take effect.
    ///
    /// # Errors
    /// 406 on a channel that is not transactional.
    pub async fn tx_commit(&self) -> Result<(), Error> {
        let expects = (tx::CLASS_ID, tx::CommitOk::METHOD_ID);
        self.ask(&Method::TxCommit(tx::Commit {}), expects).await.map(drop)
    }

    /// Forgets publishes and acknowledgements since the last commit or rollback.
    ///
    /// # Errors
    /// 406 on a channel that is not transactional.
    pub async fn tx_rollback(&self) -> Result<(), Error> {
        let expects = (tx::CLASS_ID, tx::RollbackOk::METHOD_ID);
        self.ask(&Method::TxRollback(tx::Rollback {}), expects).await.map(drop)
    }
}
