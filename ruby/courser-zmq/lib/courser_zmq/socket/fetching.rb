# frozen_string_literal: true

module ZMQ
  class Socket
    # How a part of a message gets from libzmq into a `zmq_msg_t`.
    #
    # A receive tries without blocking first. Where that found nothing, the next few skip the attempt and wait at once,
    # because a program that waited for one message usually has to wait for the next.
    #
    # @api private
    module Fetching
      # How many receives wait at once after one that found nothing. MRI gives its lock back for each; a JVM has none.
      DIRECT_WAITS = RUBY_ENGINE == 'ruby' ? 31 : 1023

      # @return [Boolean] whether a thread is inside a call that waits on this socket
      def waiting?
        !@waiter.nil?
      end

      # @return [Boolean] whether a message was put aside for the next receive
      def kept?
        !@kept.nil?
      end

      private

      def prepare_fetching
        @inbox_owner = ManagedMessage.new # what was received last is freed together with the socket
        @inbox = @inbox_owner.pointer
        @eager = true # whether the next receive is to try without blocking, and nothing was put aside
        @direct_waits = 0 # how many of the next receives wait at once
        @kept = nil # a message put aside
        @waiter = nil # the thread that is inside a call that waits
      end

      # Receives one part into the `zmq_msg_t` at `msg`, waiting if it has to and may.
      def fetch(msg, flags)
        return take_kept(msg) if @kept
        return attempt(msg, flags) if @eager || flags == DONTWAIT

        rc = fetch_when_there(msg)
        return failed if rc == -1

        @eager = true if (@direct_waits -= 1) < 1
        rc
      end

      def attempt(msg, flags)
        rc = Native.zmq_msg_recv(msg, @native, flags | DONTWAIT)
        rc == -1 ? missed(msg, flags) : rc
      end

      # Receives all parts of a message. The block fetches the first into `@inbox`, as {#fetch} does; the others are
      # there then, so they are not waited for. An exception that comes in between (a timeout, a kill) takes all of
      # them with it: what is left would be taken for a message.
      #
      # @param parts [Array<String>] gets them
      # @return [Integer] bytes of the last part, or -1
      def fetch_parts(parts)
        done = false
        rc = yield
        more = rc != -1 && add_part(parts, rc)
        rc = fetch_rest(parts) if more
        done = true
        rc
      ensure
        Cleanup.complete { drop_rest } unless done
      end

      def fetch_rest(parts)
        loop do
          rc = Native.zmq_msg_recv(@inbox, @native, DONTWAIT)
          next if rc == -1 && FFI.errno == EINTR
          return failed if rc == -1
          return rc unless add_part(parts, rc)
        end
      end

      # @return [Boolean] whether there are further ones
      def add_part(parts, size)
        more = Native.zmq_msg_more(@inbox)
        parts << Native.bytes_of(@inbox, size)
        more == 1
      end

      # Drops what libzmq still has of the message whose part was received last, unless that part was put aside.
      def drop_rest
        fetch_rest([]) unless @kept || !more_parts?
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

      # Whether a message is in `msg`, which was empty: an empty one is told by what comes after it or by its peer.
      def arrived?(msg)
        Native.zmq_msg_size(msg).positive? || Native.zmq_msg_more(msg) == 1 ||
          !LibZMQ.zmq_msg_gets(msg, MSG_PROPERTY_SOCKET_TYPE).nil?
      end

      # Puts a message aside that arrived just when its receiver was interrupted.
      def keep(msg)
        @eager = false
        @kept_owner = ManagedMessage.new
        @kept = @kept_owner.pointer
        Native.zmq_msg_move(@kept, msg)
      end

      # An exception from here on takes the message with it: of what nothing is left, no later part may be put aside.
      def take_kept(msg)
        kept = @kept
        @kept = nil
        @eager = @direct_waits < 1
        Native.zmq_msg_move(msg, kept)
        Native.zmq_msg_size(msg)
      end

      def drop_kept
        Native.zmq_msg_move(@kept, Native::BLANK) if @kept
        @kept = nil
      end
    end
  end
end
