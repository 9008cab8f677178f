//! The mode of a channel: confirms, transactions, or neither.

use courser_codec::Method;
use courser_codec::reply_code::PRECONDITION_FAILED;

use crate::close::Failure;

/// What counts on a channel besides plain publishes and acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelMode {
    /// Neither confirms nor transactions.
    #[default]
    Plain,
    /// Publishes are confirmed (`confirm.select`).
    Confirm,
    /// Publishes and acknowledgements are transactional (`tx.select`).
    Transaction,
}

/// What a server keeps of a channel.
#[derive(Debug, Default)]
pub(super) struct Channel {
    pub mode: ChannelMode,
    /// Number of the last publish in confirm mode.
    confirm_seq: u64,
}

impl Channel {
    /// Counts a publish: its number in confirm mode, else 0.
    #[inline]
    pub fn next_confirm_seq(&mut self) -> u64 {
        if self.mode == ChannelMode::Confirm {
            self.confirm_seq += 1;
        }
        self.confirm_seq
    }

    /// Acts on a method of the classes confirm and tx. A channel is in one mode at most, and stays in it.
    pub fn switch_mode(&mut self, method: &Method<'_>) -> Result<(), Failure> {
        let explanation = match (self.mode, method) {
            (ChannelMode::Transaction, Method::ConfirmSelect(_)) => {
                "cannot switch from tx to confirm mode"
            }
            (ChannelMode::Confirm, Method::TxSelect(_)) => "cannot switch from confirm to tx mode",
            (
                ChannelMode::Plain | ChannelMode::Confirm,
                Method::TxCommit(_) | Method::TxRollback(_),
            ) => "channel is not transactional",
            (_, Method::ConfirmSelect(_)) => {
                self.mode = ChannelMode::Confirm;
                return Ok(());
            }
            (_, Method::TxSelect(_)) => {
                self.mode = ChannelMode::Transaction;
                return Ok(());
            }
            _ => return Ok(()),
        };
        Err(Failure::of(PRECONDITION_FAILED, explanation, (method.class_id(), method.method_id())))
    }
}
