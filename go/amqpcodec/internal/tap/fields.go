package tap

import "courser/amqpcodec"

// answers are the methods that a method is answered with.
var answers = map[amqpcodec.MethodID][]amqpcodec.MethodID{
	amqpcodec.ConnectionStartID:        {amqpcodec.ConnectionStartOkID},
	amqpcodec.ConnectionStartOkID:      {amqpcodec.ConnectionTuneID, amqpcodec.ConnectionSecureID},
	amqpcodec.ConnectionSecureID:       {amqpcodec.ConnectionSecureOkID},
	amqpcodec.ConnectionSecureOkID:     {amqpcodec.ConnectionTuneID, amqpcodec.ConnectionSecureID},
	amqpcodec.ConnectionTuneID:         {amqpcodec.ConnectionTuneOkID},
	amqpcodec.ConnectionOpenID:         {amqpcodec.ConnectionOpenOkID},
	amqpcodec.ConnectionCloseID:        {amqpcodec.ConnectionCloseOkID},
	amqpcodec.ConnectionUpdateSecretID: {amqpcodec.ConnectionUpdateSecretOkID},
	amqpcodec.ChannelOpenID:            {amqpcodec.ChannelOpenOkID},
	amqpcodec.ChannelFlowID:            {amqpcodec.ChannelFlowOkID},
	amqpcodec.ChannelCloseID:           {amqpcodec.ChannelCloseOkID},
	amqpcodec.ExchangeDeclareID:        {amqpcodec.ExchangeDeclareOkID},
	amqpcodec.ExchangeDeleteID:         {amqpcodec.ExchangeDeleteOkID},
	amqpcodec.ExchangeBindID:           {amqpcodec.ExchangeBindOkID},
	amqpcodec.ExchangeUnbindID:         {amqpcodec.ExchangeUnbindOkID},
	amqpcodec.QueueDeclareID:           {amqpcodec.QueueDeclareOkID},
	amqpcodec.QueueBindID:              {amqpcodec.QueueBindOkID},
	amqpcodec.QueueUnbindID:            {amqpcodec.QueueUnbindOkID},
	amqpcodec.QueuePurgeID:             {amqpcodec.QueuePurgeOkID},
	amqpcodec.QueueDeleteID:            {amqpcodec.QueueDeleteOkID},
	amqpcodec.BasicQosID:               {amqpcodec.BasicQosOkID},
	amqpcodec.BasicConsumeID:           {amqpcodec.BasicConsumeOkID},
	amqpcodec.BasicCancelID:            {amqpcodec.BasicCancelOkID},
	amqpcodec.BasicGetID:               {amqpcodec.BasicGetOkID, amqpcodec.BasicGetEmptyID},
	amqpcodec.BasicRecoverID:           {amqpcodec.BasicRecoverOkID},
	amqpcodec.TxSelectID:               {amqpcodec.TxSelectOkID},
	amqpcodec.TxCommitID:               {amqpcodec.TxCommitOkID},
	amqpcodec.TxRollbackID:             {amqpcodec.TxRollbackOkID},
	amqpcodec.ConfirmSelectID:          {amqpcodec.ConfirmSelectOkID},
}

// fields are what a method says of the names, tags and bits that matter here.
type fields struct {
	queue, exchange, source, destination, key, consumerTag string
	hasQueue, hasExchange, hasKey                          bool
	deliveryTag                                            uint64
	multiple, noWait, noAck                                bool
}

// readFields reads as many fields of a method as there are: it may be cut short, or malformed.
func readFields(payload []byte) (said fields) {
	for field, err := range amqpcodec.ParseFields(payload) {
		if err != nil {
			break
		}
		switch field.Name {
		case "queue":
			said.queue, said.hasQueue = string(field.Bytes()), true
		case "exchange":
			said.exchange, said.hasExchange = string(field.Bytes()), true
		case "routing-key":
			said.key, said.hasKey = string(field.Bytes()), true
		case "source":
			said.source = string(field.Bytes())
		case "destination":
			said.destination = string(field.Bytes())
		case "consumer-tag":
			said.consumerTag = string(field.Bytes())
		case "delivery-tag":
			said.deliveryTag = field.Uint64()
		case "multiple":
			said.multiple = field.Bool()
		case "nowait":
			said.noWait = field.Bool()
		case "no-ack":
			said.noAck = field.Bool()
		}
	}
	return said
}
