# frozen_string_literal: true

module ZMQ
  # The calls on the path of a message, attached a second time in the shape that costs least: without releasing the
  # interpreter's lock where they cannot block, and with addresses as integers where a pointer object would be garbage.
  module Native
    extend FFI::Library

    ffi_lib_flags :now, :global
    ffi_lib LibZMQ::LIBRARY_NAMES

    # A native `unsigned long` converts quicker than the other integers, and those quicker than pointer objects.
    ADDRESS = FFI.type_size(:ulong) == FFI::Pointer.size ? :ulong : :uint64

    attach_function :zmq_send, [ADDRESS, :buffer_in, :size_t, :int], :int
    attach_function :zmq_msg_send, [:pointer, ADDRESS, :int], :int
    attach_function :zmq_msg_recv, [:pointer, ADDRESS, :int], :int
    attach_function :zmq_msg_data, %i[pointer], ADDRESS
    attach_function :zmq_msg_size, %i[pointer], :size_t
    attach_function :zmq_msg_more, %i[pointer], :int
    attach_function :zmq_msg_move, %i[pointer pointer], :int
    attach_function :zmq_setsockopt, %i[pointer int pointer size_t], :int
    attach_function :zmq_getsockopt, %i[pointer int pointer pointer], :int
    attach_function :zmq_poll, %i[pointer int long], :int

    attach_function :wait_send, :zmq_msg_send, [:pointer, ADDRESS, :int], :int, blocking: true
    attach_function :wait_recv, :zmq_msg_recv, [:pointer, ADDRESS, :int], :int, blocking: true

    ffi_lib FFI::Library::LIBC
    attach_function :poll, %i[pointer ulong int], :int, blocking: true
    attach_function :overwrite, :memcpy, [:buffer_out, ADDRESS, :size_t], :void

    # A received message larger than this is freed as soon as it was copied, and not by the next receive.
    KEEP_BYTES_MAX = 65_536
    # From this size on, overwriting a string of the right length costs less than making a new one: on MRI, which hands
    # the string's own memory to native code. Other Rubies hand it a copy.
    OVERWRITE_BYTES_MIN = RUBY_ENGINE == 'ruby' ? 64 : Float::INFINITY

    # The size that libzmq's int tells of this many bytes and of all above.
    SIZE_TOLD_MAX = (1 << 31) - 1

    # All memory from address 1 on. Reading through it at `address - 1` takes bytes out of a message without a pointer
    # object for every message (address 0 would make it the null pointer, which FFI refuses to read).
    WINDOW = FFI::Pointer.new(1)

    # @return [FFI::MemoryPointer] a new empty `zmq_msg_t`
    def self.new_message
      pointer = FFI::MemoryPointer.new(LibZMQ.size_of_zmq_msg_t, 1, false)
      LibZMQ.zmq_msg_init(pointer)
      pointer
    end

    # @param socket [FFI::Pointer]
    # @return [Integer] the file descriptor that tells of a socket's events
    def self.event_descriptor(socket)
      value = FFI::MemoryPointer.new(:int)
      zmq_getsockopt(socket, FD, value, FFI::MemoryPointer.new(:size_t).write_ulong(value.size))
      value.read_int
    end

    # An empty message. Moving it into another one frees what that held, in one call; it stays empty itself.
    BLANK = new_message

    # @param msg [FFI::Pointer] a `zmq_msg_t`
    # @param size [Integer] bytes of the message, as the receive has told them
    # @return [String] a copy of a received message, of binary encoding
    def self.bytes_of(msg, size)
      size = zmq_msg_size(msg) if size == SIZE_TOLD_MAX
      bytes = WINDOW.get_bytes(zmq_msg_data(msg) - 1, size)
      zmq_msg_move(msg, BLANK) if size > KEEP_BYTES_MAX
      bytes
    end
  end
end
