# frozen_string_literal: true

module ZMQ
  # Watches sockets and Ruby IOs until one of them can be read or written.
  #
  # libzmq is only asked what is ready now. The waiting is done on file descriptors, so that it can be interrupted, does
  # not stall other fibers of a scheduler, and never is inside a socket that another thread closes.
  class Poller
    # @return [Array] what could be read at the last {#poll}
    attr_reader :readables
    # @return [Array] what could be written at the last {#poll}
    attr_reader :writables

    # poll(2)'s numbers for libzmq's events.
    DESCRIPTOR_EVENTS = { POLLIN => 1, POLLPRI => 2, POLLOUT => 4, POLLERR => 8 }.freeze
    DESCRIPTOR_BYTES = 8
    private_constant :DESCRIPTOR_EVENTS, :DESCRIPTOR_BYTES

    def initialize
      @poll_items = PollItems.new
      @readables = []
      @writables = []
    end

    # @return [Integer] how many things are watched
    def size
      @poll_items.size
    end

    # Waits until something is ready. With nothing registered it returns at once.
    #
    # @param timeout [Integer, Symbol] milliseconds; -1 or `:blocking` for ever
    # @return [Integer] how many are ready, 0 when the time was up; -1 for a failure that {Util.errno} explains
    def poll(timeout = :blocking)
      return 0 if @poll_items.empty?
      return Util.fail_with(ENOTSOCK) if @poll_items.gone?

      timeout_ms = timeout == :blocking ? -1 : timeout.to_i
      rc = Native.zmq_poll(@poll_items.address, size, 0)
      rc = wait(Deadline.after_ms(timeout_ms)) if rc.zero? && timeout_ms != 0
      update_selectables unless rc == -1
      rc
    end

    # @return [Integer] as {#poll}, without waiting
    def poll_nonblock
      poll(0)
    end

    # Watches `pollable` for `events`, in addition to those it is already watched for.
    #
    # @param pollable [Socket, IO, #socket, #posix_fileno, #io]
    # @param events [Integer] {POLLIN}, {POLLOUT} or both
    # @return [Integer, nil] the events it is watched for; nil where there was nothing to do
    def register(pollable, events = POLLIN | POLLOUT)
      return if pollable.nil? || events.zero?

      item = @poll_items[pollable]
      @poll_items << (item = PollItem.from_pollable(pollable)) unless item
      item.events |= events
    end

    # @return [Integer, nil]
    def register_readable(pollable)
      register(pollable, POLLIN)
    end

    # @return [Integer, nil]
    def register_writable(pollable)
      register(pollable, POLLOUT)
    end

    # Stops watching `pollable` for `events`, and altogether when none are left or it has been closed.
    #
    # @return [Boolean, nil] whether it was watched for them
    def deregister(pollable, events)
      return unless pollable

      item = @poll_items[pollable]
      return false unless item && item.events.anybits?(events)

      item.events &= ~events
      delete(pollable) if item.events.zero? || item.closed?
      true
    end

    # @return [Boolean, nil]
    def deregister_readable(pollable)
      deregister(pollable, POLLIN)
    end

    # @return [Boolean, nil]
    def deregister_writable(pollable)
      deregister(pollable, POLLOUT)
    end

    # @return [Boolean] whether it was watched
    def delete(pollable)
      @poll_items.delete(pollable)
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{@poll_items.inspect}>"
    end
    alias to_s inspect

    private

    def update_selectables
      @readables.clear
      @writables.clear
      @poll_items.each_ready do |pollable, events|
        @readables << pollable if events.anybits?(POLLIN)
        @writables << pollable if events.anybits?(POLLOUT)
      end
    end

    def wait(deadline)
      items = @poll_items.to_a
      claim(items)
      loop do
        rc = wait_once(items, deadline)
        return rc if rc == -1
        return Util.fail_with(ENOTSOCK) if @poll_items.gone?

        rc = Native.zmq_poll(@poll_items.address, size, 0)
        return rc if rc != 0 || deadline.passed?
      end
    end

    # Says that this thread is the one that uses the sockets.
    def claim(items)
      items.each { |item| item.pollable.handle&.owner = Thread.current if item.pollable.is_a?(Socket) }
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

    # A scheduler watches one descriptor for a fiber. For several, a thread watches and the fiber waits for the thread.
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
