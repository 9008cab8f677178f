# frozen_string_literal: true

# Generated from spec/amqp-0-9-1.toml by `cargo run -p courser-codegen`; not to be edited.

module AMQ
  module Protocol
    # Confirms of publishes on a channel.
    class Confirm < Protocol::Class
      @name = "confirm"
      @method_id = 85

      # Asks the server to confirm every publish from now on.
      #
      # Sent by clients. An addition of RabbitMQ's.
      class Select < Protocol::Method
        @name = "confirm.select"
        @method_id = 10
        @index = 0x0055000A

        # @!method self.encode(channel, nowait)
        # @param channel [Integer] Number of the channel.
        # @param nowait [Boolean] Send no reply.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Select]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] nowait
        # @return [Boolean] Send no reply.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 85, 10)
      end

      # Publishes are confirmed from now on, numbered from 1.
      #
      # Sent by servers. An addition of RabbitMQ's.
      class SelectOk < Protocol::Method
        @name = "confirm.select-ok"
        @method_id = 11
        @index = 0x0055000B

        # @!method self.encode(channel)
        # @param channel [Integer] Number of the channel.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [SelectOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 85, 11)
      end
    end
  end
end
