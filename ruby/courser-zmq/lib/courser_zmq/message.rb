# frozen_string_literal: true

module ZMQ
  # A `zmq_msg_t`: a message that stays in libzmq's memory until its bytes are asked for.
  #
  # Received into, it can be looked at through {#data} and {#size}, passed on to another socket or read with
  # {#copy_out_string}; only the last copies. Sent, it is empty afterwards, because libzmq took the bytes. One object
  # may be received into and sent any number of times, with no allocation at all.
  #
  # {#close} frees what it holds. Nothing else does: use {ManagedMessage} to leave that to the garbage collector.
  class Message
    include Content

    # @return [FFI::Pointer, nil] the `zmq_msg_t`, nil once closed
    attr_reader :pointer
    alias address pointer

    # @return [Message, nil] nil when it could not be made
    def self.create(message = nil)
      new(message)
    rescue *RACTOR_ERRORS
      raise
    rescue StandardError
      nil
    end

    # @return [Integer] bytes of a `zmq_msg_t`
    def self.msg_size
      LibZMQ.size_of_zmq_msg_t
    end

    # A message of `size` bytes to be written through {#data}, so that nothing is copied on the way out.
    #
    # @raise [MessageError] when there is not enough memory
    def self.of_size(size)
      message = new
      return message unless LibZMQ.zmq_msg_init_size(message.pointer, size) == -1

      LibZMQ.zmq_msg_init(message.pointer) # as it is after that failure, closing it would crash
      Util.error_check('zmq_msg_init_size', Util.fail_with(ENOMEM))
    end

    # @param message [String, nil] bytes to be copied in; without them it is empty, ready to be received into
    # @raise [MessageError] when there is not enough memory
    def initialize(message = nil)
      @pointer = FFI::MemoryPointer.new(LibZMQ.size_of_zmq_msg_t, 1, false)
      @used = false
      if message
        Util.error_check('zmq_msg_init_data', -1) if copy_in_string(message) == -1
      else
        Util.error_check('zmq_msg_init', LibZMQ.zmq_msg_init(@pointer))
        @used = true
      end
    end

    # @return [Integer] bytes of the content, 0 once closed
    def size
      @pointer ? LibZMQ.zmq_msg_size(@pointer) : 0
    end
    alias bytesize size

    # Where the content is. The memory is libzmq's: it is never to be freed, and it is gone once the message is closed,
    # sent or received into again.
    #
    # @return [FFI::Pointer] null once closed
    def data
      @pointer ? LibZMQ.zmq_msg_data(@pointer) : FFI::Pointer::NULL
    end

    # @return [String] a copy of the content, of binary encoding; empty once closed
    def copy_out_string
      return +'' unless @pointer

      Native::WINDOW.get_bytes(Native.zmq_msg_data(@pointer) - 1, Native.zmq_msg_size(@pointer))
    end
    alias to_s copy_out_string

    # Frees the content. Closing again does nothing.
    #
    # @return [Integer] 0 or -1
    def close
      return 0 unless @pointer

      rc = LibZMQ.zmq_msg_close(@pointer)
      @pointer = nil
      rc
    end

    # @return [Boolean]
    def closed?
      @pointer.nil?
    end

    # @param property [Integer] such as {ZMQ::MORE}
    # @return [Integer] its value, or -1
    def get(property)
      @pointer ? LibZMQ.zmq_msg_get(@pointer, property) : Util.fail_with(EFAULT)
    end

    # @return [Integer] 0 or -1
    def set(property, value)
      @pointer ? LibZMQ.zmq_msg_set(@pointer, property, value) : Util.fail_with(EFAULT)
    end

    # A property that came with the peer's handshake, such as "Peer-Address", "User-Id" or "Socket-Type".
    #
    # @return [String, nil] nil when the message does not have it
    def gets(property)
      LibZMQ.zmq_msg_gets(@pointer, property.to_s) if @pointer
    end

    # @return [Boolean] whether the message it belongs to has further parts
    def more?
      get(MORE) == 1
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{closed? ? 'closed' : "#{size} bytes"}>"
    end
  end

  # A message whose content the garbage collector frees, whether it was filled here or received. That costs a finalizer
  # for each object: {Message} with {Message#close} is the faster one.
  class ManagedMessage < Message
    prepend HeldOnJvm::ByMessage if Lifecycle::JRUBY

    def initialize(message = nil)
      super
      ObjectSpace.define_finalizer(self, self.class.releaser(@pointer))
    end

    def close
      ObjectSpace.undefine_finalizer(self) if @pointer
      super
    end

    def initialize_copy(source)
      ObjectSpace.undefine_finalizer(self) # Ruby copies it, too
      super
      return unless @pointer

      HeldOnJvm.hold(@pointer) if Lifecycle::JRUBY
      ObjectSpace.define_finalizer(self, self.class.releaser(@pointer))
    end
    private :initialize_copy

    # The finalizer. Made here so that it holds the memory and not the object.
    # @api private
    def self.releaser(pointer)
      return proc { LibZMQ.zmq_msg_close(pointer) } unless Lifecycle::JRUBY

      proc do
        LibZMQ.zmq_msg_close(pointer)
        HeldOnJvm.let_go(pointer)
      end
    end
  end
end
