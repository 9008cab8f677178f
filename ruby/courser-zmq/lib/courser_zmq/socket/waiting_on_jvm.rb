# frozen_string_literal: true

module ZMQ
  class Socket
    # Waiting on JRuby, which cannot interrupt native code: inside libzmq for a moment, because waking up is quickest
    # there, then on the descriptor, where the JVM sees to interrupts.
    #
    # @api private
    module WaitingOnJvm
      # Milliseconds inside libzmq.
      SLICE_MS = 20

      private

      # Receives once something is there; RCVTIMEO limits the wait.
      #
      # @param msg [FFI::Pointer] a `zmq_msg_t`
      # @return [Integer] as `zmq_msg_recv`
      def fetch_when_there(msg)
        timeout_ms = read_int_option(RCVTIMEO)
        deadline = Deadline.after_ms(timeout_ms)
        return fetch_until(msg, deadline) if Waiting::FIBERS.current_scheduler

        rc = with_slice(RCVTIMEO, timeout_ms) { Native.wait_recv(msg, @socket, 0) }
        rc == -1 && try_again? ? fetch_until(msg, deadline) : rc
      end

      # Sends once there is room; SNDTIMEO limits the wait.
      #
      # @param msg [FFI::Pointer] a `zmq_msg_t`
      # @return [Integer] as `zmq_msg_send`
      def dispatch_when_possible(msg, flags)
        timeout_ms = read_int_option(SNDTIMEO)
        deadline = Deadline.after_ms(timeout_ms)
        return dispatch_until(msg, flags, deadline) if Waiting::FIBERS.current_scheduler

        rc = with_slice(SNDTIMEO, timeout_ms) { Native.wait_send(msg, @socket, flags) }
        rc == -1 && try_again? ? dispatch_until(msg, flags, deadline) : rc
      end

      # Runs a blocking call with its timeout cut down to a slice.
      def with_slice(option, timeout_ms)
        @handle.busy = true
        short = timeout_ms.nil? || timeout_ms.between?(0, SLICE_MS)
        write_int_option(option, SLICE_MS) unless short
        rc = yield
        code = FFI.errno
        write_int_option(option, timeout_ms) unless short
        rc == -1 ? Util.fail_with(code) : rc
      ensure
        @handle.busy = false
      end

      # The time of the slice was up, or the JVM signalled the thread for a reason of its own.
      def try_again?
        [EAGAIN, EINTR].include?(FFI.errno)
      end
    end
  end
end
