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
          message = take_ready or return
          next yield(message) if message.is_a?(String)

          yield(*message)
        end
      end

      # @return [String, Array<String>, nil] a message, as an Array where it has several parts; nil where there is none
      def take_ready
        done = false
        rc = Native.zmq_msg_recv(@inbox, @native, DONTWAIT)
        unless rc == -1
          message = Native.zmq_msg_more(@inbox).zero? ? Native.bytes_of(@inbox, rc) : take_parts(rc)
        end
        done = true
        message
      ensure
        Cleanup.complete { drop_rest } unless done
      end

      # @param first [Integer] bytes of the first part, where that is in `@inbox`
      # @return [Array<String>, nil] a message, nil where there is none
      def take_parts(first = nil)
        parts = []
        rc = fetch_parts(parts) { first || Native.zmq_msg_recv(@inbox, @native, DONTWAIT) }
        parts unless rc == -1
      end

      # Sends the messages from `index` on, up to one that finds no room or has something else in it than strings.
      #
      # @return [Integer] the index of that one
      def put_messages(messages, index)
        index += 1 while index < messages.size && put_strings(messages[index]) != -1
        index
      end

      # @return [Integer] as {#put_parts}
      def put_strings(message)
        return put_part(message, DONTWAIT) if message.is_a?(String)

        message.is_a?(Array) && message.all?(String) ? put_parts(message, 0) : -1
      end

      # Sends the parts of one message without waiting, or none of them: libzmq has room for all when it takes the
      # first. Where the peer goes meanwhile, libzmq drops the message.
      #
      # An exception of another thread's (a timeout, a kill) that comes between two parts waits for the others. What a
      # handler of a signal raises can't: Ruby raises that at once.
      #
      # @param flags [Integer] of the last part: {SNDMORE} or 0
      # @return [Integer] bytes of the last part, or -1 when the first finds no room
      def put_parts(parts, flags)
        return put_part(parts[0], DONTWAIT | flags) if parts.size == 1

        Thread.handle_interrupt(Cleanup::ALL_LATER) { put_each_part(parts, flags) }
      end

      def put_each_part(parts, flags)
        last = parts.size - 1
        index = 0
        while index < last
          return -1 if put_part(parts[index], DONTWAIT | SNDMORE) == -1 && index.zero?

          index += 1
        end
        rc = put_part(parts[last], DONTWAIT | flags)
        rc == -1 && FFI.errno == EAGAIN ? 0 : rc
      end

      def put_part(part, flags)
        rc = if part.is_a?(String)
               Native.zmq_send(@native, part, part.bytesize, flags)
             else
               Native.zmq_msg_send(part.address, @native, flags)
             end
        rc == -1 && FFI.errno == EINTR ? put_part(part, flags) : rc
      end
    end
  end
end
