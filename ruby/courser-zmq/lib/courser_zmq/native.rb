# frozen_string_literal: true

module ZMQ
  # The calls on the path of a message, attached a second time in the shape that costs least: without releasing the
  # interpreter's lock where they cannot block, and with addresses as integers where a pointer object would be garbage.
  module Native
    extend FFI::Library

    ffi_lib_flags :now, :global
    ffi_lib LibZMQ::LIBRARY_NAMES

    ADDRESS = FFI::Pointer.size == 8 ? :uint64 : :uint32

    attach_function :zmq_send, %i[pointer buffer_in size_t int], :int
    attach_function :zmq_msg_send, %i[pointer pointer int], :int
    attach_function :zmq_msg_recv, %i[pointer pointer int], :int
    attach_function :zmq_msg_data, %i[pointer], ADDRESS
    attach_function :zmq_msg_size, %i[pointer], :size_t
    attach_function :zmq_msg_more, %i[pointer], :int
    attach_function :zmq_msg_move, %i[pointer pointer], :int
    attach_function :zmq_setsockopt, %i[pointer int pointer size_t], :int
    attach_function :zmq_getsockopt, %i[pointer int pointer pointer], :int
    attach_function :zmq_poll, %i[pointer int long], :int

    attach_function :wait_send, :zmq_msg_send, %i[pointer pointer int], :int, blocking: true
    attach_function :wait_recv, :zmq_msg_recv, %i[pointer pointer int], :int, blocking: true

    ffi_lib FFI::Library::LIBC
    attach_function :poll, %i[pointer ulong int], :int, blocking: true
    attach_function :overwrite, :memcpy, [:buffer_out, ADDRESS, :size_t], :void

    # A received message larger than this is freed as soon as it was copied, and not by the next receive.
    KEEP_BYTES_MAX = 65_536
    # From this size on, overwriting a string of the right length costs less than making a new one.
    OVERWRITE_BYTES_MIN = 64
    # MRI hands a string's own memory to native code; other Rubies hand it a copy.
    OVERWRITES = RUBY_ENGINE == 'ruby'

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

    # Copies a received message into a string.
    #
    # @param msg [FFI::Pointer] a `zmq_msg_t`
    # @param size [Integer] bytes of the message
    # @param string [String] gets the bytes and binary encoding
    def self.copy_out(msg, size, string)
      address = zmq_msg_data(msg)
      if OVERWRITES && size == string.bytesize && size >= OVERWRITE_BYTES_MIN
        string.setbyte(0, 0) # so that it shares its memory with no other string
        overwrite(string, address, size)
        string.force_encoding(Encoding::BINARY) # also makes it forget what it knew of its old bytes
      else
        string.replace(WINDOW.get_bytes(address - 1, size))
      end
      zmq_msg_move(msg, BLANK) if size > KEEP_BYTES_MAX
    end

    # @param msg [FFI::Pointer] a `zmq_msg_t`
    # @param size [Integer] bytes of the message
    # @return [String] a copy of a received message, of binary encoding
    def self.bytes_of(msg, size)
      bytes = WINDOW.get_bytes(zmq_msg_data(msg) - 1, size)
      zmq_msg_move(msg, BLANK) if size > KEEP_BYTES_MAX
      bytes
    end
  end
end
