# frozen_string_literal: true

# Generated from spec/amqp-0-9-1.toml by `cargo run -p courser-codegen`; not to be edited.

module AMQ
  module Protocol
    # Making, binding, purging and deleting queues.
    class Queue < Protocol::Class
      @name = "queue"
      @method_id = 50

      # Makes a queue, or checks that it is there as described.
      #
      # Sent by clients.
      class Declare < Protocol::Method
        @name = "queue.declare"
        @method_id = 10
        @index = 0x0032000A

        # @!method self.encode(channel, queue, passive, durable, exclusive, auto_delete, nowait, arguments)
        # @param channel [Integer] Number of the channel.
        # @param queue [String, #to_s] Name of the queue; empty asks the server to make one up.
        # @param passive [Boolean] Only check that the queue exists.
        # @param durable [Boolean] The queue survives a restart of the server.
        # @param exclusive [Boolean] The queue belongs to this connection and goes with it.
        # @param auto_delete [Boolean] The queue goes when its last consumer has gone.
        # @param nowait [Boolean] Send no reply.
        # @param arguments [Hash, nil] Further arguments, by name.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 50, 10)
      end

      # The queue is there.
      #
      # Sent by servers.
      class DeclareOk < Protocol::Method
        @name = "queue.declare-ok"
        @method_id = 11
        @index = 0x0032000B

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [DeclareOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] queue
        # @return [String] Name of the queue, also when the server made it up.

        # @!attribute [r] message_count
        # @return [Integer] Number of messages ready in the queue.

        # @!attribute [r] consumer_count
        # @return [Integer] Number of the queue's consumers.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 50, 11)
      end

      # Binds a queue to an exchange.
      #
      # Sent by clients.
      class Bind < Protocol::Method
        @name = "queue.bind"
        @method_id = 20
        @index = 0x00320014

        # @!method self.encode(channel, queue, exchange, routing_key, nowait, arguments)
        # @param channel [Integer] Number of the channel.
        # @param queue [String, #to_s] Name of a queue; empty is the one that this channel declared
        # last.
        # @param exchange [String, #to_s] Name of an exchange; empty is the default exchange.
        # @param routing_key [String, #to_s] What the exchange routes by.
        # @param nowait [Boolean] Send no reply.
        # @param arguments [Hash, nil] Further arguments, by name.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 50, 20)
      end

      # The queue is bound.
      #
      # Sent by servers.
      class BindOk < Protocol::Method
        @name = "queue.bind-ok"
        @method_id = 21
        @index = 0x00320015

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [BindOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 50, 21)
      end

      # Removes all messages that are ready in a queue.
      #
      # Sent by clients.
      class Purge < Protocol::Method
        @name = "queue.purge"
        @method_id = 30
        @index = 0x0032001E

        # @!method self.encode(channel, queue, nowait)
        # @param channel [Integer] Number of the channel.
        # @param queue [String, #to_s] Name of a queue; empty is the one that this channel declared
        # last.
        # @param nowait [Boolean] Send no reply.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 50, 30)
      end

      # The messages are gone.
      #
      # Sent by servers.
      class PurgeOk < Protocol::Method
        @name = "queue.purge-ok"
        @method_id = 31
        @index = 0x0032001F

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [PurgeOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] message_count
        # @return [Integer] Number of messages that were removed.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 50, 31)
      end

      # Deletes a queue with its messages, bindings and consumers.
      #
      # Sent by clients.
      class Delete < Protocol::Method
        @name = "queue.delete"
        @method_id = 40
        @index = 0x00320028

        # @!method self.encode(channel, queue, if_unused, if_empty, nowait)
        # @param channel [Integer] Number of the channel.
        # @param queue [String, #to_s] Name of a queue; empty is the one that this channel declared
        # last.
        # @param if_unused [Boolean] Only when it has no consumers.
        # @param if_empty [Boolean] Only when it has no messages.
        # @param nowait [Boolean] Send no reply.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 50, 40)
      end

      # The queue is gone.
      #
      # Sent by servers.
      class DeleteOk < Protocol::Method
        @name = "queue.delete-ok"
        @method_id = 41
        @index = 0x00320029

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [DeleteOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] message_count
        # @return [Integer] Number of messages that went with it.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 50, 41)
      end

      # Takes a queue's binding away.
      #
      # Sent by clients.
      class Unbind < Protocol::Method
        @name = "queue.unbind"
        @method_id = 50
        @index = 0x00320032

        # @!method self.encode(channel, queue, exchange, routing_key, arguments)
        # @param channel [Integer] Number of the channel.
        # @param queue [String, #to_s] Name of a queue; empty is the one that this channel declared
        # last.
        # @param exchange [String, #to_s] Name of an exchange; empty is the default exchange.
        # @param routing_key [String, #to_s] What the exchange routes by.
        # @param arguments [Hash, nil] Further arguments, by name.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 50, 50)
      end

      # The binding is gone.
      #
      # Sent by servers.
      class UnbindOk < Protocol::Method
        @name = "queue.unbind-ok"
        @method_id = 51
        @index = 0x00320033

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [UnbindOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 50, 51)
      end
    end
  end
end
