# frozen_string_literal: true

require 'fiber'
require 'io/wait'

module ZMQ
  class Socket
    # How a socket waits until it can send or receive, without stalling fibers and without being deaf to interrupts.
    #
    # Three ways lead there. MRI waits inside libzmq, whose wait ends when Ruby signals the thread. JRuby cannot interrupt
    # native code, so it does that for a moment only and then lets the JVM watch the socket's descriptor. A fiber of a
    # scheduler gives the descriptor to the scheduler.
    #
    # @api private
    module Waiting
      # Milliseconds that JRuby waits inside libzmq, where waking up is quickest but interrupts are not seen.
      SLICE_MS = 20
      # Seconds after which a fiber looks at its socket again: another fiber that uses the same socket may have taken the
      # event that the descriptor would have told of.
      FIBER_LOOK_AGAIN = 0.05

      # @return [Object, nil] the scheduler of the current fiber, nil where a wait may block the thread
      def self.scheduler
        return Fiber.current_scheduler if Fiber.respond_to?(:current_scheduler)

        Fiber.scheduler unless Fiber.current.blocking?
      end

      private

      # Receives once something is there; RCVTIMEO limits the wait.
      #
      # @param msg [FFI::Pointer] a `zmq_msg_t`
      # @return [Integer] as `zmq_msg_recv`
      def wait_and_fetch(msg)
        @handle.owner = Thread.current
        return fetch_until(msg, deadline_of(RCVTIMEO)) if Waiting.scheduler

        Lifecycle::JRUBY ? fetch_in_slices(msg) : fetch_natively(msg)
      end

      # Sends once there is room; SNDTIMEO limits the wait.
      #
      # @param msg [FFI::Pointer] a `zmq_msg_t`
      # @return [Integer] as `zmq_msg_send`
      def wait_and_dispatch(msg, flags)
        @handle.owner = Thread.current
        return dispatch_until(msg, flags, deadline_of(SNDTIMEO)) if Waiting.scheduler

        Lifecycle::JRUBY ? dispatch_in_slices(msg, flags) : busily { Native.wait_send(msg, @socket, flags) }
      end

      # Waits inside libzmq. An exception that interrupts the wait (a timeout, a kill) can come just after a message was
      # received; that message is kept for the next receive. For that to be told, `msg` has to be empty to begin with.
      def fetch_natively(msg)
        Native.zmq_msg_move(msg, Native::BLANK)
        @handle.busy = true
        rc = Native.wait_recv(msg, @socket, 0)
      ensure
        @handle.busy = false
        keep(msg) if rc.nil? && Native.zmq_msg_size(msg).positive?
      end

      def fetch_in_slices(msg)
        timeout_ms = read_int_option(RCVTIMEO)
        deadline = Deadline.after_ms(timeout_ms)
        rc = with_slice(RCVTIMEO, timeout_ms) { Native.wait_recv(msg, @socket, 0) }
        rc == -1 && try_again? ? fetch_until(msg, deadline) : rc
      end

      def dispatch_in_slices(msg, flags)
        timeout_ms = read_int_option(SNDTIMEO)
        deadline = Deadline.after_ms(timeout_ms)
        rc = with_slice(SNDTIMEO, timeout_ms) { Native.wait_send(msg, @socket, flags) }
        rc == -1 && try_again? ? dispatch_until(msg, flags, deadline) : rc
      end

      # Runs a blocking call with its timeout cut down to a slice.
      def with_slice(option, timeout_ms, &call)
        return busily(&call) if timeout_ms.nil? || timeout_ms.between?(0, SLICE_MS)

        write_int_option(option, SLICE_MS)
        rc = busily(&call)
        code = FFI.errno
        write_int_option(option, timeout_ms)
        rc == -1 ? Util.fail_with(code) : rc
      end

      def busily
        @handle.busy = true
        yield
      ensure
        @handle.busy = false
      end

      def fetch_until(msg, deadline)
        loop do
          rc = Native.zmq_msg_recv(msg, @socket, DONTWAIT)
          return rc unless rc == -1 && try_again?
          return Util.fail_with(EAGAIN) unless wait_for(POLLIN, deadline)
        end
      end

      def dispatch_until(msg, flags, deadline)
        loop do
          rc = Native.zmq_msg_send(msg, @socket, flags | DONTWAIT)
          return rc unless rc == -1 && try_again?
          return Util.fail_with(EAGAIN) unless wait_for(POLLOUT, deadline)
        end
      end

      # Waits until one of `events` is likely, an interrupt came or the deadline passed.
      #
      # @return [Boolean] whether to try again
      def wait_for(events, deadline)
        return true if read_int_option(EVENTS).nil? || option_value.get_int(0).anybits?(events)
        return false if deadline.passed?

        # The descriptor becomes readable whatever the event is, also when the socket becomes writable.
        if Waiting.scheduler
          descriptor.wait_readable(deadline.remaining(FIBER_LOOK_AGAIN))
        elsif Lifecycle::JRUBY
          descriptor.wait_readable(deadline.remaining)
        else
          Native::Descriptors.poll(descriptor_item, 1, deadline.remaining_ms)
        end
        true
      end

      # @return [Boolean] whether the last failure means no more than that the operation has to wait
      def try_again?
        code = FFI.errno
        code == EAGAIN || (Lifecycle::JRUBY && code == EINTR)
      end

      def deadline_of(option)
        Deadline.after_ms(read_int_option(option))
      end

      # @return [IO] the socket's event descriptor, which stays libzmq's
      def descriptor
        @descriptor ||= IO.for_fd(read_int_option(FD), autoclose: false)
      end

      # @return [FFI::MemoryPointer] a `struct pollfd` for the event descriptor
      def descriptor_item
        @descriptor_item ||= FFI::MemoryPointer.new(8).put_int(0, descriptor.fileno).put_short(4, POLLIN)
      end
    end
  end
end
