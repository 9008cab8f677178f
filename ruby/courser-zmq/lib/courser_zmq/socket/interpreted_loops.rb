# frozen_string_literal: true

module ZMQ
  class Socket
    # The loops of batches over FFI, for JRuby and where nothing was compiled: what {CompiledLoops} has in C.
    #
    # @api private
    module InterpretedLoops
      # One batch stops when it has so many bytes.
      BATCH_BYTES_MAX = 1 << 20

      private

      # Appends the messages that are there, at most `limit`.
      def take_messages(messages, limit)
        bytes = 0
        while limit.positive? && bytes < BATCH_BYTES_MAX && !@kept && (parts = take_parts)
          messages << parts
          bytes += parts.sum(&:bytesize)
          limit -= 1
        end
        messages
      end

      # Yields the messages that are there. None is in hand while the block runs.
      def each_ready
        until @kept
          rc = Native.zmq_msg_recv(@inbox, @native, DONTWAIT)
          return if rc == -1
          next yield(Native.bytes_of(@inbox, rc)) if Native.zmq_msg_more(@inbox).zero?

          return if fetch_parts(parts = []) { rc } == -1

          yield(*parts)
        end
      end

      # @return [Array<String>, nil] a message, nil where there is none
      def take_parts
        parts = []
        rc = fetch_parts(parts) { Native.zmq_msg_recv(@inbox, @native, DONTWAIT) }
        parts unless rc == -1
      end

      # Sends the messages from `index` on, up to one that finds no room or has something else in it than strings.
      #
      # @return [Integer] the index of that one
      def put_messages(messages, index)
        while index < messages.size
          message = messages[index]
          parts = message.is_a?(Array) ? message : [message]
          return index unless parts.all?(String) && put_parts(parts, 0) != -1

          index += 1
        end
        index
      end

      # Sends the parts of one message without waiting, or none of them: libzmq has room for all when it takes the
      # first. Where the peer goes meanwhile, libzmq drops the message.
      #
      # An exception that comes in between (a timeout, a kill) has to wait for the others. No other method may stand
      # between the call that sends and the line that counts: Ruby looks for exceptions when one returns.
      #
      # @param flags [Integer] of the last part: {SNDMORE} or 0
      # @return [Integer] bytes of the last part, or -1 when the first finds no room
      def put_parts(parts, flags, sent = 0) # rubocop:disable Metrics
        last = parts.size - 1
        while sent <= last
          part = parts[sent]
          part_flags = DONTWAIT | (sent < last ? SNDMORE : flags)
          rc = if part.is_a?(String)
                 Native.zmq_send(@native, part, part.bytesize, part_flags)
               else
                 Native.zmq_msg_send(part.address, @native, part_flags)
               end
          next if rc == -1 && FFI.errno == EINTR
          return -1 if rc == -1 && sent.zero?

          sent += 1
        end
        rc == -1 && FFI.errno == EAGAIN ? 0 : rc
      ensure
        Thread.handle_interrupt(Object => :never) { put_parts(parts, flags, sent) } if sent.between?(1, last)
      end
    end
  end
end
