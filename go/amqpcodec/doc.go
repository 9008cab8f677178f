// Package amqpcodec reads and writes AMQP 0-9-1 with RabbitMQ's additions: frames, all methods, content headers with
// their properties, and field tables. It is for proxies, test tools and servers: it knows the bytes, not the
// conversation, and does no I/O but in [Reader] and [Writer]. It needs nothing but the standard library.
//
// # Views and owned values
//
// What is read comes in one of two forms, and the name says which:
//
//   - A view aliases the bytes it was read from and costs no allocation: [ParseFrame], [Reader.Next], the types whose
//     name ends in View ([BasicDeliverView], [TableView], [PropertiesView]), [RawProperties], [Value] and [Entry]. A
//     view is good as long as those bytes are not written to; a frame of a [Reader] until its next call.
//   - An owned value shares nothing with the input: the types without View ([BasicDeliver], [Properties],
//     [ContentHeader]), everything that has an UnmarshalBinary, and [TableView.Map], which gives map[string]any.
//
// Methods without strings or tables, such as [BasicAck], are both at once and come as one type. A view turns into the
// owned form by its Owned method.
//
// # Writing
//
// Whatever can be written has AppendBinary (encoding.BinaryAppender), which appends to a buffer that the caller lends
// and allocates only when that is too small. Methods and content headers also have AppendFrame, for a whole frame. A
// value can be impossible to write: a short string holds 255 bytes at most, a map may hold a type that the protocol
// lacks. That is an [EncodeError], and the buffer is then returned as it was. AppendTo is the same without a second
// result, for values that are known to be fine; it panics where AppendBinary fails.
//
// # Bad input
//
// Any input gives a value or a [DecodeError], which holds an offset and, for [errors.Is], a cause. No length is trusted
// that the input does not hold, tables nest at most [MaxNesting] deep, and a [Reader] holds no more than one frame of
// the agreed size beyond its buffer.
//
// There is no global state. Separate values may be used concurrently; one value needs a lock like any other, except
// that views may be read by many at once.
package amqpcodec
