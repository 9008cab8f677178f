# frozen_string_literal: true

module ZMQ
  class Socket
    # Waiting inside libzmq, whose calls end when Ruby signals the thread: what MRI does.
    #
    # @api private
    module WaitingInLibzmq
      # @return [FFI::Pointer, nil] libzmq's socket, nil once closed
      attr_reader :socket

      private

      # Receives once something is there; RCVTIMEO limits the wait.
      #
      # An exception that interrupts the wait (a timeout, a kill) may come just after a message was received; then the
      # message is kept for the next receive. For that to be told, `msg` has to be empty to begin with.
      #
      # @param msg [FFI::Pointer] a `zmq_msg_t`
      # @return [Integer] as `zmq_msg_recv`
      def fetch_when_there(msg)
        Native.zmq_msg_move(msg, Native::BLANK)
        @waiter = Thread.current
        rc = if Waiting::FIBERS.current_scheduler
               fetch_until(msg, deadline_of(RCVTIMEO))
             else
               Native.wait_recv(msg, @native, 0)
             end
      ensure
        @waiter = nil
        Cleanup.complete { keep(msg) if arrived?(msg) } if rc.nil?
      end

      # Sends once there is room; SNDTIMEO limits the wait.
      #
      # @param msg [FFI::Pointer] a `zmq_msg_t`
      # @return [Integer] as `zmq_msg_send`
      def dispatch_when_possible(msg, flags)
        return dispatch_message_until(msg, flags, deadline_of(SNDTIMEO)) if Waiting::FIBERS.current_scheduler

        @waiter = Thread.current
        Native.wait_send(msg, @native, flags)
      ensure
        @waiter = nil
      end
    end
  end
end
