# frozen_string_literal: true

require 'fiber'
require 'io/wait'

module ZMQ
  class Socket
    # How a socket waits on its event descriptor, outside of libzmq: for a fiber of a scheduler, which must not be
    # stalled, and for a deadline of the caller's own. How it waits otherwise depends on the Ruby: {WaitingInLibzmq}
    # and {WaitingOnJvm}.
    #
    # @api private
    module Waiting
      # Seconds after which a fiber looks at its socket again: another fiber that uses the same socket may have taken
      # the event that the descriptor would have told of.
      FIBER_LOOK_AGAIN = 0.05

      # What Ruby 3.0 has in place of `Fiber.current_scheduler`.
      module OldFibers
        def self.current_scheduler
          Fiber.scheduler unless Fiber.current.blocking?
        end
      end

      # Asked for its `current_scheduler`, it gives that of the current fiber, or nil where a wait may block the thread.
      FIBERS = Fiber.respond_to?(:current_scheduler) ? Fiber : OldFibers

      private

      # Receives once something is there.
      #
      # @param msg [FFI::Pointer] a `zmq_msg_t`
      # @param deadline [Deadline]
      # @return [Integer] as `zmq_msg_recv`
      def fetch_until(msg, deadline)
        loop do
          rc = Native.zmq_msg_recv(msg, @native, DONTWAIT)
          return rc unless rc == -1 && FFI.errno == EAGAIN
          return Util.fail_with(EAGAIN) unless wait_for(POLLIN, deadline)
        end
      end

      # Sends once there is room. The block sends without waiting.
      #
      # POLLOUT does not tell when to try again: a ROUTER has it while one peer has room, though the message is for
      # another.
      #
      # @param deadline [Deadline]
      # @return [Integer] as `zmq_msg_send`
      def dispatch_until(deadline)
        loop do
          read_int_option(EVENTS) # takes note of what has come: the descriptor tells of what comes from now on
          rc = yield
          return rc unless rc == -1 && FFI.errno == EAGAIN
          return Util.fail_with(EAGAIN) if deadline.passed?
          return Util.fail_with(EINTR) if wait_on_descriptor(deadline) == -1
        end
      end

      # @param msg [FFI::Pointer] a `zmq_msg_t`
      def dispatch_message_until(msg, flags, deadline)
        dispatch_until(deadline) { Native.zmq_msg_send(msg, @native, flags | DONTWAIT) }
      end

      # Waits until one of `events` is likely, a signal came or the deadline passed.
      #
      # @return [Boolean] whether to try again
      def wait_for(events, deadline)
        current = read_int_option(EVENTS)
        return true if current.nil? || current.anybits?(events)
        return false if deadline.passed?

        wait_on_descriptor(deadline)
        true
      end

      # The descriptor becomes readable whatever the event is, also when the socket becomes writable.
      #
      # @return [Object] -1 when a signal came
      def wait_on_descriptor(deadline)
        if FIBERS.current_scheduler
          descriptor&.wait_readable(deadline.remaining(FIBER_LOOK_AGAIN))
        elsif Lifecycle::JRUBY
          descriptor&.wait_readable(deadline.remaining)
        else
          Native.poll(descriptor_item, 1, deadline.remaining_ms)
        end
      end

      # @param option [Integer] RCVTIMEO or SNDTIMEO
      def deadline_of(option)
        Deadline.after_ms(read_number(option))
      end

      # @return [IO, nil] the socket's event descriptor, which stays libzmq's; nil when another thread has closed it
      def descriptor
        return @descriptor if @descriptor

        number = read_int_option(FD)
        @descriptor = IO.for_fd(number, autoclose: false) if number
      end

      # @return [FFI::MemoryPointer] a `struct pollfd` for the event descriptor, or for none
      def descriptor_item
        @descriptor_item ||= FFI::MemoryPointer.new(8).put_int(0, read_int_option(FD) || -1).put_short(4, POLLIN)
      end

      # Says for as long as the block runs that this thread waits on the socket.
      def occupied
        @handle.owner = Thread.current if @handle
        @waiter = Thread.current
        yield
      ensure
        @waiter = nil
      end
    end
  end
end
