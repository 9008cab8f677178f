# frozen_string_literal: true

require "amq/protocol/frame"

module AMQ
  module Protocol
    # Bytes in, frames or whole commands out: for clients that read as much as there is.
    #
    #   parser = AMQ::Protocol::Parser.new(frame_max: 131_072)
    #   loop do
    #     parser.feed(socket.readpartial(65_536))
    #     while (channel, method, properties, body = parser.next_command)
    #       ...
    #     end
    #   end
    #
    # A parser belongs to one connection and is used by one thread at a time. After an exception the input is of no use
    # any more: neither is the connection.
    class Parser
      # @param frame_max [Integer] Largest frame in bytes, header and end included; 0 is no limit.
      # @param body_max [Integer] Largest body in bytes, for {#next_command}.
      def initialize(frame_max: 131_072, body_max: 512 * 1024 * 1024)
        configure(frame_max, body_max)
      end

      # @!method feed(data)
      #   Takes bytes, which are copied.
      #   @param data [String]
      #   @return [self]

      # @!method next_frame
      #   @return [FrameSubclass, nil] The next frame, nil when it is not there as a whole yet.
      #   @raise [FrameTypeError]
      #   @raise [MalformedInputError]

      # @!method next_command
      #   Takes the next method with all that belongs to it. Heartbeats are passed over, contents of several channels may
      #   come interleaved.
      #
      #   @return [Array(Integer, Method, Hash, String), nil] Channel, method, properties and body; the last two are nil
      #     for methods without a content. nil when it is not there as a whole yet. A body is labelled UTF-8 when all its
      #     bytes are ASCII, binary otherwise.
      #   @raise [FrameTypeError]
      #   @raise [MalformedInputError]

      # @!method pending_size
      #   @return [Integer] Bytes that were fed and not taken yet.

      Native.define_parser(self)
      private :configure
      alias << feed

      # A copy would not have the bytes and the contents that are still incomplete.
      #
      # @raise [TypeError]
      def initialize_copy(_other)
        raise TypeError, "cannot copy #{self.class}"
      end

      # @yieldparam frame [FrameSubclass] Every frame that is there as a whole.
      def each_frame
        return to_enum(:each_frame) unless block_given?

        while (frame = next_frame)
          yield frame
        end
      end

      # @yieldparam channel [Integer]
      # @yieldparam method [Method]
      # @yieldparam properties [Hash, nil]
      # @yieldparam body [String, nil]
      def each_command
        return to_enum(:each_command) unless block_given?

        while (command = next_command)
          yield(*command)
        end
      end
    end
  end
end
