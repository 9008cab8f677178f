# frozen_string_literal: true

# Generated from spec/amqp-0-9-1.toml by `cargo run -p courser-codegen`; not to be edited.

module AMQ
  module Protocol
    # Opening and closing the channels of a connection.
    class Channel < Protocol::Class
      @name = "channel"
      @method_id = 20

      # Opens the channel that the frame names.
      #
      # Sent by clients.
      class Open < Protocol::Method
        @name = "channel.open"
        @method_id = 10
        @index = 0x0014000A

        # @!method self.encode(channel, out_of_band)
        # @param channel [Integer] Number of the channel.
        # @param out_of_band [String, #to_s] Without a meaning; kept for old programs.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 20, 10)
      end

      # The channel is ready for use.
      #
      # Sent by servers.
      class OpenOk < Protocol::Method
        @name = "channel.open-ok"
        @method_id = 11
        @index = 0x0014000B

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [OpenOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] channel_id
        # @return [String] Without a meaning; kept for old programs.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 20, 11)
      end

      # Asks the peer to stop or go on sending contents.
      #
      # Sent by both sides.
      class Flow < Protocol::Method
        @name = "channel.flow"
        @method_id = 20
        @index = 0x00140014

        # @!method self.encode(channel, active)
        # @param channel [Integer] Number of the channel.
        # @param active [Boolean] Send contents (true) or hold them back (false).
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Flow]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] active
        # @return [Boolean] Send contents (true) or hold them back (false).

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 20, 20)
      end

      # Says that the wish about the flow was received.
      #
      # Sent by both sides.
      class FlowOk < Protocol::Method
        @name = "channel.flow-ok"
        @method_id = 21
        @index = 0x00140015

        # @!method self.encode(channel, active)
        # @param channel [Integer] Number of the channel.
        # @param active [Boolean] The wish as it was received.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [FlowOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] active
        # @return [Boolean] The wish as it was received.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 20, 21)
      end

      # Ends the channel and says why; the sender takes nothing but the reply on it from then on.
      #
      # Sent by both sides.
      class Close < Protocol::Method
        @name = "channel.close"
        @method_id = 40
        @index = 0x00140028

        # @!method self.encode(channel, reply_code, reply_text, class_id, method_id)
        # @param channel [Integer] Number of the channel.
        # @param reply_code [Integer] One of the reply codes.
        # @param reply_text [String, #to_s] The reason, for people.
        # @param class_id [Integer] Class of the method that the message is about, 0 when there is
        # none.
        # @param method_id [Integer] Method that the message is about, 0 when there is none.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Close]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] reply_code
        # @return [Integer] One of the reply codes.

        # @!attribute [r] reply_text
        # @return [String] The reason, for people.

        # @!attribute [r] class_id
        # @return [Integer] Class of the method that the message is about, 0 when there is none.

        # @!attribute [r] method_id
        # @return [Integer] Method that the message is about, 0 when there is none.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 20, 40)
      end

      # The last method on a channel.
      #
      # Sent by both sides.
      class CloseOk < Protocol::Method
        @name = "channel.close-ok"
        @method_id = 41
        @index = 0x00140029

        # @!method self.encode(channel)
        # @param channel [Integer] Number of the channel.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [CloseOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 20, 41)
      end
    end
  end
end
