# frozen_string_literal: true

module ZMQ
  class Message
    # How content gets into a message: bytes of strings, and what another message has.
    module Content
      # Makes a copy of `string` the content; what was in the message before is freed.
      #
      # @return [Integer] 0 or -1
      def copy_in_string(string)
        copy_in_bytes(string, string.bytesize)
      end

      # Makes a copy of the first `len` bytes of the string `bytes` the content; what was in it before is freed.
      #
      # @return [Integer] 0 or -1
      # @raise [RangeError] when there are not that many
      def copy_in_bytes(bytes, len)
        return Util.fail_with(EFAULT) unless @pointer

        buffer = buffer_with(bytes, len) or return Util.fail_with(ENOMEM)
        LibZMQ.zmq_msg_close(@pointer) if @used
        @used = true
        LibZMQ.zmq_msg_init_data(@pointer, buffer, len, LibC::Free, nil)
      end

      # Makes this message share the content of `source`.
      #
      # @param source [Message, FFI::Pointer]
      # @return [Integer] 0 or -1
      def copy(source)
        source = source.pointer if !source.is_a?(FFI::Pointer) && source.respond_to?(:pointer)
        return Util.fail_with(EFAULT) unless @pointer && source

        # libzmq would first release what it is to copy.
        @pointer.equal?(source) ? 0 : LibZMQ.zmq_msg_copy(@pointer, source)
      end

      # Takes the content of `source`, which is empty afterwards.
      #
      # @param source [Message, FFI::Pointer]
      # @return [Integer] 0 or -1
      def move(source)
        source = source.pointer if !source.is_a?(FFI::Pointer) && source.respond_to?(:pointer)
        return Util.fail_with(EFAULT) unless @pointer && source

        @pointer.equal?(source) ? 0 : LibZMQ.zmq_msg_move(@pointer, source)
      end

      private

      # @return [FFI::Pointer, nil] memory that `free` releases; nil when there is not enough
      def buffer_with(bytes, len)
        raise RangeError, "#{len} bytes cannot be copied" if len.negative?

        buffer = LibC.malloc(len)
        return (buffer if len.zero?) if buffer.null?

        buffer.put_bytes(0, bytes, 0, len)
      rescue StandardError
        LibC.free(buffer)
        raise
      end

      # What `dup` and `clone` give shares the content and is released by itself.
      def initialize_copy(source)
        super
        return if source.closed?

        @pointer = Native.new_message
        @used = true
        copy(source)
      end
    end
  end
end
