# frozen_string_literal: true

module ZMQ
  class Socket
    # The end of a socket, by the program, by its context or in a child process.
    module Closing
      # Seconds between two looks at whether a thread has left the socket.
      LOOK_AGAIN = 0.001
      # How long a fiber of the same thread may take for that: it looks at the socket by itself every now and then.
      FIBER_LIMIT_MS = 4 * 1000 * Waiting::FIBER_LOOK_AGAIN
      private_constant :LOOK_AGAIN, :FIBER_LIMIT_MS

      # Closes the socket. What it still has to send goes out in the background for as long as {LINGER} or, where that
      # was not set, {ZMQ.default_linger_ms} says. Closing again does nothing.
      #
      # A call in which another thread waits on the socket fails with ENOTSOCK.
      #
      # @return [Integer] 0 or -1
      def close
        return 0 unless @socket

        @ended ||= ENOTSOCK
        abandon
        return 0 unless @handle

        evict
        ObjectSpace.undefine_finalizer(self)
        @handle.close
      end

      # @return [Boolean]
      def closed?
        @socket.nil?
      end

      # Forgets the native socket: it was closed, or it is the parent process's.
      # @api private
      def abandon
        @socket = nil
        @native = 0
        drop_kept
        @descriptor = nil
        @descriptor_item = nil
      end

      # Closes the socket for its context, which is being terminated.
      # @api private
      def end_with_context
        @ended = ETERM
        close
      end

      private

      # Waits until no other thread is in a call on the native socket, which libzmq cannot take being closed meanwhile,
      # and no fiber watches its descriptor.
      def evict
        deadline = Deadline.after_ms(FIBER_LIMIT_MS)
        while (thread = occupant) && thread.alive?
          if thread != Thread.current
            wake(thread)
          elsif !Waiting::FIBERS.current_scheduler || deadline.passed?
            break
          end
          sleep(LOOK_AGAIN)
        end
      end

      # @return [Thread, nil] who waits on the socket
      def occupant
        @waiter || @handle.watcher
      end

      def wake(thread)
        thread.wakeup
      rescue ThreadError
        nil # it has ended just now
      end

      # @return [-1]
      def failed
        @ended ? failed_at_the_end : -1
      end

      # A call that was interrupted because the socket has been closed failed for that.
      def failed_at_the_end
        [ENOTSOCK, EINTR].include?(FFI.errno) ? Util.fail_with(@ended) : -1
      end
    end
  end
end
