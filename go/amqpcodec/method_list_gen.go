// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

// The methods by number.
const (
	// ConnectionStartID is the number of [ConnectionStart], connection.start.
	ConnectionStartID MethodID = 10<<16 | 10
	// ConnectionStartOkID is the number of [ConnectionStartOk], connection.start-ok.
	ConnectionStartOkID MethodID = 10<<16 | 11
	// ConnectionSecureID is the number of [ConnectionSecure], connection.secure.
	ConnectionSecureID MethodID = 10<<16 | 20
	// ConnectionSecureOkID is the number of [ConnectionSecureOk], connection.secure-ok.
	ConnectionSecureOkID MethodID = 10<<16 | 21
	// ConnectionTuneID is the number of [ConnectionTune], connection.tune.
	ConnectionTuneID MethodID = 10<<16 | 30
	// ConnectionTuneOkID is the number of [ConnectionTuneOk], connection.tune-ok.
	ConnectionTuneOkID MethodID = 10<<16 | 31
	// ConnectionOpenID is the number of [ConnectionOpen], connection.open.
	ConnectionOpenID MethodID = 10<<16 | 40
	// ConnectionOpenOkID is the number of [ConnectionOpenOk], connection.open-ok.
	ConnectionOpenOkID MethodID = 10<<16 | 41
	// ConnectionCloseID is the number of [ConnectionClose], connection.close.
	ConnectionCloseID MethodID = 10<<16 | 50
	// ConnectionCloseOkID is the number of [ConnectionCloseOk], connection.close-ok.
	ConnectionCloseOkID MethodID = 10<<16 | 51
	// ConnectionBlockedID is the number of [ConnectionBlocked], connection.blocked.
	ConnectionBlockedID MethodID = 10<<16 | 60
	// ConnectionUnblockedID is the number of [ConnectionUnblocked], connection.unblocked.
	ConnectionUnblockedID MethodID = 10<<16 | 61
	// ConnectionUpdateSecretID is the number of [ConnectionUpdateSecret], connection.update-secret.
	ConnectionUpdateSecretID MethodID = 10<<16 | 70
	// ConnectionUpdateSecretOkID is the number of [ConnectionUpdateSecretOk], connection.update-secret-ok.
	ConnectionUpdateSecretOkID MethodID = 10<<16 | 71
	// ChannelOpenID is the number of [ChannelOpen], channel.open.
	ChannelOpenID MethodID = 20<<16 | 10
	// ChannelOpenOkID is the number of [ChannelOpenOk], channel.open-ok.
	ChannelOpenOkID MethodID = 20<<16 | 11
	// ChannelFlowID is the number of [ChannelFlow], channel.flow.
	ChannelFlowID MethodID = 20<<16 | 20
	// ChannelFlowOkID is the number of [ChannelFlowOk], channel.flow-ok.
	ChannelFlowOkID MethodID = 20<<16 | 21
	// ChannelCloseID is the number of [ChannelClose], channel.close.
	ChannelCloseID MethodID = 20<<16 | 40
	// ChannelCloseOkID is the number of [ChannelCloseOk], channel.close-ok.
	ChannelCloseOkID MethodID = 20<<16 | 41
	// ExchangeDeclareID is the number of [ExchangeDeclare], exchange.declare.
	ExchangeDeclareID MethodID = 40<<16 | 10
	// ExchangeDeclareOkID is the number of [ExchangeDeclareOk], exchange.declare-ok.
	ExchangeDeclareOkID MethodID = 40<<16 | 11
	// ExchangeDeleteID is the number of [ExchangeDelete], exchange.delete.
	ExchangeDeleteID MethodID = 40<<16 | 20
	// ExchangeDeleteOkID is the number of [ExchangeDeleteOk], exchange.delete-ok.
	ExchangeDeleteOkID MethodID = 40<<16 | 21
	// ExchangeBindID is the number of [ExchangeBind], exchange.bind.
	ExchangeBindID MethodID = 40<<16 | 30
	// ExchangeBindOkID is the number of [ExchangeBindOk], exchange.bind-ok.
	ExchangeBindOkID MethodID = 40<<16 | 31
	// ExchangeUnbindID is the number of [ExchangeUnbind], exchange.unbind.
	ExchangeUnbindID MethodID = 40<<16 | 40
	// ExchangeUnbindOkID is the number of [ExchangeUnbindOk], exchange.unbind-ok.
	ExchangeUnbindOkID MethodID = 40<<16 | 51
	// QueueDeclareID is the number of [QueueDeclare], queue.declare.
	QueueDeclareID MethodID = 50<<16 | 10
	// QueueDeclareOkID is the number of [QueueDeclareOk], queue.declare-ok.
	QueueDeclareOkID MethodID = 50<<16 | 11
	// QueueBindID is the number of [QueueBind], queue.bind.
	QueueBindID MethodID = 50<<16 | 20
	// QueueBindOkID is the number of [QueueBindOk], queue.bind-ok.
	QueueBindOkID MethodID = 50<<16 | 21
	// QueuePurgeID is the number of [QueuePurge], queue.purge.
	QueuePurgeID MethodID = 50<<16 | 30
	// QueuePurgeOkID is the number of [QueuePurgeOk], queue.purge-ok.
	QueuePurgeOkID MethodID = 50<<16 | 31
	// QueueDeleteID is the number of [QueueDelete], queue.delete.
	QueueDeleteID MethodID = 50<<16 | 40
	// QueueDeleteOkID is the number of [QueueDeleteOk], queue.delete-ok.
	QueueDeleteOkID MethodID = 50<<16 | 41
	// QueueUnbindID is the number of [QueueUnbind], queue.unbind.
	QueueUnbindID MethodID = 50<<16 | 50
	// QueueUnbindOkID is the number of [QueueUnbindOk], queue.unbind-ok.
	QueueUnbindOkID MethodID = 50<<16 | 51
	// BasicQosID is the number of [BasicQos], basic.qos.
	BasicQosID MethodID = 60<<16 | 10
	// BasicQosOkID is the number of [BasicQosOk], basic.qos-ok.
	BasicQosOkID MethodID = 60<<16 | 11
	// BasicConsumeID is the number of [BasicConsume], basic.consume.
	BasicConsumeID MethodID = 60<<16 | 20
	// BasicConsumeOkID is the number of [BasicConsumeOk], basic.consume-ok.
	BasicConsumeOkID MethodID = 60<<16 | 21
	// BasicCancelID is the number of [BasicCancel], basic.cancel.
	BasicCancelID MethodID = 60<<16 | 30
	// BasicCancelOkID is the number of [BasicCancelOk], basic.cancel-ok.
	BasicCancelOkID MethodID = 60<<16 | 31
	// BasicPublishID is the number of [BasicPublish], basic.publish.
	BasicPublishID MethodID = 60<<16 | 40
	// BasicReturnID is the number of [BasicReturn], basic.return.
	BasicReturnID MethodID = 60<<16 | 50
	// BasicDeliverID is the number of [BasicDeliver], basic.deliver.
	BasicDeliverID MethodID = 60<<16 | 60
	// BasicGetID is the number of [BasicGet], basic.get.
	BasicGetID MethodID = 60<<16 | 70
	// BasicGetOkID is the number of [BasicGetOk], basic.get-ok.
	BasicGetOkID MethodID = 60<<16 | 71
	// BasicGetEmptyID is the number of [BasicGetEmpty], basic.get-empty.
	BasicGetEmptyID MethodID = 60<<16 | 72
	// BasicAckID is the number of [BasicAck], basic.ack.
	BasicAckID MethodID = 60<<16 | 80
	// BasicRejectID is the number of [BasicReject], basic.reject.
	BasicRejectID MethodID = 60<<16 | 90
	// BasicRecoverAsyncID is the number of [BasicRecoverAsync], basic.recover-async.
	BasicRecoverAsyncID MethodID = 60<<16 | 100
	// BasicRecoverID is the number of [BasicRecover], basic.recover.
	BasicRecoverID MethodID = 60<<16 | 110
	// BasicRecoverOkID is the number of [BasicRecoverOk], basic.recover-ok.
	BasicRecoverOkID MethodID = 60<<16 | 111
	// BasicNackID is the number of [BasicNack], basic.nack.
	BasicNackID MethodID = 60<<16 | 120
	// TxSelectID is the number of [TxSelect], tx.select.
	TxSelectID MethodID = 90<<16 | 10
	// TxSelectOkID is the number of [TxSelectOk], tx.select-ok.
	TxSelectOkID MethodID = 90<<16 | 11
	// TxCommitID is the number of [TxCommit], tx.commit.
	TxCommitID MethodID = 90<<16 | 20
	// TxCommitOkID is the number of [TxCommitOk], tx.commit-ok.
	TxCommitOkID MethodID = 90<<16 | 21
	// TxRollbackID is the number of [TxRollback], tx.rollback.
	TxRollbackID MethodID = 90<<16 | 30
	// TxRollbackOkID is the number of [TxRollbackOk], tx.rollback-ok.
	TxRollbackOkID MethodID = 90<<16 | 31
	// ConfirmSelectID is the number of [ConfirmSelect], confirm.select.
	ConfirmSelectID MethodID = 85<<16 | 10
	// ConfirmSelectOkID is the number of [ConfirmSelectOk], confirm.select-ok.
	ConfirmSelectOkID MethodID = 85<<16 | 11
)

// info returns what is known of a method, nil when there is no such method.
func (id MethodID) info() *methodInfo {
	switch id {
	case ConnectionStartID:
		return &methodInfos[0]
	case ConnectionStartOkID:
		return &methodInfos[1]
	case ConnectionSecureID:
		return &methodInfos[2]
	case ConnectionSecureOkID:
		return &methodInfos[3]
	case ConnectionTuneID:
		return &methodInfos[4]
	case ConnectionTuneOkID:
		return &methodInfos[5]
	case ConnectionOpenID:
		return &methodInfos[6]
	case ConnectionOpenOkID:
		return &methodInfos[7]
	case ConnectionCloseID:
		return &methodInfos[8]
	case ConnectionCloseOkID:
		return &methodInfos[9]
	case ConnectionBlockedID:
		return &methodInfos[10]
	case ConnectionUnblockedID:
		return &methodInfos[11]
	case ConnectionUpdateSecretID:
		return &methodInfos[12]
	case ConnectionUpdateSecretOkID:
		return &methodInfos[13]
	case ChannelOpenID:
		return &methodInfos[14]
	case ChannelOpenOkID:
		return &methodInfos[15]
	case ChannelFlowID:
		return &methodInfos[16]
	case ChannelFlowOkID:
		return &methodInfos[17]
	case ChannelCloseID:
		return &methodInfos[18]
	case ChannelCloseOkID:
		return &methodInfos[19]
	case ExchangeDeclareID:
		return &methodInfos[20]
	case ExchangeDeclareOkID:
		return &methodInfos[21]
	case ExchangeDeleteID:
		return &methodInfos[22]
	case ExchangeDeleteOkID:
		return &methodInfos[23]
	case ExchangeBindID:
		return &methodInfos[24]
	case ExchangeBindOkID:
		return &methodInfos[25]
	case ExchangeUnbindID:
		return &methodInfos[26]
	case ExchangeUnbindOkID:
		return &methodInfos[27]
	case QueueDeclareID:
		return &methodInfos[28]
	case QueueDeclareOkID:
		return &methodInfos[29]
	case QueueBindID:
		return &methodInfos[30]
	case QueueBindOkID:
		return &methodInfos[31]
	case QueuePurgeID:
		return &methodInfos[32]
	case QueuePurgeOkID:
		return &methodInfos[33]
	case QueueDeleteID:
		return &methodInfos[34]
	case QueueDeleteOkID:
		return &methodInfos[35]
	case QueueUnbindID:
		return &methodInfos[36]
	case QueueUnbindOkID:
		return &methodInfos[37]
	case BasicQosID:
		return &methodInfos[38]
	case BasicQosOkID:
		return &methodInfos[39]
	case BasicConsumeID:
		return &methodInfos[40]
	case BasicConsumeOkID:
		return &methodInfos[41]
	case BasicCancelID:
		return &methodInfos[42]
	case BasicCancelOkID:
		return &methodInfos[43]
	case BasicPublishID:
		return &methodInfos[44]
	case BasicReturnID:
		return &methodInfos[45]
	case BasicDeliverID:
		return &methodInfos[46]
	case BasicGetID:
		return &methodInfos[47]
	case BasicGetOkID:
		return &methodInfos[48]
	case BasicGetEmptyID:
		return &methodInfos[49]
	case BasicAckID:
		return &methodInfos[50]
	case BasicRejectID:
		return &methodInfos[51]
	case BasicRecoverAsyncID:
		return &methodInfos[52]
	case BasicRecoverID:
		return &methodInfos[53]
	case BasicRecoverOkID:
		return &methodInfos[54]
	case BasicNackID:
		return &methodInfos[55]
	case TxSelectID:
		return &methodInfos[56]
	case TxSelectOkID:
		return &methodInfos[57]
	case TxCommitID:
		return &methodInfos[58]
	case TxCommitOkID:
		return &methodInfos[59]
	case TxRollbackID:
		return &methodInfos[60]
	case TxRollbackOkID:
		return &methodInfos[61]
	case ConfirmSelectID:
		return &methodInfos[62]
	case ConfirmSelectOkID:
		return &methodInfos[63]
	default:
		return nil
	}
}

// knownClass reports whether there is a class with this number.
func knownClass(id uint16) bool {
	switch id {
	case 10, 20, 40, 50, 60, 90, 85:
		return true
	default:
		return false
	}
}

// methodInfos is never written to.
var methodInfos = [...]methodInfo{
	{name: "connection.start", fields: []fieldInfo{
		{name: "version-major", kind: KindOctet},
		{name: "version-minor", kind: KindOctet},
		{name: "server-properties", kind: KindTable},
		{name: "mechanisms", kind: KindLongString},
		{name: "locales", kind: KindLongString},
	}},
	{name: "connection.start-ok", fields: []fieldInfo{
		{name: "client-properties", kind: KindTable},
		{name: "mechanism", kind: KindShortString},
		{name: "response", kind: KindLongString},
		{name: "locale", kind: KindShortString},
	}},
	{name: "connection.secure", fields: []fieldInfo{
		{name: "challenge", kind: KindLongString},
	}},
	{name: "connection.secure-ok", fields: []fieldInfo{
		{name: "response", kind: KindLongString},
	}},
	{name: "connection.tune", fields: []fieldInfo{
		{name: "channel-max", kind: KindShort},
		{name: "frame-max", kind: KindLong},
		{name: "heartbeat", kind: KindShort},
	}},
	{name: "connection.tune-ok", fields: []fieldInfo{
		{name: "channel-max", kind: KindShort},
		{name: "frame-max", kind: KindLong},
		{name: "heartbeat", kind: KindShort},
	}},
	{name: "connection.open", fields: []fieldInfo{
		{name: "virtual-host", kind: KindShortString},
		{name: "reserved-1", kind: KindShortString, reserved: true},
		{name: "reserved-2", kind: KindBit, reserved: true},
	}},
	{name: "connection.open-ok", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShortString, reserved: true},
	}},
	{name: "connection.close", fields: []fieldInfo{
		{name: "reply-code", kind: KindShort},
		{name: "reply-text", kind: KindShortString},
		{name: "class-id", kind: KindShort},
		{name: "method-id", kind: KindShort},
	}},
	{name: "connection.close-ok"},
	{name: "connection.blocked", fields: []fieldInfo{
		{name: "reason", kind: KindShortString},
	}},
	{name: "connection.unblocked"},
	{name: "connection.update-secret", fields: []fieldInfo{
		{name: "new-secret", kind: KindLongString},
		{name: "reason", kind: KindShortString},
	}},
	{name: "connection.update-secret-ok"},
	{name: "channel.open", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShortString, reserved: true},
	}},
	{name: "channel.open-ok", fields: []fieldInfo{
		{name: "reserved-1", kind: KindLongString, reserved: true},
	}},
	{name: "channel.flow", fields: []fieldInfo{
		{name: "active", kind: KindBit},
	}},
	{name: "channel.flow-ok", fields: []fieldInfo{
		{name: "active", kind: KindBit},
	}},
	{name: "channel.close", fields: []fieldInfo{
		{name: "reply-code", kind: KindShort},
		{name: "reply-text", kind: KindShortString},
		{name: "class-id", kind: KindShort},
		{name: "method-id", kind: KindShort},
	}},
	{name: "channel.close-ok"},
	{name: "exchange.declare", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "exchange", kind: KindShortString},
		{name: "type", kind: KindShortString},
		{name: "passive", kind: KindBit},
		{name: "durable", kind: KindBit, bit: 1},
		{name: "auto-delete", kind: KindBit, bit: 2},
		{name: "internal", kind: KindBit, bit: 3},
		{name: "nowait", kind: KindBit, bit: 4},
		{name: "arguments", kind: KindTable},
	}},
	{name: "exchange.declare-ok"},
	{name: "exchange.delete", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "exchange", kind: KindShortString},
		{name: "if-unused", kind: KindBit},
		{name: "nowait", kind: KindBit, bit: 1},
	}},
	{name: "exchange.delete-ok"},
	{name: "exchange.bind", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "destination", kind: KindShortString},
		{name: "source", kind: KindShortString},
		{name: "routing-key", kind: KindShortString},
		{name: "nowait", kind: KindBit},
		{name: "arguments", kind: KindTable},
	}},
	{name: "exchange.bind-ok"},
	{name: "exchange.unbind", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "destination", kind: KindShortString},
		{name: "source", kind: KindShortString},
		{name: "routing-key", kind: KindShortString},
		{name: "nowait", kind: KindBit},
		{name: "arguments", kind: KindTable},
	}},
	{name: "exchange.unbind-ok"},
	{name: "queue.declare", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "queue", kind: KindShortString},
		{name: "passive", kind: KindBit},
		{name: "durable", kind: KindBit, bit: 1},
		{name: "exclusive", kind: KindBit, bit: 2},
		{name: "auto-delete", kind: KindBit, bit: 3},
		{name: "nowait", kind: KindBit, bit: 4},
		{name: "arguments", kind: KindTable},
	}},
	{name: "queue.declare-ok", fields: []fieldInfo{
		{name: "queue", kind: KindShortString},
		{name: "message-count", kind: KindLong},
		{name: "consumer-count", kind: KindLong},
	}},
	{name: "queue.bind", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "queue", kind: KindShortString},
		{name: "exchange", kind: KindShortString},
		{name: "routing-key", kind: KindShortString},
		{name: "nowait", kind: KindBit},
		{name: "arguments", kind: KindTable},
	}},
	{name: "queue.bind-ok"},
	{name: "queue.purge", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "queue", kind: KindShortString},
		{name: "nowait", kind: KindBit},
	}},
	{name: "queue.purge-ok", fields: []fieldInfo{
		{name: "message-count", kind: KindLong},
	}},
	{name: "queue.delete", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "queue", kind: KindShortString},
		{name: "if-unused", kind: KindBit},
		{name: "if-empty", kind: KindBit, bit: 1},
		{name: "nowait", kind: KindBit, bit: 2},
	}},
	{name: "queue.delete-ok", fields: []fieldInfo{
		{name: "message-count", kind: KindLong},
	}},
	{name: "queue.unbind", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "queue", kind: KindShortString},
		{name: "exchange", kind: KindShortString},
		{name: "routing-key", kind: KindShortString},
		{name: "arguments", kind: KindTable},
	}},
	{name: "queue.unbind-ok"},
	{name: "basic.qos", fields: []fieldInfo{
		{name: "prefetch-size", kind: KindLong},
		{name: "prefetch-count", kind: KindShort},
		{name: "global", kind: KindBit},
	}},
	{name: "basic.qos-ok"},
	{name: "basic.consume", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "queue", kind: KindShortString},
		{name: "consumer-tag", kind: KindShortString},
		{name: "no-local", kind: KindBit},
		{name: "no-ack", kind: KindBit, bit: 1},
		{name: "exclusive", kind: KindBit, bit: 2},
		{name: "nowait", kind: KindBit, bit: 3},
		{name: "arguments", kind: KindTable},
	}},
	{name: "basic.consume-ok", fields: []fieldInfo{
		{name: "consumer-tag", kind: KindShortString},
	}},
	{name: "basic.cancel", fields: []fieldInfo{
		{name: "consumer-tag", kind: KindShortString},
		{name: "nowait", kind: KindBit},
	}},
	{name: "basic.cancel-ok", fields: []fieldInfo{
		{name: "consumer-tag", kind: KindShortString},
	}},
	{name: "basic.publish", content: true, fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "exchange", kind: KindShortString},
		{name: "routing-key", kind: KindShortString},
		{name: "mandatory", kind: KindBit},
		{name: "immediate", kind: KindBit, bit: 1},
	}},
	{name: "basic.return", content: true, fields: []fieldInfo{
		{name: "reply-code", kind: KindShort},
		{name: "reply-text", kind: KindShortString},
		{name: "exchange", kind: KindShortString},
		{name: "routing-key", kind: KindShortString},
	}},
	{name: "basic.deliver", content: true, fields: []fieldInfo{
		{name: "consumer-tag", kind: KindShortString},
		{name: "delivery-tag", kind: KindLongLong},
		{name: "redelivered", kind: KindBit},
		{name: "exchange", kind: KindShortString},
		{name: "routing-key", kind: KindShortString},
	}},
	{name: "basic.get", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShort, reserved: true},
		{name: "queue", kind: KindShortString},
		{name: "no-ack", kind: KindBit},
	}},
	{name: "basic.get-ok", content: true, fields: []fieldInfo{
		{name: "delivery-tag", kind: KindLongLong},
		{name: "redelivered", kind: KindBit},
		{name: "exchange", kind: KindShortString},
		{name: "routing-key", kind: KindShortString},
		{name: "message-count", kind: KindLong},
	}},
	{name: "basic.get-empty", fields: []fieldInfo{
		{name: "reserved-1", kind: KindShortString, reserved: true},
	}},
	{name: "basic.ack", fields: []fieldInfo{
		{name: "delivery-tag", kind: KindLongLong},
		{name: "multiple", kind: KindBit},
	}},
	{name: "basic.reject", fields: []fieldInfo{
		{name: "delivery-tag", kind: KindLongLong},
		{name: "requeue", kind: KindBit},
	}},
	{name: "basic.recover-async", fields: []fieldInfo{
		{name: "requeue", kind: KindBit},
	}},
	{name: "basic.recover", fields: []fieldInfo{
		{name: "requeue", kind: KindBit},
	}},
	{name: "basic.recover-ok"},
	{name: "basic.nack", fields: []fieldInfo{
		{name: "delivery-tag", kind: KindLongLong},
		{name: "multiple", kind: KindBit},
		{name: "requeue", kind: KindBit, bit: 1},
	}},
	{name: "tx.select"},
	{name: "tx.select-ok"},
	{name: "tx.commit"},
	{name: "tx.commit-ok"},
	{name: "tx.rollback"},
	{name: "tx.rollback-ok"},
	{name: "confirm.select", fields: []fieldInfo{
		{name: "nowait", kind: KindBit},
	}},
	{name: "confirm.select-ok"},
}

// NewMethod returns an owned method of this number with zero fields, nil when there is no such method.
func NewMethod(id MethodID) OwnedMethod {
	switch id {
	case ConnectionStartID:
		return new(ConnectionStart)
	case ConnectionStartOkID:
		return new(ConnectionStartOk)
	case ConnectionSecureID:
		return new(ConnectionSecure)
	case ConnectionSecureOkID:
		return new(ConnectionSecureOk)
	case ConnectionTuneID:
		return new(ConnectionTune)
	case ConnectionTuneOkID:
		return new(ConnectionTuneOk)
	case ConnectionOpenID:
		return new(ConnectionOpen)
	case ConnectionOpenOkID:
		return new(ConnectionOpenOk)
	case ConnectionCloseID:
		return new(ConnectionClose)
	case ConnectionCloseOkID:
		return new(ConnectionCloseOk)
	case ConnectionBlockedID:
		return new(ConnectionBlocked)
	case ConnectionUnblockedID:
		return new(ConnectionUnblocked)
	case ConnectionUpdateSecretID:
		return new(ConnectionUpdateSecret)
	case ConnectionUpdateSecretOkID:
		return new(ConnectionUpdateSecretOk)
	case ChannelOpenID:
		return new(ChannelOpen)
	case ChannelOpenOkID:
		return new(ChannelOpenOk)
	case ChannelFlowID:
		return new(ChannelFlow)
	case ChannelFlowOkID:
		return new(ChannelFlowOk)
	case ChannelCloseID:
		return new(ChannelClose)
	case ChannelCloseOkID:
		return new(ChannelCloseOk)
	case ExchangeDeclareID:
		return new(ExchangeDeclare)
	case ExchangeDeclareOkID:
		return new(ExchangeDeclareOk)
	case ExchangeDeleteID:
		return new(ExchangeDelete)
	case ExchangeDeleteOkID:
		return new(ExchangeDeleteOk)
	case ExchangeBindID:
		return new(ExchangeBind)
	case ExchangeBindOkID:
		return new(ExchangeBindOk)
	case ExchangeUnbindID:
		return new(ExchangeUnbind)
	case ExchangeUnbindOkID:
		return new(ExchangeUnbindOk)
	case QueueDeclareID:
		return new(QueueDeclare)
	case QueueDeclareOkID:
		return new(QueueDeclareOk)
	case QueueBindID:
		return new(QueueBind)
	case QueueBindOkID:
		return new(QueueBindOk)
	case QueuePurgeID:
		return new(QueuePurge)
	case QueuePurgeOkID:
		return new(QueuePurgeOk)
	case QueueDeleteID:
		return new(QueueDelete)
	case QueueDeleteOkID:
		return new(QueueDeleteOk)
	case QueueUnbindID:
		return new(QueueUnbind)
	case QueueUnbindOkID:
		return new(QueueUnbindOk)
	case BasicQosID:
		return new(BasicQos)
	case BasicQosOkID:
		return new(BasicQosOk)
	case BasicConsumeID:
		return new(BasicConsume)
	case BasicConsumeOkID:
		return new(BasicConsumeOk)
	case BasicCancelID:
		return new(BasicCancel)
	case BasicCancelOkID:
		return new(BasicCancelOk)
	case BasicPublishID:
		return new(BasicPublish)
	case BasicReturnID:
		return new(BasicReturn)
	case BasicDeliverID:
		return new(BasicDeliver)
	case BasicGetID:
		return new(BasicGet)
	case BasicGetOkID:
		return new(BasicGetOk)
	case BasicGetEmptyID:
		return new(BasicGetEmpty)
	case BasicAckID:
		return new(BasicAck)
	case BasicRejectID:
		return new(BasicReject)
	case BasicRecoverAsyncID:
		return new(BasicRecoverAsync)
	case BasicRecoverID:
		return new(BasicRecover)
	case BasicRecoverOkID:
		return new(BasicRecoverOk)
	case BasicNackID:
		return new(BasicNack)
	case TxSelectID:
		return new(TxSelect)
	case TxSelectOkID:
		return new(TxSelectOk)
	case TxCommitID:
		return new(TxCommit)
	case TxCommitOkID:
		return new(TxCommitOk)
	case TxRollbackID:
		return new(TxRollback)
	case TxRollbackOkID:
		return new(TxRollbackOk)
	case ConfirmSelectID:
		return new(ConfirmSelect)
	case ConfirmSelectOkID:
		return new(ConfirmSelectOk)
	default:
		return nil
	}
}

// methodViews has a view of every method.
type methodViews struct {
	connectionStart          ConnectionStartView
	connectionStartOk        ConnectionStartOkView
	connectionSecure         ConnectionSecureView
	connectionSecureOk       ConnectionSecureOkView
	connectionTune           ConnectionTune
	connectionTuneOk         ConnectionTuneOk
	connectionOpen           ConnectionOpenView
	connectionOpenOk         ConnectionOpenOk
	connectionClose          ConnectionCloseView
	connectionCloseOk        ConnectionCloseOk
	connectionBlocked        ConnectionBlockedView
	connectionUnblocked      ConnectionUnblocked
	connectionUpdateSecret   ConnectionUpdateSecretView
	connectionUpdateSecretOk ConnectionUpdateSecretOk
	channelOpen              ChannelOpen
	channelOpenOk            ChannelOpenOk
	channelFlow              ChannelFlow
	channelFlowOk            ChannelFlowOk
	channelClose             ChannelCloseView
	channelCloseOk           ChannelCloseOk
	exchangeDeclare          ExchangeDeclareView
	exchangeDeclareOk        ExchangeDeclareOk
	exchangeDelete           ExchangeDeleteView
	exchangeDeleteOk         ExchangeDeleteOk
	exchangeBind             ExchangeBindView
	exchangeBindOk           ExchangeBindOk
	exchangeUnbind           ExchangeUnbindView
	exchangeUnbindOk         ExchangeUnbindOk
	queueDeclare             QueueDeclareView
	queueDeclareOk           QueueDeclareOkView
	queueBind                QueueBindView
	queueBindOk              QueueBindOk
	queuePurge               QueuePurgeView
	queuePurgeOk             QueuePurgeOk
	queueDelete              QueueDeleteView
	queueDeleteOk            QueueDeleteOk
	queueUnbind              QueueUnbindView
	queueUnbindOk            QueueUnbindOk
	basicQos                 BasicQos
	basicQosOk               BasicQosOk
	basicConsume             BasicConsumeView
	basicConsumeOk           BasicConsumeOkView
	basicCancel              BasicCancelView
	basicCancelOk            BasicCancelOkView
	basicPublish             BasicPublishView
	basicReturn              BasicReturnView
	basicDeliver             BasicDeliverView
	basicGet                 BasicGetView
	basicGetOk               BasicGetOkView
	basicGetEmpty            BasicGetEmpty
	basicAck                 BasicAck
	basicReject              BasicReject
	basicRecoverAsync        BasicRecoverAsync
	basicRecover             BasicRecover
	basicRecoverOk           BasicRecoverOk
	basicNack                BasicNack
	txSelect                 TxSelect
	txSelectOk               TxSelectOk
	txCommit                 TxCommit
	txCommitOk               TxCommitOk
	txRollback               TxRollback
	txRollbackOk             TxRollbackOk
	confirmSelect            ConfirmSelect
	confirmSelectOk          ConfirmSelectOk
}

// view returns that of the method with this number, nil when there is no such method.
func (v *methodViews) view(id MethodID) MethodView {
	switch id {
	case ConnectionStartID:
		return &v.connectionStart
	case ConnectionStartOkID:
		return &v.connectionStartOk
	case ConnectionSecureID:
		return &v.connectionSecure
	case ConnectionSecureOkID:
		return &v.connectionSecureOk
	case ConnectionTuneID:
		return &v.connectionTune
	case ConnectionTuneOkID:
		return &v.connectionTuneOk
	case ConnectionOpenID:
		return &v.connectionOpen
	case ConnectionOpenOkID:
		return &v.connectionOpenOk
	case ConnectionCloseID:
		return &v.connectionClose
	case ConnectionCloseOkID:
		return &v.connectionCloseOk
	case ConnectionBlockedID:
		return &v.connectionBlocked
	case ConnectionUnblockedID:
		return &v.connectionUnblocked
	case ConnectionUpdateSecretID:
		return &v.connectionUpdateSecret
	case ConnectionUpdateSecretOkID:
		return &v.connectionUpdateSecretOk
	case ChannelOpenID:
		return &v.channelOpen
	case ChannelOpenOkID:
		return &v.channelOpenOk
	case ChannelFlowID:
		return &v.channelFlow
	case ChannelFlowOkID:
		return &v.channelFlowOk
	case ChannelCloseID:
		return &v.channelClose
	case ChannelCloseOkID:
		return &v.channelCloseOk
	case ExchangeDeclareID:
		return &v.exchangeDeclare
	case ExchangeDeclareOkID:
		return &v.exchangeDeclareOk
	case ExchangeDeleteID:
		return &v.exchangeDelete
	case ExchangeDeleteOkID:
		return &v.exchangeDeleteOk
	case ExchangeBindID:
		return &v.exchangeBind
	case ExchangeBindOkID:
		return &v.exchangeBindOk
	case ExchangeUnbindID:
		return &v.exchangeUnbind
	case ExchangeUnbindOkID:
		return &v.exchangeUnbindOk
	case QueueDeclareID:
		return &v.queueDeclare
	case QueueDeclareOkID:
		return &v.queueDeclareOk
	case QueueBindID:
		return &v.queueBind
	case QueueBindOkID:
		return &v.queueBindOk
	case QueuePurgeID:
		return &v.queuePurge
	case QueuePurgeOkID:
		return &v.queuePurgeOk
	case QueueDeleteID:
		return &v.queueDelete
	case QueueDeleteOkID:
		return &v.queueDeleteOk
	case QueueUnbindID:
		return &v.queueUnbind
	case QueueUnbindOkID:
		return &v.queueUnbindOk
	case BasicQosID:
		return &v.basicQos
	case BasicQosOkID:
		return &v.basicQosOk
	case BasicConsumeID:
		return &v.basicConsume
	case BasicConsumeOkID:
		return &v.basicConsumeOk
	case BasicCancelID:
		return &v.basicCancel
	case BasicCancelOkID:
		return &v.basicCancelOk
	case BasicPublishID:
		return &v.basicPublish
	case BasicReturnID:
		return &v.basicReturn
	case BasicDeliverID:
		return &v.basicDeliver
	case BasicGetID:
		return &v.basicGet
	case BasicGetOkID:
		return &v.basicGetOk
	case BasicGetEmptyID:
		return &v.basicGetEmpty
	case BasicAckID:
		return &v.basicAck
	case BasicRejectID:
		return &v.basicReject
	case BasicRecoverAsyncID:
		return &v.basicRecoverAsync
	case BasicRecoverID:
		return &v.basicRecover
	case BasicRecoverOkID:
		return &v.basicRecoverOk
	case BasicNackID:
		return &v.basicNack
	case TxSelectID:
		return &v.txSelect
	case TxSelectOkID:
		return &v.txSelectOk
	case TxCommitID:
		return &v.txCommit
	case TxCommitOkID:
		return &v.txCommitOk
	case TxRollbackID:
		return &v.txRollback
	case TxRollbackOkID:
		return &v.txRollbackOk
	case ConfirmSelectID:
		return &v.confirmSelect
	case ConfirmSelectOkID:
		return &v.confirmSelectOk
	default:
		return nil
	}
}
