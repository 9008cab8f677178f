# frozen_string_literal: true

require 'forwardable'

module ZMQ
  # One thing that a {Poller} watches, with the native structure that says so.
  class PollItem
    extend Forwardable

    def_delegators :@poll_item, :pointer, :readable?, :writable?

    # @return [Socket, IO, Object] what is watched
    attr_accessor :pollable
    # @return [LibZMQ::PollItem]
    attr_accessor :poll_item

    # @param zmq_poll_item [LibZMQ::PollItem, nil] a new one unless given
    def initialize(zmq_poll_item = nil)
      @poll_item = zmq_poll_item || LibZMQ::PollItem.new
    end

    # @param pointer [FFI::Pointer] a native structure
    # @return [PollItem]
    def self.from_pointer(pointer)
      new(LibZMQ::PollItem.new(pointer))
    end

    # @param pollable [Socket, IO, #socket, #posix_fileno, #io]
    # @return [PollItem]
    def self.from_pollable(pollable)
      item = new
      item.pollable = pollable
      item.watch(pollable)
      item
    end

    # Points libzmq's item at the socket or the descriptor of `pollable`.
    # @api private
    def watch(pollable)
      if pollable.is_a?(Socket)
        self.socket = pollable.handle&.pointer
      elsif pollable.respond_to?(:socket)
        self.socket = pollable.socket
      elsif pollable.respond_to?(:posix_fileno)
        self.fd = pollable.posix_fileno
      elsif pollable.respond_to?(:io)
        self.fd = pollable.io.posix_fileno
      end
    end

    # @return [Boolean, nil] whether what is watched has been closed
    def closed?
      if pollable.respond_to?(:closed?)
        pollable.closed?
      elsif pollable.respond_to?(:socket)
        pollable.socket.nil?
      elsif pollable.respond_to?(:io)
        pollable.io.closed?
      end
    end

    def socket
      @poll_item[:socket]
    end

    def socket=(pointer)
      @poll_item[:socket] = pointer
      @behind = Lifecycle.socket_at(socket)
    end

    def fd
      @poll_item[:fd]
    end

    def fd=(number)
      @poll_item[:fd] = number
    end

    def events
      @poll_item[:events]
    end

    def events=(events)
      @poll_item[:events] = events
    end

    # Moves the native structure to another place.
    #
    # @param pointer [FFI::Pointer]
    # @api private
    def relocate(pointer)
      LibC.memcpy(pointer, @poll_item.pointer, LibZMQ::PollItem.size)
      @poll_item = LibZMQ::PollItem.new(pointer)
    end

    # @return [Integer] the file descriptor that tells of events, which for a socket is libzmq's
    # @api private
    def descriptor
      @descriptor ||= socket.null? ? fd : Native.event_descriptor(socket)
    end

    # @return [IO] an object for {#descriptor}
    # @api private
    def io
      return @io ||= IO.for_fd(descriptor, autoclose: false) unless socket.null?

      pollable.respond_to?(:posix_fileno) ? pollable : pollable.io
    end

    # @return [Socket, nil] what libzmq is asked about, also where another object stands for it
    # @api private
    def watched
      pollable.is_a?(Socket) ? pollable : @behind
    end

    # @return [Boolean] whether it is a socket that is watched for messages and has put one aside
    # @api private
    def kept?
      watched&.kept? && events.anybits?(POLLIN)
    end

    # @return [Boolean, nil] whether it was a socket that has been closed, whose memory is gone
    # @api private
    def gone?
      watched ? watched.closed? : !socket.null? && closed?
    end
  end
end
