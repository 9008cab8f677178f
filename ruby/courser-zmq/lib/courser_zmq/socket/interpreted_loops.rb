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

          more = Native.zmq_msg_more(@inbox)
          part = Native.bytes_of(@inbox, rc)
          next yield(part) if more.zero?

          rest = take_parts or return
          yield(part, *rest)
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
      # @return [Array(Integer, Integer)] the index of that one and how many of its parts went
      def put_messages(messages, index)
        while index < messages.size
          message = messages[index]
          sent = message.is_a?(Array) ? put_parts(message) : put_parts([message])
          return [index, sent] if sent.zero? || (message.is_a?(Array) && sent < message.size)

          index += 1
        end
        [index, 0]
      end

      def put_parts(parts)
        last = parts.size - 1
        parts.each_with_index do |part, index|
          flags = index == last ? DONTWAIT : DONTWAIT | SNDMORE
          return index unless part.is_a?(String) && Native.zmq_send(@native, part, part.bytesize, flags) != -1
        end
        parts.size
      end
    end
  end
end
