# frozen_string_literal: true

module ZMQ
  class Socket
    # The same operations for programs that prefer exceptions to result codes, with whole messages and with timeouts in
    # seconds. Interrupted waits go on once Ruby has run its signal handlers.
    module Raising
      # @param endpoint [String] such as "tcp://127.0.0.1:*"
      # @return [String] what it was bound to, with the port that was chosen
      # @raise [SocketError]
      def bind!(endpoint)
        raise_failure('zmq_bind') if bind(endpoint) == -1
        last_endpoint
      end

      # @return [self]
      # @raise [SocketError]
      def connect!(endpoint)
        raise_failure('zmq_connect') if connect(endpoint) == -1
        self
      end

      # @return [self]
      # @raise [SocketError]
      def unbind!(endpoint)
        raise_failure('zmq_unbind') if unbind(endpoint) == -1
        self
      end

      # @return [self]
      # @raise [SocketError]
      def disconnect!(endpoint)
        raise_failure('zmq_disconnect') if disconnect(endpoint) == -1
        self
      end

      # Sends a message of one or more parts: all of them, or none where it fails or is interrupted.
      #
      # @param parts [Array<String, Message>] a {Message} is not copied, and is empty afterwards; a closed one is
      #   refused
      # @param timeout [Numeric, nil] seconds to wait for room; nil leaves it to {SNDTIMEO}
      # @return [self]
      # @raise [TimeoutError, TerminatedError, SocketError]
      def send_message(*parts, timeout: nil)
        raise ArgumentError, 'a message has at least one part' if parts.empty?

        check_strings(parts.grep_v(Message))
        send_within(parts, timeout && Deadline.after(timeout))
        self
      end

      # Sends a message: a String, a {Message} or an Array of them.
      #
      # @return [self]
      def <<(message)
        send_message(*message)
      end

      # Receives one part.
      #
      # @param timeout [Numeric, nil] seconds to wait; nil leaves it to {RCVTIMEO}
      # @return [String]
      # @raise [TimeoutError, TerminatedError, SocketError]
      def receive(timeout: nil)
        deadline = timeout && Deadline.after(timeout)
        Native.bytes_of(@inbox, uninterrupted('zmq_msg_recv') { fetch_within(@inbox, deadline) })
      end

      # Receives all parts of a message. An exception that interrupts it (a timeout, a kill) leaves the message to the
      # next receive or, where the message was in hand already, takes all of it.
      #
      # @param timeout [Numeric, nil] seconds to wait; nil leaves it to {RCVTIMEO}
      # @return [Array<String>]
      # @raise [TimeoutError, TerminatedError, SocketError]
      def receive_message(timeout: nil)
        deadline = timeout && Deadline.after(timeout)
        rc = fetch_parts(parts = []) { uninterrupted('zmq_msg_recv') { fetch_within(@inbox, deadline) } }
        rc == -1 ? raise_failure('zmq_msg_recv') : parts
      end

      # Receives one part without copying it.
      #
      # @param message [Message] what to receive into; a closed one is refused
      # @param timeout [Numeric, nil] seconds to wait; nil leaves it to {RCVTIMEO}
      # @return [Message] the same
      # @raise [TimeoutError, TerminatedError, SocketError]
      def receive_into(message, timeout: nil)
        deadline = timeout && Deadline.after(timeout)
        pointer = message.address
        uninterrupted('zmq_msg_recv') { pointer ? fetch_within(pointer, deadline) : Util.fail_with(EFAULT) }
        message
      end

      # Sends a request and waits for its reply, as a REQ socket does.
      #
      # @param parts [Array<String, Message>]
      # @param timeout [Numeric, nil] seconds for both together
      # @return [Array<String>]
      # @raise [TimeoutError, TerminatedError, SocketError]
      def request(*parts, timeout: nil)
        deadline = timeout && Deadline.after(timeout)
        send_message(*parts, timeout: timeout)
        receive_message(timeout: deadline&.remaining)
      end

      private

      def send_within(parts, deadline)
        source = parts.first.is_a?(Message) ? 'zmq_msg_send' : 'zmq_send'
        uninterrupted(source) { send_parts(parts, 0, deadline) }
      end

      def fetch_within(pointer, deadline)
        return fetch(pointer, 0) unless deadline
        return take_kept(pointer) if @kept

        occupied { fetch_until(pointer, deadline) }
      end

      # Repeats a call for as long as signals interrupt it.
      def uninterrupted(source)
        loop do
          rc = yield
          return rc unless rc == -1

          raise_failure(source) unless FFI.errno == EINTR
        end
      end

      def raise_failure(source)
        failed
        code = FFI.errno
        kind = { EAGAIN => TimeoutError, ETERM => TerminatedError }.fetch(code, SocketError)
        raise kind.new(source, -1, code, Util.message_of(code))
      end
    end
  end
end
