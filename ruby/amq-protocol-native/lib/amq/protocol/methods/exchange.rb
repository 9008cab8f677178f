# frozen_string_literal: true

# Generated from spec/amqp-0-9-1.toml by `cargo run -p courser-codegen`; not to be edited.

module AMQ
  module Protocol
    # Making, binding and deleting exchanges.
    class Exchange < Protocol::Class
      @name = "exchange"
      @method_id = 40

      # Makes an exchange, or checks that it is there as described.
      #
      # Sent by clients.
      class Declare < Protocol::Method
        @name = "exchange.declare"
        @method_id = 10
        @index = 0x0028000A

        # @!method self.encode(channel, exchange, type, passive, durable, auto_delete, internal, nowait, arguments)
        # @param channel [Integer] Number of the channel.
        # @param exchange [String, #to_s] Name of an exchange; empty is the default exchange.
        # @param type [String, #to_s] Type of the exchange: direct, fanout, topic, headers or one
        # that a server adds.
        # @param passive [Boolean] Only check that the exchange exists.
        # @param durable [Boolean] The exchange survives a restart of the server.
        # @param auto_delete [Boolean] The exchange goes when its last binding has gone.
        # @param internal [Boolean] Clients cannot publish to it, only other exchanges can.
        # @param nowait [Boolean] Send no reply.
        # @param arguments [Hash, nil] Further arguments, by name.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 40, 10)
      end

      # The exchange is there.
      #
      # Sent by servers.
      class DeclareOk < Protocol::Method
        @name = "exchange.declare-ok"
        @method_id = 11
        @index = 0x0028000B

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [DeclareOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 40, 11)
      end

      # Deletes an exchange with its bindings.
      #
      # Sent by clients.
      class Delete < Protocol::Method
        @name = "exchange.delete"
        @method_id = 20
        @index = 0x00280014

        # @!method self.encode(channel, exchange, if_unused, nowait)
        # @param channel [Integer] Number of the channel.
        # @param exchange [String, #to_s] Name of an exchange; empty is the default exchange.
        # @param if_unused [Boolean] Only when nothing is bound to it.
        # @param nowait [Boolean] Send no reply.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 40, 20)
      end

      # The exchange is gone.
      #
      # Sent by servers.
      class DeleteOk < Protocol::Method
        @name = "exchange.delete-ok"
        @method_id = 21
        @index = 0x00280015

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [DeleteOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 40, 21)
      end

      # Binds an exchange to an exchange.
      #
      # Sent by clients. An addition of RabbitMQ's.
      class Bind < Protocol::Method
        @name = "exchange.bind"
        @method_id = 30
        @index = 0x0028001E

        # @!method self.encode(channel, destination, source, routing_key, nowait, arguments)
        # @param channel [Integer] Number of the channel.
        # @param destination [String, #to_s] The exchange that receives.
        # @param source [String, #to_s] The exchange that messages come from.
        # @param routing_key [String, #to_s] What the exchange routes by.
        # @param nowait [Boolean] Send no reply.
        # @param arguments [Hash, nil] Further arguments, by name.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 40, 30)
      end

      # The exchanges are bound.
      #
      # Sent by servers. An addition of RabbitMQ's.
      class BindOk < Protocol::Method
        @name = "exchange.bind-ok"
        @method_id = 31
        @index = 0x0028001F

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [BindOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 40, 31)
      end

      # Takes a binding between exchanges away.
      #
      # Sent by clients. An addition of RabbitMQ's.
      class Unbind < Protocol::Method
        @name = "exchange.unbind"
        @method_id = 40
        @index = 0x00280028

        # @!method self.encode(channel, destination, source, routing_key, nowait, arguments)
        # @param channel [Integer] Number of the channel.
        # @param destination [String, #to_s] The exchange that receives.
        # @param source [String, #to_s] The exchange that messages come from.
        # @param routing_key [String, #to_s] What the exchange routes by.
        # @param nowait [Boolean] Send no reply.
        # @param arguments [Hash, nil] Further arguments, by name.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 40, 40)
      end

      # The binding is gone.
      #
      # Sent by servers. An addition of RabbitMQ's.
      class UnbindOk < Protocol::Method
        @name = "exchange.unbind-ok"
        @method_id = 51
        @index = 0x00280033

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [UnbindOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 40, 51)
      end
    end
  end
end
