//! Which methods may come on an open channel, and from which side.

use courser_codec::Method;

/// Whether a client may send this to a broker on an open channel. Not among them: the methods that open and close
/// channels, publishes, and answers.
pub(crate) fn is_request(method: &Method<'_>) -> bool {
    matches!(
        method,
        Method::BasicAck(_)
            | Method::BasicCancel(_)
            | Method::BasicConsume(_)
            | Method::BasicGet(_)
            | Method::BasicNack(_)
            | Method::BasicQos(_)
            | Method::BasicRecover(_)
            | Method::BasicRecoverAsync(_)
            | Method::BasicReject(_)
            | Method::ChannelFlow(_)
            | Method::ConfirmSelect(_)
            | Method::ExchangeBind(_)
            | Method::ExchangeDeclare(_)
            | Method::ExchangeDelete(_)
            | Method::ExchangeUnbind(_)
            | Method::QueueBind(_)
            | Method::QueueDeclare(_)
            | Method::QueueDelete(_)
            | Method::QueuePurge(_)
            | Method::QueueUnbind(_)
            | Method::TxCommit(_)
            | Method::TxRollback(_)
            | Method::TxSelect(_)
    )
}

/// Whether a broker may send this to a client on an open channel. Not among them: the methods that open and close
/// channels, `channel.flow`, and those that bring a message.
pub(crate) fn is_reply(method: &Method<'_>) -> bool {
    matches!(
        method,
        Method::BasicAck(_)
            | Method::BasicCancel(_)
            | Method::BasicCancelOk(_)
            | Method::BasicConsumeOk(_)
            | Method::BasicGetEmpty(_)
            | Method::BasicNack(_)
            | Method::BasicQosOk(_)
            | Method::BasicRecoverOk(_)
            | Method::ChannelFlowOk(_)
            | Method::ConfirmSelectOk(_)
            | Method::ExchangeBindOk(_)
            | Method::ExchangeDeclareOk(_)
            | Method::ExchangeDeleteOk(_)
            | Method::ExchangeUnbindOk(_)
            | Method::QueueBindOk(_)
            | Method::QueueDeclareOk(_)
            | Method::QueueDeleteOk(_)
            | Method::QueuePurgeOk(_)
            | Method::QueueUnbindOk(_)
            | Method::TxCommitOk(_)
            | Method::TxRollbackOk(_)
            | Method::TxSelectOk(_)
    )
}
