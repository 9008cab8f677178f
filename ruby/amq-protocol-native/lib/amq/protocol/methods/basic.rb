# frozen_string_literal: true

# Generated from spec/amqp-0-9-1.toml by `cargo run -p courser-codegen`; not to be edited.

module AMQ
  module Protocol
    # Publishing, consuming and acknowledging messages.
    class Basic < Protocol::Class
      @name = "basic"
      @method_id = 60

      # Properties of a message in the order of the wire:
      # - `content_type` (String): MIME type of the body.
      # - `content_encoding` (String): MIME encoding of the body.
      # - `headers` (Hash): The application's own headers.
      # - `delivery_mode` (Integer): 1 is transient, 2 is persistent.
      # - `priority` (Integer): Priority of the message, higher is more urgent.
      # - `correlation_id` (String): What this message answers.
      # - `reply_to` (String): Where answers go, usually a queue.
      # - `expiration` (String): Time to live in milliseconds, as text.
      # - `message_id` (String): The application's name for the message.
      # - `timestamp` (Time): When the message was made, in seconds since 1970.
      # - `type` (String): The application's kind of message.
      # - `user_id` (String): The user who published it; the server checks it.
      # - `app_id` (String): The application that published it.
      # - `cluster_id` (String): Of no use any more; kept for old clients.
      PROPERTIES = %i[
        content_type
        content_encoding
        headers
        delivery_mode
        priority
        correlation_id
        reply_to
        expiration
        message_id
        timestamp
        type
        user_id
        app_id
        cluster_id
      ].freeze

      # The name of each property by its flag.
      DECODE_PROPERTIES = {
        0x8000 => :content_type,
        0x4000 => :content_encoding,
        0x2000 => :headers,
        0x1000 => :delivery_mode,
        0x0800 => :priority,
        0x0400 => :correlation_id,
        0x0200 => :reply_to,
        0x0100 => :expiration,
        0x0080 => :message_id,
        0x0040 => :timestamp,
        0x0020 => :type,
        0x0010 => :user_id,
        0x0008 => :app_id,
        0x0004 => :cluster_id
      }.freeze

      # How each property lies on the wire, by its flag.
      DECODE_PROPERTIES_TYPE = {
        0x8000 => :shortstr,
        0x4000 => :shortstr,
        0x2000 => :table,
        0x1000 => :octet,
        0x0800 => :octet,
        0x0400 => :shortstr,
        0x0200 => :shortstr,
        0x0100 => :shortstr,
        0x0080 => :shortstr,
        0x0040 => :timestamp,
        0x0020 => :shortstr,
        0x0010 => :shortstr,
        0x0008 => :shortstr,
        0x0004 => :shortstr
      }.freeze

      # The flags in the order of the wire.
      DECODE_PROPERTIES_KEYS = DECODE_PROPERTIES.keys.freeze

      # @!method self.encode_content_type(value)
      # @return [Array(Integer, Integer, String)] 0, 0x8000, and the value's bytes.

      # @!method self.encode_content_encoding(value)
      # @return [Array(Integer, Integer, String)] 1, 0x4000, and the value's bytes.

      # @!method self.encode_headers(value)
      # @return [Array(Integer, Integer, String)] 2, 0x2000, and the value's bytes.

      # @!method self.encode_delivery_mode(value)
      # @return [Array(Integer, Integer, String)] 3, 0x1000, and the value's bytes.

      # @!method self.encode_priority(value)
      # @return [Array(Integer, Integer, String)] 4, 0x0800, and the value's bytes.

      # @!method self.encode_correlation_id(value)
      # @return [Array(Integer, Integer, String)] 5, 0x0400, and the value's bytes.

      # @!method self.encode_reply_to(value)
      # @return [Array(Integer, Integer, String)] 6, 0x0200, and the value's bytes.

      # @!method self.encode_expiration(value)
      # @return [Array(Integer, Integer, String)] 7, 0x0100, and the value's bytes.

      # @!method self.encode_message_id(value)
      # @return [Array(Integer, Integer, String)] 8, 0x0080, and the value's bytes.

      # @!method self.encode_timestamp(value)
      # @return [Array(Integer, Integer, String)] 9, 0x0040, and the value's bytes.

      # @!method self.encode_type(value)
      # @return [Array(Integer, Integer, String)] 10, 0x0020, and the value's bytes.

      # @!method self.encode_user_id(value)
      # @return [Array(Integer, Integer, String)] 11, 0x0010, and the value's bytes.

      # @!method self.encode_app_id(value)
      # @return [Array(Integer, Integer, String)] 12, 0x0008, and the value's bytes.

      # @!method self.encode_cluster_id(value)
      # @return [Array(Integer, Integer, String)] 13, 0x0004, and the value's bytes.

      Native.define_properties(self)

      # Limits how much is delivered ahead of acknowledgements.
      #
      # Sent by clients.
      class Qos < Protocol::Method
        @name = "basic.qos"
        @method_id = 10
        @index = 0x003C000A

        # @!method self.encode(channel, prefetch_size, prefetch_count, global)
        # @param channel [Integer] Number of the channel.
        # @param prefetch_size [Integer] Limit in bytes; 0 is none.
        # @param prefetch_count [Integer] Limit in messages; 0 is none.
        # @param global [Boolean] One limit for the channel (true) or one for each consumer made
        # from now on (false).
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 10)
      end

      # The limits hold.
      #
      # Sent by servers.
      class QosOk < Protocol::Method
        @name = "basic.qos-ok"
        @method_id = 11
        @index = 0x003C000B

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [QosOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 11)
      end

      # Starts a consumer on a queue.
      #
      # Sent by clients.
      class Consume < Protocol::Method
        @name = "basic.consume"
        @method_id = 20
        @index = 0x003C0014

        # @!method self.encode(channel, queue, consumer_tag, no_local, no_ack, exclusive, nowait, arguments)
        # @param channel [Integer] Number of the channel.
        # @param queue [String, #to_s] Name of a queue; empty is the one that this channel declared
        # last.
        # @param consumer_tag [String, #to_s] Name of the consumer; empty asks the server to make
        # one up.
        # @param no_local [Boolean] Leave out what was published on this same connection.
        # @param no_ack [Boolean] Deliveries count as acknowledged when they are sent.
        # @param exclusive [Boolean] No other consumer on this queue.
        # @param nowait [Boolean] Send no reply.
        # @param arguments [Hash, nil] Further arguments, by name.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 20)
      end

      # The consumer runs.
      #
      # Sent by servers.
      class ConsumeOk < Protocol::Method
        @name = "basic.consume-ok"
        @method_id = 21
        @index = 0x003C0015

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [ConsumeOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] consumer_tag
        # @return [String] Name of the consumer, also when the server made it up.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 21)
      end

      # Ends a consumer; from the server: its queue is gone.
      #
      # Sent by both sides.
      class Cancel < Protocol::Method
        @name = "basic.cancel"
        @method_id = 30
        @index = 0x003C001E

        # @!method self.encode(channel, consumer_tag, nowait)
        # @param channel [Integer] Number of the channel.
        # @param consumer_tag [String, #to_s] Name of a consumer, unique within its channel.
        # @param nowait [Boolean] Send no reply.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Cancel]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] consumer_tag
        # @return [String] Name of a consumer, unique within its channel.

        # @!attribute [r] nowait
        # @return [Boolean] Send no reply.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 30)
      end

      # The consumer has ended.
      #
      # Sent by both sides.
      class CancelOk < Protocol::Method
        @name = "basic.cancel-ok"
        @method_id = 31
        @index = 0x003C001F

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [CancelOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] consumer_tag
        # @return [String] Name of a consumer, unique within its channel.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 31)
      end

      # Sends a message to an exchange.
      #
      # Sent by clients, with a content behind it.
      class Publish < Protocol::Method
        @name = "basic.publish"
        @method_id = 40
        @index = 0x003C0028

        # @!method self.encode(channel, payload, user_headers, exchange, routing_key, mandatory, immediate, frame_size)
        # @param channel [Integer] Number of the channel.
        # @param payload [String] The body.
        # @param user_headers [Hash] Properties by name ({Basic::PROPERTIES}); other keys are not
        # looked at.
        # @param exchange [String, #to_s] Name of the exchange; empty is the default exchange.
        # @param routing_key [String, #to_s] What the exchange routes by.
        # @param mandatory [Boolean] Return the message when no queue takes it.
        # @param immediate [Boolean] Return the message when no consumer takes it at once.
        # @param frame_size [Integer] Bytes that a frame may have, header and end included.
        # @return [Array<Frame>] The method, the content header, and the body in as many frames as
        # it needs.
        # @raise [RuntimeError] When there are no properties.

        # @!method self.encode_to_string(channel, payload, user_headers, exchange, routing_key, mandatory, immediate, frame_size)
        # The same frames as one String, ready to be written. An addition to the interface of
        # `amq-protocol`:
        # it copies the body once and makes one object.
        # @param channel [Integer] Number of the channel.
        # @param payload [String] The body.
        # @param user_headers [Hash] Properties by name ({Basic::PROPERTIES}); other keys are not
        # looked at.
        # @param exchange [String, #to_s] Name of the exchange; empty is the default exchange.
        # @param routing_key [String, #to_s] What the exchange routes by.
        # @param mandatory [Boolean] Return the message when no queue takes it.
        # @param immediate [Boolean] Return the message when no consumer takes it at once.
        # @param frame_size [Integer] Bytes that a frame may have, header and end included.
        # @return [String] A new binary String.
        # @raise [RuntimeError] When there are no properties.

        # @return [Boolean] #true
        def self.has_content?
          true
        end

        Native.define_method_class(self, 60, 40)
      end

      # Gives back a message that could not be routed.
      #
      # Sent by servers, with a content behind it.
      class Return < Protocol::Method
        @name = "basic.return"
        @method_id = 50
        @index = 0x003C0032

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Return]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] reply_code
        # @return [Integer] One of the reply codes.

        # @!attribute [r] reply_text
        # @return [String] The reason, for people.

        # @!attribute [r] exchange
        # @return [String] Name of an exchange; empty is the default exchange.

        # @!attribute [r] routing_key
        # @return [String] What the exchange routes by.

        # @return [Boolean] #true
        def self.has_content?
          true
        end

        Native.define_method_class(self, 60, 50)
      end

      # Brings a message to a consumer.
      #
      # Sent by servers, with a content behind it.
      class Deliver < Protocol::Method
        @name = "basic.deliver"
        @method_id = 60
        @index = 0x003C003C

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Deliver]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] consumer_tag
        # @return [String] Name of a consumer, unique within its channel.

        # @!attribute [r] delivery_tag
        # @return [Integer] Number of a delivery (or of a confirmed publish) within its channel,
        # from 1.

        # @!attribute [r] redelivered
        # @return [Boolean] The message may have been delivered before.

        # @!attribute [r] exchange
        # @return [String] The exchange that the message was published to.

        # @!attribute [r] routing_key
        # @return [String] The routing key that the message was published with.

        # @return [Boolean] #true
        def self.has_content?
          true
        end

        Native.define_method_class(self, 60, 60)
      end

      # Asks for one message of a queue.
      #
      # Sent by clients.
      class Get < Protocol::Method
        @name = "basic.get"
        @method_id = 70
        @index = 0x003C0046

        # @!method self.encode(channel, queue, no_ack)
        # @param channel [Integer] Number of the channel.
        # @param queue [String, #to_s] Name of a queue; empty is the one that this channel declared
        # last.
        # @param no_ack [Boolean] Deliveries count as acknowledged when they are sent.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 70)
      end

      # Brings the message that was asked for.
      #
      # Sent by servers, with a content behind it.
      class GetOk < Protocol::Method
        @name = "basic.get-ok"
        @method_id = 71
        @index = 0x003C0047

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [GetOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] delivery_tag
        # @return [Integer] Number of a delivery (or of a confirmed publish) within its channel,
        # from 1.

        # @!attribute [r] redelivered
        # @return [Boolean] The message may have been delivered before.

        # @!attribute [r] exchange
        # @return [String] The exchange that the message was published to.

        # @!attribute [r] routing_key
        # @return [String] The routing key that the message was published with.

        # @!attribute [r] message_count
        # @return [Integer] Number of messages left in the queue.

        # @return [Boolean] #true
        def self.has_content?
          true
        end

        Native.define_method_class(self, 60, 71)
      end

      # The queue has no message.
      #
      # Sent by servers.
      class GetEmpty < Protocol::Method
        @name = "basic.get-empty"
        @method_id = 72
        @index = 0x003C0048

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [GetEmpty]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] cluster_id
        # @return [String] Without a meaning; kept for old programs.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 72)
      end

      # Acknowledges deliveries; from the server: confirms publishes.
      #
      # Sent by both sides.
      class Ack < Protocol::Method
        @name = "basic.ack"
        @method_id = 80
        @index = 0x003C0050

        # @!method self.encode(channel, delivery_tag, multiple)
        # @param channel [Integer] Number of the channel.
        # @param delivery_tag [Integer] Number of a delivery (or of a confirmed publish) within its
        # channel, from 1.
        # @param multiple [Boolean] All up to and with this tag; with tag 0 all there are.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Ack]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] delivery_tag
        # @return [Integer] Number of a delivery (or of a confirmed publish) within its channel,
        # from 1.

        # @!attribute [r] multiple
        # @return [Boolean] All up to and with this tag; with tag 0 all there are.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 80)
      end

      # Refuses a delivery.
      #
      # Sent by clients.
      class Reject < Protocol::Method
        @name = "basic.reject"
        @method_id = 90
        @index = 0x003C005A

        # @!method self.encode(channel, delivery_tag, requeue)
        # @param channel [Integer] Number of the channel.
        # @param delivery_tag [Integer] Number of a delivery (or of a confirmed publish) within its
        # channel, from 1.
        # @param requeue [Boolean] Put the message back into its queue.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 90)
      end

      # Asks for all unacknowledged messages again, without a reply.
      #
      # Sent by clients.
      class RecoverAsync < Protocol::Method
        @name = "basic.recover-async"
        @method_id = 100
        @index = 0x003C0064

        # @!method self.encode(channel, requeue)
        # @param channel [Integer] Number of the channel.
        # @param requeue [Boolean] Put the messages back into their queues.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 100)
      end

      # Asks for all unacknowledged messages again.
      #
      # Sent by clients.
      class Recover < Protocol::Method
        @name = "basic.recover"
        @method_id = 110
        @index = 0x003C006E

        # @!method self.encode(channel, requeue)
        # @param channel [Integer] Number of the channel.
        # @param requeue [Boolean] Put the messages back into their queues.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 110)
      end

      # The messages are on their way.
      #
      # Sent by servers.
      class RecoverOk < Protocol::Method
        @name = "basic.recover-ok"
        @method_id = 111
        @index = 0x003C006F

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [RecoverOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 111)
      end

      # Refuses deliveries; from the server: publishes that it could not take.
      #
      # Sent by both sides. An addition of RabbitMQ's.
      class Nack < Protocol::Method
        @name = "basic.nack"
        @method_id = 120
        @index = 0x003C0078

        # @!method self.encode(channel, delivery_tag, multiple, requeue)
        # @param channel [Integer] Number of the channel.
        # @param delivery_tag [Integer] Number of a delivery (or of a confirmed publish) within its
        # channel, from 1.
        # @param multiple [Boolean] All up to and with this tag; with tag 0 all there are.
        # @param requeue [Boolean] Put the messages back into their queues.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Nack]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] delivery_tag
        # @return [Integer] Number of a delivery (or of a confirmed publish) within its channel,
        # from 1.

        # @!attribute [r] multiple
        # @return [Boolean] All up to and with this tag; with tag 0 all there are.

        # @!attribute [r] requeue
        # @return [Boolean] Put the messages back into their queues.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 60, 120)
      end
    end
  end
end
