# frozen_string_literal: true

module ZMQ
  # What a {Poller} watches, kept as the array of native structures that libzmq wants.
  class PollItems
    include Enumerable

    ITEM_BYTES = LibZMQ::PollItem.size
    # Where in a native structure the events are that occurred.
    REVENTS_OFFSET = LibZMQ::PollItem.offset_of(:revents)
    private_constant :ITEM_BYTES, :REVENTS_OFFSET

    def initialize
      @items = {}
      @store = nil
      @dirty = false
    end

    # @return [FFI::Pointer, nil] the native array, nil when there has never been an item
    def address
      clean
      @store
    end

    # @return [Integer]
    def size
      @items.size
    end

    # @return [Boolean]
    def empty?
      @items.empty?
    end

    # @return [PollItem, nil] the item that watches `pollable`
    def get(pollable)
      item = @items[pollable]
      clean if item
      item
    end
    alias [] get

    # @param poll_item [PollItem]
    def <<(poll_item)
      @dirty = true
      @items[poll_item.pollable] = poll_item
    end
    alias push <<

    # @return [Boolean] whether `pollable` was watched
    def delete(pollable)
      return false unless @items.delete(pollable)

      @dirty = true
    end

    # @yieldparam item [PollItem]
    def each(&block)
      clean
      @items.values.each(&block)
    end

    # @yieldparam pollable [Object]
    # @yieldparam events [Integer] those that occurred
    def each_ready
      offset = REVENTS_OFFSET
      @items.each_key do |pollable|
        events = @store.get_int16(offset)
        yield pollable, events unless events.zero?
        offset += ITEM_BYTES
      end
    end

    # Adds the sockets that have put a message aside, of which libzmq knows nothing any more.
    #
    # @param ready [Integer] how many items libzmq found ready
    # @return [Integer] how many are
    def add_kept(ready)
      kept = @items.each_value.select(&:kept?)
      return ready if kept.empty?

      kept.each { |item| item.poll_item[:revents] |= POLLIN }
      @items.each_value.count { |item| item.poll_item[:revents] != 0 }
    end

    # @return [Boolean] whether a socket among them has been closed
    def gone?
      @items.any? { |_, item| item.gone? }
    end

    # @return [String]
    def inspect
      map { |item| "ptr [#{item.socket}], events [#{item.events}], revents [#{item.poll_item[:revents]}]" }.join(', ')
    end
    alias to_s inspect

    private

    # Lays the structures out anew after one was added or removed.
    def clean
      return unless @dirty

      store = FFI::MemoryPointer.new(ITEM_BYTES, [size, 1].max, true)
      @items.each_value.with_index { |item, index| item.relocate(store + (index * ITEM_BYTES)) }
      @store = store
      @dirty = false
    end
  end
end
