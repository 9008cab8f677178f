# frozen_string_literal: true

module ZMQ
  class Socket
    # Waiting on JRuby, which cannot interrupt native code: inside libzmq for a moment, because waking up is quickest
    # there, then on the descriptor, where the JVM sees to interrupts.
    #
    # RCVTIMEO and SNDTIMEO make the moment. Setting them for each wait would cost more than the wait often does, so
    # they are set once and stay so; what the program has set is kept here. A program that reaches for the native socket
    # finds its own values in force, and from then on waits take the slower way.
    #
    # @api private
    module WaitingOnJvm
      # Milliseconds inside libzmq.
      SLICE_MS = 20

      # @return [FFI::Pointer, nil] libzmq's socket, nil once closed
      def socket
        unless @handed_out
          @handed_out = true
          @sliced = false
          timeouts_ms.each { |option, timeout_ms| write_int_option(option, timeout_ms) }
        end
        @socket
      end

      private

      # @return [Hash{Integer => Integer}] what the program has set of the options that are cut down to a slice
      def timeouts_ms
        @timeouts_ms ||= {}
      end

      # Receives once something is there; RCVTIMEO limits the wait.
      #
      # @param msg [FFI::Pointer] a `zmq_msg_t`
      # @return [Integer] as `zmq_msg_recv`
      def fetch_when_there(msg)
        return fetch_until(msg, deadline_of(RCVTIMEO)) if @handed_out || Waiting::FIBERS.current_scheduler

        @sliced ||= cut_down(RCVTIMEO)
        @waiter = Thread.current
        rc = Native.wait_recv(msg, @native, 0)
        rc == -1 && try_again? ? fetch_until(msg, deadline_after_slice(RCVTIMEO)) : rc
      ensure
        @waiter = nil
      end

      # Sends once there is room; SNDTIMEO limits the wait.
      #
      # @param msg [FFI::Pointer] a `zmq_msg_t`
      # @return [Integer] as `zmq_msg_send`
      def dispatch_when_possible(msg, flags)
        if @handed_out || Waiting::FIBERS.current_scheduler
          return dispatch_message_until(msg, flags, deadline_of(SNDTIMEO))
        end

        cut_down(SNDTIMEO)
        @waiter = Thread.current
        rc = Native.wait_send(msg, @native, flags)
        rc == -1 && try_again? ? dispatch_message_until(msg, flags, deadline_after_slice(SNDTIMEO)) : rc
      ensure
        @waiter = nil
      end

      # @return [Boolean] whether that was possible, now or before
      def cut_down(option)
        return true if timeouts_ms[option]

        timeout_ms = read_int_option(option) or return false

        timeouts_ms[option] = timeout_ms
        write_int_option(option, SLICE_MS) unless timeout_ms.between?(0, SLICE_MS)
        true
      end

      # The deadline of a wait that has been inside libzmq for a slice.
      def deadline_after_slice(option)
        timeout_ms = timeouts_ms[option]
        Deadline.after_ms(timeout_ms.negative? ? timeout_ms : [timeout_ms - SLICE_MS, 0].max)
      end

      # The time of the slice was up, or the JVM signalled the thread for a reason of its own.
      def try_again?
        [EAGAIN, EINTR].include?(FFI.errno)
      end

      # What the program has set stands in for what is set.
      def read_number(name)
        @handed_out ? super : timeouts_ms[name] || super
      end

      def write_int(name, value)
        timeouts_ms.delete(name)
        @sliced = false
        super
      end
    end
  end
end
