# frozen_string_literal: true

module ZMQ
  class Socket
    # Receiving with result codes: -1 says that it failed and {Util.errno} why.
    #
    # A receive tries without blocking first. Where that found nothing, the next few skip the attempt and wait at once,
    # because a program that waited for one message usually has to wait for the next.
    module Receiving
      # How many receives wait at once after one that found nothing.
      DIRECT_WAITS = 31

      # Receives one part into a message.
      #
      # @param message [Message]
      # @param flags [Integer] 0 or {DONTWAIT}
      # @return [Integer] bytes received, or -1
      def recvmsg(message, flags = 0)
        pointer = message.address
        return Util.fail_with(EFAULT) unless pointer
        return fetch(pointer, flags) unless @eager

        rc = Native.zmq_msg_recv(pointer, @socket, flags | DONTWAIT)
        rc == -1 ? missed(pointer, flags) : rc
      end

      # Receives one part into a string, replacing what is in it. A string that is as long as the message already, as
      # one received into before often is, is overwritten in place.
      #
      # @param string [String]
      # @param flags [Integer] 0 or {DONTWAIT}
      # @return [Integer] bytes received, or -1
      def recv_string(string, flags = 0)
        if @eager
          rc = Native.zmq_msg_recv(@inbox, @socket, flags | DONTWAIT)
          rc = missed(@inbox, flags) if rc == -1
        else
          return recv_string_by_class(string, flags) if @custom_receiver

          rc = fetch(@inbox, flags)
        end
        Native.copy_out(@inbox, rc, string) unless rc == -1
        rc
      end

      # Receives all parts of a message and appends them to `list` as strings.
      #
      # @param list [Array<String>]
      # @param flag [Integer] 0 or {DONTWAIT}
      # @return [Integer] bytes of the last part, or -1; then `list` is as it was
      def recv_strings(list, flag = 0)
        parts = []
        rc = recvmsgs(parts, flag)
        parts.each do |part|
          list << part.copy_out_string
          part.close
        end
        rc
      end

      # Receives all parts of a message and appends them to `list` as messages.
      #
      # @param list [Array<Message>] of the socket's `receiver_class`
      # @param flag [Integer] 0 or {DONTWAIT}
      # @return [Integer] bytes of the last part, or -1; then `list` is empty
      def recvmsgs(list, flag = 0)
        rc = recv_part(list, flag)
        rc = recv_part(list, flag) while rc != -1 && more_parts?
        list.each(&:close).clear if rc == -1
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
        @custom_receiver = ![Message, ManagedMessage].include?(receiver_class)
        @inbox = Native.new_message
        @eager = !@custom_receiver # whether the next receive may go the shortest way
        @direct_waits = 0 # how many of the next receives wait at once
        @kept = nil # a message put aside
      end

      # Receives one part into the `zmq_msg_t` at `msg`, waiting if it has to and may.
      def fetch(msg, flags)
        return take_kept(msg) if @kept

        if @direct_waits < 1 || flags == DONTWAIT
          rc = Native.zmq_msg_recv(msg, @socket, flags | DONTWAIT)
          return rc == -1 ? missed(msg, flags) : rc
        end
        @direct_waits -= 1
        @eager = !@custom_receiver if @direct_waits < 1
        rc = fetch_when_there(msg)
        rc == -1 ? failed : rc
      end

      # Goes on where an attempt to receive without blocking failed.
      def missed(msg, flags)
        return failed if (flags & DONTWAIT) == DONTWAIT || FFI.errno != EAGAIN

        @direct_waits = DIRECT_WAITS
        @eager = false
        @handle.owner = Thread.current
        rc = fetch_when_there(msg)
        rc == -1 ? failed : rc
      end

      # Puts a message aside that arrived just when its receiver was interrupted.
      def keep(msg)
        @kept = Native.new_message
        Native.zmq_msg_move(@kept, msg)
        @eager = false
      end

      def take_kept(msg)
        Native.zmq_msg_move(msg, @kept)
        @kept = nil
        Native.zmq_msg_size(msg)
      end

      def recv_part(list, flag)
        message = @receiver_class.new
        rc = recvmsg(message, flag & DONTWAIT)
        rc == -1 ? close_quietly(message) : list << message
        rc
      end

      # Receives through a class that the program supplied, which may do more than hold bytes.
      def recv_string_by_class(string, flags)
        message = @receiver_class.new
        rc = recvmsg(message, flags)
        string.replace(message.copy_out_string) unless rc == -1
        close_quietly(message)
        rc
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
