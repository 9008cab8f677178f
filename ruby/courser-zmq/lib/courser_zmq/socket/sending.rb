# frozen_string_literal: true

module ZMQ
  class Socket
    # Sending with result codes: -1 says that it failed and {Util.errno} why.
    #
    # A send tries without blocking first and waits only where the socket has no room or no peer. A message of several
    # parts is handed over in one go, and none of it while it waits: whatever ends the wait leaves no part behind, which
    # libzmq would take for the beginning of the next message.
    module Sending
      # Sends a message. libzmq takes its content over: afterwards the message is empty and may be used again or closed.
      #
      # @param message [Message]
      # @param flags [Integer] {DONTWAIT}, {SNDMORE}, both or 0
      # @return [Integer] bytes sent, or -1; then the message still has its content
      def sendmsg(message, flags = 0)
        pointer = message.address or return Util.fail_with(EFAULT)

        rc = Native.zmq_msg_send(pointer, @native, flags | DONTWAIT)
        rc == -1 ? wait_or_fail(pointer, flags) : rc
      end

      # Sends a copy of a string.
      #
      # @param string [String]
      # @param flags [Integer] {DONTWAIT}, {SNDMORE}, both or 0
      # @return [Integer] bytes sent, or -1
      # @raise [TypeError] when it is no string
      def send_string(string, flags = 0)
        rc = Native.zmq_send(@native, string, string.bytesize, flags | DONTWAIT)
        rc == -1 ? send_copy(string, flags) : rc
      rescue NoMethodError
        raise if string.respond_to?(:bytesize)

        raise TypeError, "no implicit conversion of #{string.class} into String"
      end

      # Sends strings as the parts of one message.
      #
      # @param parts [Array<String>]
      # @param flags [Integer] {DONTWAIT} or 0
      # @return [Integer] bytes of the last part, or -1
      def send_strings(parts, flags = 0)
        check_strings(parts) if parts
        send_parts(parts, flags)
      end

      # Sends messages as the parts of one message.
      #
      # @param parts [Array<Message>]
      # @param flags [Integer] {DONTWAIT} or 0
      # @return [Integer] bytes of the last part, or -1
      def sendmsgs(parts, flags = 0)
        send_parts(parts, flags)
      end

      # Sends a message and closes it, whether that succeeded or not.
      #
      # @param message [Message]
      # @param flags [Integer] {DONTWAIT}, {SNDMORE}, both or 0
      # @return [Integer] bytes sent, or -1
      def send_and_close(message, flags = 0)
        rc = sendmsg(message, flags)
        rc == -1 ? close_quietly(message) : message.close
        rc
      end

      private

      # Sends one message.
      #
      # @param parts [Array<String, Message>]
      # @param deadline [Deadline, nil] nil leaves it to {SNDTIMEO}
      # @return [Integer] bytes of the last part, or -1
      def send_parts(parts, flags, deadline = nil)
        return Util.fail_with(EINVAL) if parts.nil? || parts.empty?

        flags = DONTWAIT if (flags & DONTWAIT) == DONTWAIT
        return send_several(parts, flags, deadline) if parts.size > 1 || deadline

        part = parts[0]
        part.is_a?(String) ? send_string(part, flags) : sendmsg(part, flags)
      end

      def send_several(parts, flags, deadline)
        return Util.fail_with(EFAULT) unless sendable?(parts)

        rc = put_parts(parts, flags & SNDMORE)
        rc == -1 ? wait_with_parts(parts, flags, deadline) : rc
      end

      # Whether no part is a closed message.
      def sendable?(parts)
        parts.all?(String) || parts.all? { |part| part.is_a?(String) || part.address }
      end

      # Goes on where there was no room for a message. Its strings are sent as they are now: while the thread waits,
      # others may change them.
      def wait_with_parts(parts, flags, deadline)
        return failed if flags == DONTWAIT || FFI.errno != EAGAIN

        parts = parts.map { |part| part.is_a?(String) ? part.dup : part }
        deadline ||= deadline_of(SNDTIMEO)
        rc = occupied { dispatch_until(deadline) { put_parts(parts, flags) } }
        rc == -1 ? failed : rc
      end

      # Refuses what cannot be sent before the first part of its message has gone: the others would be lacking, and the
      # next message would be taken for them.
      def check_strings(parts)
        return if parts.all?(String)

        raise TypeError, "no implicit conversion of #{parts.grep_v(String).first.class} into String"
      end

      # Goes on where an attempt to send without blocking failed.
      def wait_or_fail(pointer, flags)
        return failed if (flags & DONTWAIT) == DONTWAIT || FFI.errno != EAGAIN

        @handle.owner = Thread.current
        rc = dispatch_when_possible(pointer, flags)
        rc == -1 ? failed : rc
      end

      # The same for a string. It is copied first: while the thread waits, others may change the string. An exception
      # that ends the wait leaves the copy to the garbage collector.
      def send_copy(string, flags)
        return failed if (flags & DONTWAIT) == DONTWAIT || FFI.errno != EAGAIN

        send_and_close(ManagedMessage.new(string), flags)
      end
    end
  end
end
