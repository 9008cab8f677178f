# frozen_string_literal: true

module ZMQ
  class Socket
    # Receiving with result codes: -1 says that it failed and {Util.errno} why.
    module Receiving
      # Receives strings through a class that the program supplied, which may do more than hold bytes.
      module ByClass
        # @see Receiving#recv_string
        def recv_string(string, flags = 0)
          message = @receiver_class.new
          rc = recvmsg(message, flags)
          string.replace(message.copy_out_string) unless rc == -1
          close_quietly(message)
          rc
        end

        # @see Receiving#recv_strings
        def recv_strings(list, flag = 0)
          parts = []
          rc = recvmsgs(parts, flag)
          parts.each do |part|
            list << part.copy_out_string
            part.close
          end
          rc
        end
      end

      # Receives one part into a message.
      #
      # @param message [Message]
      # @param flags [Integer] 0 or {DONTWAIT}
      # @return [Integer] bytes received, at most 2,147,483,647 ({Message#size} tells all), or -1
      def recvmsg(message, flags = 0)
        pointer = message.address or return Util.fail_with(EFAULT)
        return fetch(pointer, flags) unless @eager

        rc = Native.zmq_msg_recv(pointer, @native, flags | DONTWAIT)
        rc == -1 ? missed(pointer, flags) : rc
      end

      # Receives one part into a string, replacing what is in it. A string that is as long as the message already, as
      # one received into before often is, is overwritten in place.
      #
      # @param string [String]
      # @param flags [Integer] 0 or {DONTWAIT}
      # @return [Integer] bytes received, or -1
      def recv_string(string, flags = 0) # rubocop:disable Metrics/AbcSize, Metrics/CyclomaticComplexity
        rc = @eager ? Native.zmq_msg_recv(@inbox, @native, flags | DONTWAIT) : fetch(@inbox, flags)
        rc = missed(@inbox, flags) if rc == -1 && @eager
        return copy_out(rc, string) if rc != string.bytesize || rc < Native::OVERWRITE_BYTES_MIN
        return copy_out(rc, string) if rc == Native::SIZE_TOLD_MAX

        string.setbyte(0, 0) # so that it shares its memory with no other string
        Native.overwrite(string, Native.zmq_msg_data(@inbox), rc)
        string.force_encoding(Encoding::BINARY) # also makes it forget what it knew of its old bytes
        Native.zmq_msg_move(@inbox, Native::BLANK) if rc > Native::KEEP_BYTES_MAX
        rc
      end

      # Receives all parts of a message and appends them to `list` as strings.
      #
      # @param list [Array<String>]
      # @param flag [Integer] 0 or {DONTWAIT}
      # @return [Integer] bytes of the last part, or -1; then `list` is as it was
      def recv_strings(list, flag = 0)
        parts = []
        rc = fetch_parts(parts) { fetch(@inbox, flag & DONTWAIT) }
        list.concat(parts) unless rc == -1
        rc
      end

      # Receives all parts of a message and appends them to `list` as messages.
      #
      # @param list [Array<Message>] of the socket's `receiver_class`
      # @param flag [Integer] 0 or {DONTWAIT}
      # @return [Integer] bytes of the last part, or -1; then `list` is empty
      def recvmsgs(list, flag = 0)
        rc = recv_parts(list, [], flag & DONTWAIT)
        list.each { |message| close_quietly(message) }.clear if rc == -1
        rc
      end

      # Receives all parts of a message that carries an envelope, as those of DEALER and ROUTER sockets do: the parts up
      # to and with the first empty one go to `routing_envelope`, the others to `list`.
      #
      # @param list [Array<Message>]
      # @param routing_envelope [Array<Message>]
      # @param flag [Integer] 0 or {DONTWAIT}
      # @return [Integer] bytes of the last part, or -1
      def recv_multipart(list, routing_envelope, flag = 0)
        parts = []
        rc = recvmsgs(parts, flag)
        return rc if rc == -1

        delimiter = parts.index { |part| part.size.zero? } || (parts.size - 1)
        routing_envelope.concat(parts[0..delimiter])
        list.concat(parts[(delimiter + 1)..])
        rc
      end

      private

      def prepare_receiving(receiver_class)
        @receiver_class = receiver_class
        extend ByClass unless [Message, ManagedMessage].include?(receiver_class)
        prepare_fetching
      end

      # @param result [Integer] of the receive
      # @return [Integer] bytes received, or -1
      def copy_out(result, string)
        result == -1 ? -1 : string.replace(Native.bytes_of(@inbox, result)).bytesize
      end

      # As {#fetch_parts}, into messages. `list` gets them when all are there.
      def recv_parts(list, parts, flag)
        done = false
        rc = recv_part(parts, flag)
        rc = recv_rest_part(parts) while rc != -1 && Native.zmq_msg_more(parts.last.address) == 1
        list.concat(parts)
        done = true
        rc
      ensure
        Cleanup.complete { drop_parts(parts) } unless done
      end

      def recv_rest_part(parts)
        rc = recv_part(parts, DONTWAIT)
        rc == -1 && FFI.errno == EINTR ? recv_rest_part(parts) : rc
      end

      def recv_part(list, flag)
        list << (message = @receiver_class.new)
        rc = recvmsg(message, flag)
        rc == -1 ? close_quietly(list.pop) : rc
      end

      def drop_parts(parts)
        drop_rest
        parts.each(&:close)
      end

      # Closes a message without losing the error that is to be reported.
      def close_quietly(message)
        code = FFI.errno
        message.close
        Util.fail_with(code)
      end
    end
  end
end
