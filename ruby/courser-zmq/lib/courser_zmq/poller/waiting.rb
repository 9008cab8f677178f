# frozen_string_literal: true

module ZMQ
  class Poller
    # How a poller waits: on file descriptors, whatever they belong to.
    #
    # @api private
    module Waiting
      # poll(2)'s numbers for libzmq's events.
      DESCRIPTOR_EVENTS = { POLLIN => 1, POLLPRI => 2, POLLOUT => 4, POLLERR => 8 }.freeze
      DESCRIPTOR_BYTES = 8
      private_constant :DESCRIPTOR_EVENTS, :DESCRIPTOR_BYTES

      private

      def wait(deadline)
        items = @poll_items.to_a
        watching(items) do
          loop do
            rc = wait_once(items, deadline)
            return Util.fail_with(ENOTSOCK) if @poll_items.gone?
            return rc if rc == -1

            rc = poll_now
            return rc if rc != 0 || deadline.passed?
          end
        end
      end

      # Says for as long as the block runs that this thread waits for the sockets, and is the one that uses them.
      def watching(items)
        handles = items.map { |item| item.watched&.handle }.compact
        handles.each { |handle| handle.owner = handle.watcher = Thread.current }
        yield
      ensure
        Cleanup.complete { handles&.each { |handle| handle.watcher = nil } }
      end

      # Waits until a descriptor tells of something, which need not be an event that is watched for.
      #
      # @return [Integer] -1 when a signal interrupted it
      def wait_once(items, deadline)
        if Socket::Waiting::FIBERS.current_scheduler
          wait_beside_the_scheduler(items, deadline)
        elsif Lifecycle::JRUBY
          wait_on_jvm(items, deadline)
        else
          Native.poll(native_descriptors(items), items.size, deadline.remaining_ms)
        end
      end

      def native_descriptors(items)
        memory = FFI::MemoryPointer.new(DESCRIPTOR_BYTES, items.size)
        items.each_with_index do |item, index|
          memory.put_int(index * DESCRIPTOR_BYTES, item.descriptor)
          memory.put_int16((index * DESCRIPTOR_BYTES) + 4, descriptor_events(item))
        end
        memory
      end

      # A socket's descriptor becomes readable for any event of the socket.
      def descriptor_events(item)
        return DESCRIPTOR_EVENTS[POLLIN] unless item.socket.null?

        DESCRIPTOR_EVENTS.sum { |event, number| item.events.anybits?(event) ? number : 0 }
      end

      # The JVM watches descriptors slowly but can be interrupted; libzmq the other way round. So libzmq goes first.
      def wait_on_jvm(items, deadline)
        slice_ms = Socket::WaitingOnJvm::SLICE_MS
        slice_ms = [slice_ms, deadline.remaining_ms].min unless deadline.never?
        return 0 if LibZMQ.zmq_poll(@poll_items.address, size, slice_ms).positive? || deadline.passed?

        select(items, deadline.remaining)
      end

      # A scheduler watches one descriptor for a fiber. For several, a thread watches, and the fiber waits for that.
      def wait_beside_the_scheduler(items, deadline)
        watcher = Thread.new { select(items, deadline.remaining(Socket::Waiting::FIBER_LOOK_AGAIN)) }
        watcher.value
      ensure
        watcher&.kill
      end

      def select(items, seconds)
        reading, writing = items.partition { |item| descriptor_events(item).anybits?(DESCRIPTOR_EVENTS[POLLIN]) }
        writing += reading.select { |item| item.socket.null? && item.events.anybits?(POLLOUT) }
        IO.select(reading.map(&:io), writing.map(&:io), nil, seconds)
        0
      end
    end
  end
end
