//! All methods in one enum.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

use crate::error::{DecodeError, DecodeErrorKind};
use crate::{Sink, basic, channel, confirm, connection, exchange, queue, tx};

/// Any method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method<'a> {
    /// Offers the server's protocol version, properties, login mechanisms and locales.
    ConnectionStart(connection::Start<'a>),
    /// Picks a login mechanism and a locale, and begins the login.
    ConnectionStartOk(connection::StartOk<'a>),
    /// Asks for one more round of the login mechanism.
    ConnectionSecure(connection::Secure<'a>),
    /// Answers a round of the login mechanism.
    ConnectionSecureOk(connection::SecureOk<'a>),
    /// Proposes limits for the connection.
    ConnectionTune(connection::Tune),
    /// Settles the limits, none above what the server proposed.
    ConnectionTuneOk(connection::TuneOk),
    /// Enters a virtual host.
    ConnectionOpen(connection::Open<'a>),
    /// The connection is ready for use.
    ConnectionOpenOk(connection::OpenOk),
    /// Ends the connection and says why; the sender takes nothing but the reply from then on.
    ConnectionClose(connection::Close<'a>),
    /// The last method on a connection.
    ConnectionCloseOk(connection::CloseOk),
    /// The server reads no publishes from this connection until further notice.
    ConnectionBlocked(connection::Blocked<'a>),
    /// The server reads publishes again.
    ConnectionUnblocked(connection::Unblocked),
    /// Replaces a secret that expires, such as a token, on a running connection.
    ConnectionUpdateSecret(connection::UpdateSecret<'a>),
    /// The new secret was taken.
    ConnectionUpdateSecretOk(connection::UpdateSecretOk),
    /// Opens the channel that the frame names.
    ChannelOpen(channel::Open),
    /// The channel is ready for use.
    ChannelOpenOk(channel::OpenOk),
    /// Asks the peer to stop or go on sending contents.
    ChannelFlow(channel::Flow),
    /// Says that the wish about the flow was received.
    ChannelFlowOk(channel::FlowOk),
    /// Ends the channel and says why; the sender takes nothing but the reply on it from then on.
    ChannelClose(channel::Close<'a>),
    /// The last method on a channel.
    ChannelCloseOk(channel::CloseOk),
    /// Makes an exchange, or checks that it is there as described.
    ExchangeDeclare(exchange::Declare<'a>),
    /// The exchange is there.
    ExchangeDeclareOk(exchange::DeclareOk),
    /// Deletes an exchange with its bindings.
    ExchangeDelete(exchange::Delete<'a>),
    /// The exchange is gone.
    ExchangeDeleteOk(exchange::DeleteOk),
    /// Binds an exchange to an exchange.
    ExchangeBind(exchange::Bind<'a>),
    /// The exchanges are bound.
    ExchangeBindOk(exchange::BindOk),
    /// Takes a binding between exchanges away.
    ExchangeUnbind(exchange::Unbind<'a>),
    /// The binding is gone.
    ExchangeUnbindOk(exchange::UnbindOk),
    /// Makes a queue, or checks that it is there as described.
    QueueDeclare(queue::Declare<'a>),
    /// The queue is there.
    QueueDeclareOk(queue::DeclareOk<'a>),
    /// Binds a queue to an exchange.
    QueueBind(queue::Bind<'a>),
    /// The queue is bound.
    QueueBindOk(queue::BindOk),
    /// Removes all messages that are ready in a queue.
    QueuePurge(queue::Purge<'a>),
    /// The messages are gone.
    QueuePurgeOk(queue::PurgeOk),
    /// Deletes a queue with its messages, bindings and consumers.
    QueueDelete(queue::Delete<'a>),
    /// The queue is gone.
    QueueDeleteOk(queue::DeleteOk),
    /// Takes a queue's binding away.
    QueueUnbind(queue::Unbind<'a>),
    /// The binding is gone.
    QueueUnbindOk(queue::UnbindOk),
    /// Limits how much is delivered ahead of acknowledgements.
    BasicQos(basic::Qos),
    /// The limits hold.
    BasicQosOk(basic::QosOk),
    /// Starts a consumer on a queue.
    BasicConsume(basic::Consume<'a>),
    /// The consumer runs.
    BasicConsumeOk(basic::ConsumeOk<'a>),
    /// Ends a consumer; from the server: its queue is gone.
    BasicCancel(basic::Cancel<'a>),
    /// The consumer has ended.
    BasicCancelOk(basic::CancelOk<'a>),
    /// Sends a message to an exchange.
    BasicPublish(basic::Publish<'a>),
    /// Gives back a message that could not be routed.
    BasicReturn(basic::Return<'a>),
    /// Brings a message to a consumer.
    BasicDeliver(basic::Deliver<'a>),
    /// Asks for one message of a queue.
    BasicGet(basic::Get<'a>),
    /// Brings the message that was asked for.
    BasicGetOk(basic::GetOk<'a>),
    /// The queue has no message.
    BasicGetEmpty(basic::GetEmpty),
    /// Acknowledges deliveries; from the server: confirms publishes.
    BasicAck(basic::Ack),
    /// Refuses a delivery.
    BasicReject(basic::Reject),
    /// Asks for all unacknowledged messages again, without a reply.
    BasicRecoverAsync(basic::RecoverAsync),
    /// Asks for all unacknowledged messages again.
    BasicRecover(basic::Recover),
    /// The messages are on their way.
    BasicRecoverOk(basic::RecoverOk),
    /// Refuses deliveries; from the server: publishes that it could not take.
    BasicNack(basic::Nack),
    /// Makes the channel transactional.
    TxSelect(tx::Select),
    /// The channel is transactional.
    TxSelectOk(tx::SelectOk),
    /// Carries out what was collected, and begins anew.
    TxCommit(tx::Commit),
    /// The transaction was carried out.
    TxCommitOk(tx::CommitOk),
    /// Forgets what was collected, and begins anew.
    TxRollback(tx::Rollback),
    /// The transaction was forgotten.
    TxRollbackOk(tx::RollbackOk),
    /// Asks the server to confirm every publish from now on.
    ConfirmSelect(confirm::Select),
    /// Publishes are confirmed from now on, numbered from 1.
    ConfirmSelectOk(confirm::SelectOk),
}

impl<'a> Method<'a> {
    /// Reads the payload of a method frame.
    ///
    /// # Errors
    /// When class or method do not exist, or the arguments are not the method's.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let Some((ids, args)) = payload.split_first_chunk::<4>() else {
            let offset = if payload.len() < 2 { 0 } else { 2 };
            return Err(DecodeError::new(offset, DecodeErrorKind::Truncated));
        };
        let class_id = u16::from_be_bytes([ids[0], ids[1]]);
        let method_id = u16::from_be_bytes([ids[2], ids[3]]);
        let decoded = match (class_id, method_id) {
            (10, 10) => connection::Start::decode(args).map(Self::ConnectionStart),
            (10, 11) => connection::StartOk::decode(args).map(Self::ConnectionStartOk),
            (10, 20) => connection::Secure::decode(args).map(Self::ConnectionSecure),
            (10, 21) => connection::SecureOk::decode(args).map(Self::ConnectionSecureOk),
            (10, 30) => connection::Tune::decode(args).map(Self::ConnectionTune),
            (10, 31) => connection::TuneOk::decode(args).map(Self::ConnectionTuneOk),
            (10, 40) => connection::Open::decode(args).map(Self::ConnectionOpen),
            (10, 41) => connection::OpenOk::decode(args).map(Self::ConnectionOpenOk),
            (10, 50) => connection::Close::decode(args).map(Self::ConnectionClose),
            (10, 51) => connection::CloseOk::decode(args).map(Self::ConnectionCloseOk),
            (10, 60) => connection::Blocked::decode(args).map(Self::ConnectionBlocked),
            (10, 61) => connection::Unblocked::decode(args).map(Self::ConnectionUnblocked),
            (10, 70) => connection::UpdateSecret::decode(args).map(Self::ConnectionUpdateSecret),
            (10, 71) => {
                connection::UpdateSecretOk::decode(args).map(Self::ConnectionUpdateSecretOk)
            }
            (20, 10) => channel::Open::decode(args).map(Self::ChannelOpen),
            (20, 11) => channel::OpenOk::decode(args).map(Self::ChannelOpenOk),
            (20, 20) => channel::Flow::decode(args).map(Self::ChannelFlow),
            (20, 21) => channel::FlowOk::decode(args).map(Self::ChannelFlowOk),
            (20, 40) => channel::Close::decode(args).map(Self::ChannelClose),
            (20, 41) => channel::CloseOk::decode(args).map(Self::ChannelCloseOk),
            (40, 10) => exchange::Declare::decode(args).map(Self::ExchangeDeclare),
            (40, 11) => exchange::DeclareOk::decode(args).map(Self::ExchangeDeclareOk),
            (40, 20) => exchange::Delete::decode(args).map(Self::ExchangeDelete),
            (40, 21) => exchange::DeleteOk::decode(args).map(Self::ExchangeDeleteOk),
            (40, 30) => exchange::Bind::decode(args).map(Self::ExchangeBind),
            (40, 31) => exchange::BindOk::decode(args).map(Self::ExchangeBindOk),
            (40, 40) => exchange::Unbind::decode(args).map(Self::ExchangeUnbind),
            (40, 51) => exchange::UnbindOk::decode(args).map(Self::ExchangeUnbindOk),
            (50, 10) => queue::Declare::decode(args).map(Self::QueueDeclare),
            (50, 11) => queue::DeclareOk::decode(args).map(Self::QueueDeclareOk),
            (50, 20) => queue::Bind::decode(args).map(Self::QueueBind),
            (50, 21) => queue::BindOk::decode(args).map(Self::QueueBindOk),
            (50, 30) => queue::Purge::decode(args).map(Self::QueuePurge),
            (50, 31) => queue::PurgeOk::decode(args).map(Self::QueuePurgeOk),
            (50, 40) => queue::Delete::decode(args).map(Self::QueueDelete),
            (50, 41) => queue::DeleteOk::decode(args).map(Self::QueueDeleteOk),
            (50, 50) => queue::Unbind::decode(args).map(Self::QueueUnbind),
            (50, 51) => queue::UnbindOk::decode(args).map(Self::QueueUnbindOk),
            (60, 10) => basic::Qos::decode(args).map(Self::BasicQos),
            (60, 11) => basic::QosOk::decode(args).map(Self::BasicQosOk),
            (60, 20) => basic::Consume::decode(args).map(Self::BasicConsume),
            (60, 21) => basic::ConsumeOk::decode(args).map(Self::BasicConsumeOk),
            (60, 30) => basic::Cancel::decode(args).map(Self::BasicCancel),
            (60, 31) => basic::CancelOk::decode(args).map(Self::BasicCancelOk),
            (60, 40) => basic::Publish::decode(args).map(Self::BasicPublish),
            (60, 50) => basic::Return::decode(args).map(Self::BasicReturn),
            (60, 60) => basic::Deliver::decode(args).map(Self::BasicDeliver),
            (60, 70) => basic::Get::decode(args).map(Self::BasicGet),
            (60, 71) => basic::GetOk::decode(args).map(Self::BasicGetOk),
            (60, 72) => basic::GetEmpty::decode(args).map(Self::BasicGetEmpty),
            (60, 80) => basic::Ack::decode(args).map(Self::BasicAck),
            (60, 90) => basic::Reject::decode(args).map(Self::BasicReject),
            (60, 100) => basic::RecoverAsync::decode(args).map(Self::BasicRecoverAsync),
            (60, 110) => basic::Recover::decode(args).map(Self::BasicRecover),
            (60, 111) => basic::RecoverOk::decode(args).map(Self::BasicRecoverOk),
            (60, 120) => basic::Nack::decode(args).map(Self::BasicNack),
            (90, 10) => tx::Select::decode(args).map(Self::TxSelect),
            (90, 11) => tx::SelectOk::decode(args).map(Self::TxSelectOk),
            (90, 20) => tx::Commit::decode(args).map(Self::TxCommit),
            (90, 21) => tx::CommitOk::decode(args).map(Self::TxCommitOk),
            (90, 30) => tx::Rollback::decode(args).map(Self::TxRollback),
            (90, 31) => tx::RollbackOk::decode(args).map(Self::TxRollbackOk),
            (85, 10) => confirm::Select::decode(args).map(Self::ConfirmSelect),
            (85, 11) => confirm::SelectOk::decode(args).map(Self::ConfirmSelectOk),
            _ => return Err(unknown(class_id, method_id)),
        };
        decoded.map_err(|error| error.shifted(4))
    }

    /// Number of the class.
    #[must_use]
    pub const fn class_id(&self) -> u16 {
        match self {
            Self::ConnectionStart(_) => connection::CLASS_ID,
            Self::ConnectionStartOk(_) => connection::CLASS_ID,
            Self::ConnectionSecure(_) => connection::CLASS_ID,
            Self::ConnectionSecureOk(_) => connection::CLASS_ID,
            Self::ConnectionTune(_) => connection::CLASS_ID,
            Self::ConnectionTuneOk(_) => connection::CLASS_ID,
            Self::ConnectionOpen(_) => connection::CLASS_ID,
            Self::ConnectionOpenOk(_) => connection::CLASS_ID,
            Self::ConnectionClose(_) => connection::CLASS_ID,
            Self::ConnectionCloseOk(_) => connection::CLASS_ID,
            Self::ConnectionBlocked(_) => connection::CLASS_ID,
            Self::ConnectionUnblocked(_) => connection::CLASS_ID,
            Self::ConnectionUpdateSecret(_) => connection::CLASS_ID,
            Self::ConnectionUpdateSecretOk(_) => connection::CLASS_ID,
            Self::ChannelOpen(_) => channel::CLASS_ID,
            Self::ChannelOpenOk(_) => channel::CLASS_ID,
            Self::ChannelFlow(_) => channel::CLASS_ID,
            Self::ChannelFlowOk(_) => channel::CLASS_ID,
            Self::ChannelClose(_) => channel::CLASS_ID,
            Self::ChannelCloseOk(_) => channel::CLASS_ID,
            Self::ExchangeDeclare(_) => exchange::CLASS_ID,
            Self::ExchangeDeclareOk(_) => exchange::CLASS_ID,
            Self::ExchangeDelete(_) => exchange::CLASS_ID,
            Self::ExchangeDeleteOk(_) => exchange::CLASS_ID,
            Self::ExchangeBind(_) => exchange::CLASS_ID,
            Self::ExchangeBindOk(_) => exchange::CLASS_ID,
            Self::ExchangeUnbind(_) => exchange::CLASS_ID,
            Self::ExchangeUnbindOk(_) => exchange::CLASS_ID,
            Self::QueueDeclare(_) => queue::CLASS_ID,
            Self::QueueDeclareOk(_) => queue::CLASS_ID,
            Self::QueueBind(_) => queue::CLASS_ID,
            Self::QueueBindOk(_) => queue::CLASS_ID,
            Self::QueuePurge(_) => queue::CLASS_ID,
            Self::QueuePurgeOk(_) => queue::CLASS_ID,
            Self::QueueDelete(_) => queue::CLASS_ID,
            Self::QueueDeleteOk(_) => queue::CLASS_ID,
            Self::QueueUnbind(_) => queue::CLASS_ID,
            Self::QueueUnbindOk(_) => queue::CLASS_ID,
            Self::BasicQos(_) => basic::CLASS_ID,
            Self::BasicQosOk(_) => basic::CLASS_ID,
            Self::BasicConsume(_) => basic::CLASS_ID,
            Self::BasicConsumeOk(_) => basic::CLASS_ID,
            Self::BasicCancel(_) => basic::CLASS_ID,
            Self::BasicCancelOk(_) => basic::CLASS_ID,
            Self::BasicPublish(_) => basic::CLASS_ID,
            Self::BasicReturn(_) => basic::CLASS_ID,
            Self::BasicDeliver(_) => basic::CLASS_ID,
            Self::BasicGet(_) => basic::CLASS_ID,
            Self::BasicGetOk(_) => basic::CLASS_ID,
            Self::BasicGetEmpty(_) => basic::CLASS_ID,
            Self::BasicAck(_) => basic::CLASS_ID,
            Self::BasicReject(_) => basic::CLASS_ID,
            Self::BasicRecoverAsync(_) => basic::CLASS_ID,
            Self::BasicRecover(_) => basic::CLASS_ID,
            Self::BasicRecoverOk(_) => basic::CLASS_ID,
            Self::BasicNack(_) => basic::CLASS_ID,
            Self::TxSelect(_) => tx::CLASS_ID,
            Self::TxSelectOk(_) => tx::CLASS_ID,
            Self::TxCommit(_) => tx::CLASS_ID,
            Self::TxCommitOk(_) => tx::CLASS_ID,
            Self::TxRollback(_) => tx::CLASS_ID,
            Self::TxRollbackOk(_) => tx::CLASS_ID,
            Self::ConfirmSelect(_) => confirm::CLASS_ID,
            Self::ConfirmSelectOk(_) => confirm::CLASS_ID,
        }
    }

    /// Number of the method in its class.
    #[must_use]
    pub const fn method_id(&self) -> u16 {
        match self {
            Self::ConnectionStart(_) => connection::Start::METHOD_ID,
            Self::ConnectionStartOk(_) => connection::StartOk::METHOD_ID,
            Self::ConnectionSecure(_) => connection::Secure::METHOD_ID,
            Self::ConnectionSecureOk(_) => connection::SecureOk::METHOD_ID,
            Self::ConnectionTune(_) => connection::Tune::METHOD_ID,
            Self::ConnectionTuneOk(_) => connection::TuneOk::METHOD_ID,
            Self::ConnectionOpen(_) => connection::Open::METHOD_ID,
            Self::ConnectionOpenOk(_) => connection::OpenOk::METHOD_ID,
            Self::ConnectionClose(_) => connection::Close::METHOD_ID,
            Self::ConnectionCloseOk(_) => connection::CloseOk::METHOD_ID,
            Self::ConnectionBlocked(_) => connection::Blocked::METHOD_ID,
            Self::ConnectionUnblocked(_) => connection::Unblocked::METHOD_ID,
            Self::ConnectionUpdateSecret(_) => connection::UpdateSecret::METHOD_ID,
            Self::ConnectionUpdateSecretOk(_) => connection::UpdateSecretOk::METHOD_ID,
            Self::ChannelOpen(_) => channel::Open::METHOD_ID,
            Self::ChannelOpenOk(_) => channel::OpenOk::METHOD_ID,
            Self::ChannelFlow(_) => channel::Flow::METHOD_ID,
            Self::ChannelFlowOk(_) => channel::FlowOk::METHOD_ID,
            Self::ChannelClose(_) => channel::Close::METHOD_ID,
            Self::ChannelCloseOk(_) => channel::CloseOk::METHOD_ID,
            Self::ExchangeDeclare(_) => exchange::Declare::METHOD_ID,
            Self::ExchangeDeclareOk(_) => exchange::DeclareOk::METHOD_ID,
            Self::ExchangeDelete(_) => exchange::Delete::METHOD_ID,
            Self::ExchangeDeleteOk(_) => exchange::DeleteOk::METHOD_ID,
            Self::ExchangeBind(_) => exchange::Bind::METHOD_ID,
            Self::ExchangeBindOk(_) => exchange::BindOk::METHOD_ID,
            Self::ExchangeUnbind(_) => exchange::Unbind::METHOD_ID,
            Self::ExchangeUnbindOk(_) => exchange::UnbindOk::METHOD_ID,
            Self::QueueDeclare(_) => queue::Declare::METHOD_ID,
            Self::QueueDeclareOk(_) => queue::DeclareOk::METHOD_ID,
            Self::QueueBind(_) => queue::Bind::METHOD_ID,
            Self::QueueBindOk(_) => queue::BindOk::METHOD_ID,
            Self::QueuePurge(_) => queue::Purge::METHOD_ID,
            Self::QueuePurgeOk(_) => queue::PurgeOk::METHOD_ID,
            Self::QueueDelete(_) => queue::Delete::METHOD_ID,
            Self::QueueDeleteOk(_) => queue::DeleteOk::METHOD_ID,
            Self::QueueUnbind(_) => queue::Unbind::METHOD_ID,
            Self::QueueUnbindOk(_) => queue::UnbindOk::METHOD_ID,
            Self::BasicQos(_) => basic::Qos::METHOD_ID,
            Self::BasicQosOk(_) => basic::QosOk::METHOD_ID,
            Self::BasicConsume(_) => basic::Consume::METHOD_ID,
            Self::BasicConsumeOk(_) => basic::ConsumeOk::METHOD_ID,
            Self::BasicCancel(_) => basic::Cancel::METHOD_ID,
            Self::BasicCancelOk(_) => basic::CancelOk::METHOD_ID,
            Self::BasicPublish(_) => basic::Publish::METHOD_ID,
            Self::BasicReturn(_) => basic::Return::METHOD_ID,
            Self::BasicDeliver(_) => basic::Deliver::METHOD_ID,
            Self::BasicGet(_) => basic::Get::METHOD_ID,
            Self::BasicGetOk(_) => basic::GetOk::METHOD_ID,
            Self::BasicGetEmpty(_) => basic::GetEmpty::METHOD_ID,
            Self::BasicAck(_) => basic::Ack::METHOD_ID,
            Self::BasicReject(_) => basic::Reject::METHOD_ID,
            Self::BasicRecoverAsync(_) => basic::RecoverAsync::METHOD_ID,
            Self::BasicRecover(_) => basic::Recover::METHOD_ID,
            Self::BasicRecoverOk(_) => basic::RecoverOk::METHOD_ID,
            Self::BasicNack(_) => basic::Nack::METHOD_ID,
            Self::TxSelect(_) => tx::Select::METHOD_ID,
            Self::TxSelectOk(_) => tx::SelectOk::METHOD_ID,
            Self::TxCommit(_) => tx::Commit::METHOD_ID,
            Self::TxCommitOk(_) => tx::CommitOk::METHOD_ID,
            Self::TxRollback(_) => tx::Rollback::METHOD_ID,
            Self::TxRollbackOk(_) => tx::RollbackOk::METHOD_ID,
            Self::ConfirmSelect(_) => confirm::Select::METHOD_ID,
            Self::ConfirmSelectOk(_) => confirm::SelectOk::METHOD_ID,
        }
    }

    /// Class and method by name, such as `basic.publish`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ConnectionStart(_) => connection::Start::NAME,
            Self::ConnectionStartOk(_) => connection::StartOk::NAME,
            Self::ConnectionSecure(_) => connection::Secure::NAME,
            Self::ConnectionSecureOk(_) => connection::SecureOk::NAME,
            Self::ConnectionTune(_) => connection::Tune::NAME,
            Self::ConnectionTuneOk(_) => connection::TuneOk::NAME,
            Self::ConnectionOpen(_) => connection::Open::NAME,
            Self::ConnectionOpenOk(_) => connection::OpenOk::NAME,
            Self::ConnectionClose(_) => connection::Close::NAME,
            Self::ConnectionCloseOk(_) => connection::CloseOk::NAME,
            Self::ConnectionBlocked(_) => connection::Blocked::NAME,
            Self::ConnectionUnblocked(_) => connection::Unblocked::NAME,
            Self::ConnectionUpdateSecret(_) => connection::UpdateSecret::NAME,
            Self::ConnectionUpdateSecretOk(_) => connection::UpdateSecretOk::NAME,
            Self::ChannelOpen(_) => channel::Open::NAME,
            Self::ChannelOpenOk(_) => channel::OpenOk::NAME,
            Self::ChannelFlow(_) => channel::Flow::NAME,
            Self::ChannelFlowOk(_) => channel::FlowOk::NAME,
            Self::ChannelClose(_) => channel::Close::NAME,
            Self::ChannelCloseOk(_) => channel::CloseOk::NAME,
            Self::ExchangeDeclare(_) => exchange::Declare::NAME,
            Self::ExchangeDeclareOk(_) => exchange::DeclareOk::NAME,
            Self::ExchangeDelete(_) => exchange::Delete::NAME,
            Self::ExchangeDeleteOk(_) => exchange::DeleteOk::NAME,
            Self::ExchangeBind(_) => exchange::Bind::NAME,
            Self::ExchangeBindOk(_) => exchange::BindOk::NAME,
            Self::ExchangeUnbind(_) => exchange::Unbind::NAME,
            Self::ExchangeUnbindOk(_) => exchange::UnbindOk::NAME,
            Self::QueueDeclare(_) => queue::Declare::NAME,
            Self::QueueDeclareOk(_) => queue::DeclareOk::NAME,
            Self::QueueBind(_) => queue::Bind::NAME,
            Self::QueueBindOk(_) => queue::BindOk::NAME,
            Self::QueuePurge(_) => queue::Purge::NAME,
            Self::QueuePurgeOk(_) => queue::PurgeOk::NAME,
            Self::QueueDelete(_) => queue::Delete::NAME,
            Self::QueueDeleteOk(_) => queue::DeleteOk::NAME,
            Self::QueueUnbind(_) => queue::Unbind::NAME,
            Self::QueueUnbindOk(_) => queue::UnbindOk::NAME,
            Self::BasicQos(_) => basic::Qos::NAME,
            Self::BasicQosOk(_) => basic::QosOk::NAME,
            Self::BasicConsume(_) => basic::Consume::NAME,
            Self::BasicConsumeOk(_) => basic::ConsumeOk::NAME,
            Self::BasicCancel(_) => basic::Cancel::NAME,
            Self::BasicCancelOk(_) => basic::CancelOk::NAME,
            Self::BasicPublish(_) => basic::Publish::NAME,
            Self::BasicReturn(_) => basic::Return::NAME,
            Self::BasicDeliver(_) => basic::Deliver::NAME,
            Self::BasicGet(_) => basic::Get::NAME,
            Self::BasicGetOk(_) => basic::GetOk::NAME,
            Self::BasicGetEmpty(_) => basic::GetEmpty::NAME,
            Self::BasicAck(_) => basic::Ack::NAME,
            Self::BasicReject(_) => basic::Reject::NAME,
            Self::BasicRecoverAsync(_) => basic::RecoverAsync::NAME,
            Self::BasicRecover(_) => basic::Recover::NAME,
            Self::BasicRecoverOk(_) => basic::RecoverOk::NAME,
            Self::BasicNack(_) => basic::Nack::NAME,
            Self::TxSelect(_) => tx::Select::NAME,
            Self::TxSelectOk(_) => tx::SelectOk::NAME,
            Self::TxCommit(_) => tx::Commit::NAME,
            Self::TxCommitOk(_) => tx::CommitOk::NAME,
            Self::TxRollback(_) => tx::Rollback::NAME,
            Self::TxRollbackOk(_) => tx::RollbackOk::NAME,
            Self::ConfirmSelect(_) => confirm::Select::NAME,
            Self::ConfirmSelectOk(_) => confirm::SelectOk::NAME,
        }
    }

    /// Whether a content header and bodies follow the method.
    #[must_use]
    pub const fn has_content(&self) -> bool {
        matches!(
            self,
            Self::BasicPublish(_)
                | Self::BasicReturn(_)
                | Self::BasicDeliver(_)
                | Self::BasicGetOk(_)
        )
    }

    /// Bytes of the payload: class and method number and arguments.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        4 + match self {
            Self::ConnectionStart(method) => method.encoded_len(),
            Self::ConnectionStartOk(method) => method.encoded_len(),
            Self::ConnectionSecure(method) => method.encoded_len(),
            Self::ConnectionSecureOk(method) => method.encoded_len(),
            Self::ConnectionTune(method) => method.encoded_len(),
            Self::ConnectionTuneOk(method) => method.encoded_len(),
            Self::ConnectionOpen(method) => method.encoded_len(),
            Self::ConnectionOpenOk(method) => method.encoded_len(),
            Self::ConnectionClose(method) => method.encoded_len(),
            Self::ConnectionCloseOk(method) => method.encoded_len(),
            Self::ConnectionBlocked(method) => method.encoded_len(),
            Self::ConnectionUnblocked(method) => method.encoded_len(),
            Self::ConnectionUpdateSecret(method) => method.encoded_len(),
            Self::ConnectionUpdateSecretOk(method) => method.encoded_len(),
            Self::ChannelOpen(method) => method.encoded_len(),
            Self::ChannelOpenOk(method) => method.encoded_len(),
            Self::ChannelFlow(method) => method.encoded_len(),
            Self::ChannelFlowOk(method) => method.encoded_len(),
            Self::ChannelClose(method) => method.encoded_len(),
            Self::ChannelCloseOk(method) => method.encoded_len(),
            Self::ExchangeDeclare(method) => method.encoded_len(),
            Self::ExchangeDeclareOk(method) => method.encoded_len(),
            Self::ExchangeDelete(method) => method.encoded_len(),
            Self::ExchangeDeleteOk(method) => method.encoded_len(),
            Self::ExchangeBind(method) => method.encoded_len(),
            Self::ExchangeBindOk(method) => method.encoded_len(),
            Self::ExchangeUnbind(method) => method.encoded_len(),
            Self::ExchangeUnbindOk(method) => method.encoded_len(),
            Self::QueueDeclare(method) => method.encoded_len(),
            Self::QueueDeclareOk(method) => method.encoded_len(),
            Self::QueueBind(method) => method.encoded_len(),
            Self::QueueBindOk(method) => method.encoded_len(),
            Self::QueuePurge(method) => method.encoded_len(),
            Self::QueuePurgeOk(method) => method.encoded_len(),
            Self::QueueDelete(method) => method.encoded_len(),
            Self::QueueDeleteOk(method) => method.encoded_len(),
            Self::QueueUnbind(method) => method.encoded_len(),
            Self::QueueUnbindOk(method) => method.encoded_len(),
            Self::BasicQos(method) => method.encoded_len(),
            Self::BasicQosOk(method) => method.encoded_len(),
            Self::BasicConsume(method) => method.encoded_len(),
            Self::BasicConsumeOk(method) => method.encoded_len(),
            Self::BasicCancel(method) => method.encoded_len(),
            Self::BasicCancelOk(method) => method.encoded_len(),
            Self::BasicPublish(method) => method.encoded_len(),
            Self::BasicReturn(method) => method.encoded_len(),
            Self::BasicDeliver(method) => method.encoded_len(),
            Self::BasicGet(method) => method.encoded_len(),
            Self::BasicGetOk(method) => method.encoded_len(),
            Self::BasicGetEmpty(method) => method.encoded_len(),
            Self::BasicAck(method) => method.encoded_len(),
            Self::BasicReject(method) => method.encoded_len(),
            Self::BasicRecoverAsync(method) => method.encoded_len(),
            Self::BasicRecover(method) => method.encoded_len(),
            Self::BasicRecoverOk(method) => method.encoded_len(),
            Self::BasicNack(method) => method.encoded_len(),
            Self::TxSelect(method) => method.encoded_len(),
            Self::TxSelectOk(method) => method.encoded_len(),
            Self::TxCommit(method) => method.encoded_len(),
            Self::TxCommitOk(method) => method.encoded_len(),
            Self::TxRollback(method) => method.encoded_len(),
            Self::TxRollbackOk(method) => method.encoded_len(),
            Self::ConfirmSelect(method) => method.encoded_len(),
            Self::ConfirmSelectOk(method) => method.encoded_len(),
        }
    }

    /// Writes a whole method frame.
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        match self {
            Self::ConnectionStart(method) => method.write_frame(channel, sink),
            Self::ConnectionStartOk(method) => method.write_frame(channel, sink),
            Self::ConnectionSecure(method) => method.write_frame(channel, sink),
            Self::ConnectionSecureOk(method) => method.write_frame(channel, sink),
            Self::ConnectionTune(method) => method.write_frame(channel, sink),
            Self::ConnectionTuneOk(method) => method.write_frame(channel, sink),
            Self::ConnectionOpen(method) => method.write_frame(channel, sink),
            Self::ConnectionOpenOk(method) => method.write_frame(channel, sink),
            Self::ConnectionClose(method) => method.write_frame(channel, sink),
            Self::ConnectionCloseOk(method) => method.write_frame(channel, sink),
            Self::ConnectionBlocked(method) => method.write_frame(channel, sink),
            Self::ConnectionUnblocked(method) => method.write_frame(channel, sink),
            Self::ConnectionUpdateSecret(method) => method.write_frame(channel, sink),
            Self::ConnectionUpdateSecretOk(method) => method.write_frame(channel, sink),
            Self::ChannelOpen(method) => method.write_frame(channel, sink),
            Self::ChannelOpenOk(method) => method.write_frame(channel, sink),
            Self::ChannelFlow(method) => method.write_frame(channel, sink),
            Self::ChannelFlowOk(method) => method.write_frame(channel, sink),
            Self::ChannelClose(method) => method.write_frame(channel, sink),
            Self::ChannelCloseOk(method) => method.write_frame(channel, sink),
            Self::ExchangeDeclare(method) => method.write_frame(channel, sink),
            Self::ExchangeDeclareOk(method) => method.write_frame(channel, sink),
            Self::ExchangeDelete(method) => method.write_frame(channel, sink),
            Self::ExchangeDeleteOk(method) => method.write_frame(channel, sink),
            Self::ExchangeBind(method) => method.write_frame(channel, sink),
            Self::ExchangeBindOk(method) => method.write_frame(channel, sink),
            Self::ExchangeUnbind(method) => method.write_frame(channel, sink),
            Self::ExchangeUnbindOk(method) => method.write_frame(channel, sink),
            Self::QueueDeclare(method) => method.write_frame(channel, sink),
            Self::QueueDeclareOk(method) => method.write_frame(channel, sink),
            Self::QueueBind(method) => method.write_frame(channel, sink),
            Self::QueueBindOk(method) => method.write_frame(channel, sink),
            Self::QueuePurge(method) => method.write_frame(channel, sink),
            Self::QueuePurgeOk(method) => method.write_frame(channel, sink),
            Self::QueueDelete(method) => method.write_frame(channel, sink),
            Self::QueueDeleteOk(method) => method.write_frame(channel, sink),
            Self::QueueUnbind(method) => method.write_frame(channel, sink),
            Self::QueueUnbindOk(method) => method.write_frame(channel, sink),
            Self::BasicQos(method) => method.write_frame(channel, sink),
            Self::BasicQosOk(method) => method.write_frame(channel, sink),
            Self::BasicConsume(method) => method.write_frame(channel, sink),
            Self::BasicConsumeOk(method) => method.write_frame(channel, sink),
            Self::BasicCancel(method) => method.write_frame(channel, sink),
            Self::BasicCancelOk(method) => method.write_frame(channel, sink),
            Self::BasicPublish(method) => method.write_frame(channel, sink),
            Self::BasicReturn(method) => method.write_frame(channel, sink),
            Self::BasicDeliver(method) => method.write_frame(channel, sink),
            Self::BasicGet(method) => method.write_frame(channel, sink),
            Self::BasicGetOk(method) => method.write_frame(channel, sink),
            Self::BasicGetEmpty(method) => method.write_frame(channel, sink),
            Self::BasicAck(method) => method.write_frame(channel, sink),
            Self::BasicReject(method) => method.write_frame(channel, sink),
            Self::BasicRecoverAsync(method) => method.write_frame(channel, sink),
            Self::BasicRecover(method) => method.write_frame(channel, sink),
            Self::BasicRecoverOk(method) => method.write_frame(channel, sink),
            Self::BasicNack(method) => method.write_frame(channel, sink),
            Self::TxSelect(method) => method.write_frame(channel, sink),
            Self::TxSelectOk(method) => method.write_frame(channel, sink),
            Self::TxCommit(method) => method.write_frame(channel, sink),
            Self::TxCommitOk(method) => method.write_frame(channel, sink),
            Self::TxRollback(method) => method.write_frame(channel, sink),
            Self::TxRollbackOk(method) => method.write_frame(channel, sink),
            Self::ConfirmSelect(method) => method.write_frame(channel, sink),
            Self::ConfirmSelectOk(method) => method.write_frame(channel, sink),
        }
    }
}

#[cold]
fn unknown(class_id: u16, method_id: u16) -> DecodeError {
    match class_id {
        connection::CLASS_ID
        | channel::CLASS_ID
        | exchange::CLASS_ID
        | queue::CLASS_ID
        | basic::CLASS_ID
        | tx::CLASS_ID
        | confirm::CLASS_ID => {
            DecodeError::new(2, DecodeErrorKind::UnknownMethod { class_id, method_id })
        }
        _ => DecodeError::new(0, DecodeErrorKind::UnknownClass(class_id)),
    }
}

impl<'a> From<connection::Start<'a>> for Method<'a> {
    fn from(method: connection::Start<'a>) -> Self {
        Self::ConnectionStart(method)
    }
}

impl<'a> From<connection::StartOk<'a>> for Method<'a> {
    fn from(method: connection::StartOk<'a>) -> Self {
        Self::ConnectionStartOk(method)
    }
}

impl<'a> From<connection::Secure<'a>> for Method<'a> {
    fn from(method: connection::Secure<'a>) -> Self {
        Self::ConnectionSecure(method)
    }
}

impl<'a> From<connection::SecureOk<'a>> for Method<'a> {
    fn from(method: connection::SecureOk<'a>) -> Self {
        Self::ConnectionSecureOk(method)
    }
}

impl From<connection::Tune> for Method<'_> {
    fn from(method: connection::Tune) -> Self {
        Self::ConnectionTune(method)
    }
}

impl From<connection::TuneOk> for Method<'_> {
    fn from(method: connection::TuneOk) -> Self {
        Self::ConnectionTuneOk(method)
    }
}

impl<'a> From<connection::Open<'a>> for Method<'a> {
    fn from(method: connection::Open<'a>) -> Self {
        Self::ConnectionOpen(method)
    }
}

impl From<connection::OpenOk> for Method<'_> {
    fn from(method: connection::OpenOk) -> Self {
        Self::ConnectionOpenOk(method)
    }
}

impl<'a> From<connection::Close<'a>> for Method<'a> {
    fn from(method: connection::Close<'a>) -> Self {
        Self::ConnectionClose(method)
    }
}

impl From<connection::CloseOk> for Method<'_> {
    fn from(method: connection::CloseOk) -> Self {
        Self::ConnectionCloseOk(method)
    }
}

impl<'a> From<connection::Blocked<'a>> for Method<'a> {
    fn from(method: connection::Blocked<'a>) -> Self {
        Self::ConnectionBlocked(method)
    }
}

impl From<connection::Unblocked> for Method<'_> {
    fn from(method: connection::Unblocked) -> Self {
        Self::ConnectionUnblocked(method)
    }
}

impl<'a> From<connection::UpdateSecret<'a>> for Method<'a> {
    fn from(method: connection::UpdateSecret<'a>) -> Self {
        Self::ConnectionUpdateSecret(method)
    }
}

impl From<connection::UpdateSecretOk> for Method<'_> {
    fn from(method: connection::UpdateSecretOk) -> Self {
        Self::ConnectionUpdateSecretOk(method)
    }
}

impl From<channel::Open> for Method<'_> {
    fn from(method: channel::Open) -> Self {
        Self::ChannelOpen(method)
    }
}

impl From<channel::OpenOk> for Method<'_> {
    fn from(method: channel::OpenOk) -> Self {
        Self::ChannelOpenOk(method)
    }
}

impl From<channel::Flow> for Method<'_> {
    fn from(method: channel::Flow) -> Self {
        Self::ChannelFlow(method)
    }
}

impl From<channel::FlowOk> for Method<'_> {
    fn from(method: channel::FlowOk) -> Self {
        Self::ChannelFlowOk(method)
    }
}

impl<'a> From<channel::Close<'a>> for Method<'a> {
    fn from(method: channel::Close<'a>) -> Self {
        Self::ChannelClose(method)
    }
}

impl From<channel::CloseOk> for Method<'_> {
    fn from(method: channel::CloseOk) -> Self {
        Self::ChannelCloseOk(method)
    }
}

impl<'a> From<exchange::Declare<'a>> for Method<'a> {
    fn from(method: exchange::Declare<'a>) -> Self {
        Self::ExchangeDeclare(method)
    }
}

impl From<exchange::DeclareOk> for Method<'_> {
    fn from(method: exchange::DeclareOk) -> Self {
        Self::ExchangeDeclareOk(method)
    }
}

impl<'a> From<exchange::Delete<'a>> for Method<'a> {
    fn from(method: exchange::Delete<'a>) -> Self {
        Self::ExchangeDelete(method)
    }
}

impl From<exchange::DeleteOk> for Method<'_> {
    fn from(method: exchange::DeleteOk) -> Self {
        Self::ExchangeDeleteOk(method)
    }
}

impl<'a> From<exchange::Bind<'a>> for Method<'a> {
    fn from(method: exchange::Bind<'a>) -> Self {
        Self::ExchangeBind(method)
    }
}

impl From<exchange::BindOk> for Method<'_> {
    fn from(method: exchange::BindOk) -> Self {
        Self::ExchangeBindOk(method)
    }
}

impl<'a> From<exchange::Unbind<'a>> for Method<'a> {
    fn from(method: exchange::Unbind<'a>) -> Self {
        Self::ExchangeUnbind(method)
    }
}

impl From<exchange::UnbindOk> for Method<'_> {
    fn from(method: exchange::UnbindOk) -> Self {
        Self::ExchangeUnbindOk(method)
    }
}

impl<'a> From<queue::Declare<'a>> for Method<'a> {
    fn from(method: queue::Declare<'a>) -> Self {
        Self::QueueDeclare(method)
    }
}

impl<'a> From<queue::DeclareOk<'a>> for Method<'a> {
    fn from(method: queue::DeclareOk<'a>) -> Self {
        Self::QueueDeclareOk(method)
    }
}

impl<'a> From<queue::Bind<'a>> for Method<'a> {
    fn from(method: queue::Bind<'a>) -> Self {
        Self::QueueBind(method)
    }
}

impl From<queue::BindOk> for Method<'_> {
    fn from(method: queue::BindOk) -> Self {
        Self::QueueBindOk(method)
    }
}

impl<'a> From<queue::Purge<'a>> for Method<'a> {
    fn from(method: queue::Purge<'a>) -> Self {
        Self::QueuePurge(method)
    }
}

impl From<queue::PurgeOk> for Method<'_> {
    fn from(method: queue::PurgeOk) -> Self {
        Self::QueuePurgeOk(method)
    }
}

impl<'a> From<queue::Delete<'a>> for Method<'a> {
    fn from(method: queue::Delete<'a>) -> Self {
        Self::QueueDelete(method)
    }
}

impl From<queue::DeleteOk> for Method<'_> {
    fn from(method: queue::DeleteOk) -> Self {
        Self::QueueDeleteOk(method)
    }
}

impl<'a> From<queue::Unbind<'a>> for Method<'a> {
    fn from(method: queue::Unbind<'a>) -> Self {
        Self::QueueUnbind(method)
    }
}

impl From<queue::UnbindOk> for Method<'_> {
    fn from(method: queue::UnbindOk) -> Self {
        Self::QueueUnbindOk(method)
    }
}

impl From<basic::Qos> for Method<'_> {
    fn from(method: basic::Qos) -> Self {
        Self::BasicQos(method)
    }
}

impl From<basic::QosOk> for Method<'_> {
    fn from(method: basic::QosOk) -> Self {
        Self::BasicQosOk(method)
    }
}

impl<'a> From<basic::Consume<'a>> for Method<'a> {
    fn from(method: basic::Consume<'a>) -> Self {
        Self::BasicConsume(method)
    }
}

impl<'a> From<basic::ConsumeOk<'a>> for Method<'a> {
    fn from(method: basic::ConsumeOk<'a>) -> Self {
        Self::BasicConsumeOk(method)
    }
}

impl<'a> From<basic::Cancel<'a>> for Method<'a> {
    fn from(method: basic::Cancel<'a>) -> Self {
        Self::BasicCancel(method)
    }
}

impl<'a> From<basic::CancelOk<'a>> for Method<'a> {
    fn from(method: basic::CancelOk<'a>) -> Self {
        Self::BasicCancelOk(method)
    }
}

impl<'a> From<basic::Publish<'a>> for Method<'a> {
    fn from(method: basic::Publish<'a>) -> Self {
        Self::BasicPublish(method)
    }
}

impl<'a> From<basic::Return<'a>> for Method<'a> {
    fn from(method: basic::Return<'a>) -> Self {
        Self::BasicReturn(method)
    }
}

impl<'a> From<basic::Deliver<'a>> for Method<'a> {
    fn from(method: basic::Deliver<'a>) -> Self {
        Self::BasicDeliver(method)
    }
}

impl<'a> From<basic::Get<'a>> for Method<'a> {
    fn from(method: basic::Get<'a>) -> Self {
        Self::BasicGet(method)
    }
}

impl<'a> From<basic::GetOk<'a>> for Method<'a> {
    fn from(method: basic::GetOk<'a>) -> Self {
        Self::BasicGetOk(method)
    }
}

impl From<basic::GetEmpty> for Method<'_> {
    fn from(method: basic::GetEmpty) -> Self {
        Self::BasicGetEmpty(method)
    }
}

impl From<basic::Ack> for Method<'_> {
    fn from(method: basic::Ack) -> Self {
        Self::BasicAck(method)
    }
}

impl From<basic::Reject> for Method<'_> {
    fn from(method: basic::Reject) -> Self {
        Self::BasicReject(method)
    }
}

impl From<basic::RecoverAsync> for Method<'_> {
    fn from(method: basic::RecoverAsync) -> Self {
        Self::BasicRecoverAsync(method)
    }
}

impl From<basic::Recover> for Method<'_> {
    fn from(method: basic::Recover) -> Self {
        Self::BasicRecover(method)
    }
}

impl From<basic::RecoverOk> for Method<'_> {
    fn from(method: basic::RecoverOk) -> Self {
        Self::BasicRecoverOk(method)
    }
}

impl From<basic::Nack> for Method<'_> {
    fn from(method: basic::Nack) -> Self {
        Self::BasicNack(method)
    }
}

impl From<tx::Select> for Method<'_> {
    fn from(method: tx::Select) -> Self {
        Self::TxSelect(method)
    }
}

impl From<tx::SelectOk> for Method<'_> {
    fn from(method: tx::SelectOk) -> Self {
        Self::TxSelectOk(method)
    }
}

impl From<tx::Commit> for Method<'_> {
    fn from(method: tx::Commit) -> Self {
        Self::TxCommit(method)
    }
}

impl From<tx::CommitOk> for Method<'_> {
    fn from(method: tx::CommitOk) -> Self {
        Self::TxCommitOk(method)
    }
}

impl From<tx::Rollback> for Method<'_> {
    fn from(method: tx::Rollback) -> Self {
        Self::TxRollback(method)
    }
}

impl From<tx::RollbackOk> for Method<'_> {
    fn from(method: tx::RollbackOk) -> Self {
        Self::TxRollbackOk(method)
    }
}

impl From<confirm::Select> for Method<'_> {
    fn from(method: confirm::Select) -> Self {
        Self::ConfirmSelect(method)
    }
}

impl From<confirm::SelectOk> for Method<'_> {
    fn from(method: confirm::SelectOk) -> Self {
        Self::ConfirmSelectOk(method)
    }
}
