# frozen_string_literal: true

module ZMQ
  # Watches sockets and Ruby IOs until one of them can be read or written.
  #
  # libzmq is only asked what is ready now. The waiting is done on file descriptors, so that it can be interrupted, does
  # not stall other fibers of a scheduler, and never is inside a socket that another thread closes.
  class Poller
    include Waiting

    # Milliseconds that the C function's type can hold.
    LONG = (-(1 << 63)..((1 << 63) - 1))
    private_constant :LONG

    # @return [Array] what could be read at the last {#poll}
    attr_reader :readables
    # @return [Array] what could be written at the last {#poll}
    attr_reader :writables

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
    # @raise [RangeError] when the milliseconds do not fit 64 bits
    def poll(timeout = :blocking)
      return 0 if @poll_items.empty?
      return Util.fail_with(ENOTSOCK) if @poll_items.gone?

      timeout_ms = milliseconds(timeout)
      rc = poll_now
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
      return false unless item&.events&.anybits?(events)

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

    def milliseconds(timeout)
      timeout_ms = timeout == :blocking ? -1 : timeout.to_i
      raise RangeError, "a timeout of #{timeout_ms} ms is beyond 64 bits" unless LONG.cover?(timeout_ms)

      timeout_ms
    end

    def poll_now
      rc = Native.zmq_poll(@poll_items.address, size, 0)
      rc == -1 ? rc : @poll_items.add_kept(rc)
    end

    def update_selectables
      @readables.clear
      @writables.clear
      @poll_items.each_ready do |pollable, events|
        @readables << pollable if events.anybits?(POLLIN)
        @writables << pollable if events.anybits?(POLLOUT)
      end
    end
  end
end
