# frozen_string_literal: true

module ZMQ
  # Keeps objects alive while libzmq works on what they hold.
  #
  # The JVM may collect an object as soon as no Ruby code will touch it again, even in the midst of a native call on its
  # memory: a {ManagedMessage} would be freed while it is being sent. Writing to a field after the call is a touch that
  # no compiler can leave out. And JRuby frees FFI's memory before it runs the finalizers that still need it.
  # MRI needs none of this: there, what a running method or a finalizer uses stays.
  #
  # @api private
  module HeldOnJvm
    @memory = Lifecycle.shared_hash

    # @param pointer [FFI::Pointer] whose memory is to stay until {.let_go}
    def self.hold(pointer)
      @memory[pointer.address] = pointer
    end

    # @param pointer [FFI::Pointer]
    def self.let_go(pointer)
      @memory.delete(pointer.address)
    end

    # For sockets, which hold the message on its way. Both methods do what {Socket::Sending} and {Socket::Receiving} do,
    # written out again: calling those with `super` costs as much as libzmq takes for a small message.
    module BySocket
      def sendmsg(message, flags = 0)
        pointer = message.address or return Util.fail_with(EFAULT)

        @held = message
        rc = Native.zmq_msg_send(pointer, @native, flags | DONTWAIT)
        rc = wait_or_fail(pointer, flags) if rc == -1
        @held = nil
        rc
      end

      def recvmsg(message, flags = 0)
        pointer = message.address or return Util.fail_with(EFAULT)

        @held = message
        rc = @eager ? Native.zmq_msg_recv(pointer, @native, flags | DONTWAIT) : fetch(pointer, flags)
        rc = missed(pointer, flags) if rc == -1 && @eager
        @held = nil
        rc
      end

      private

      def put_parts(parts, *)
        @held = parts
        rc = super
        @held = nil
        rc
      end
    end

    # For messages with a finalizer. The memory stays until that has run.
    module ByMessage
      def initialize(*)
        super
        HeldOnJvm.hold(@pointer)
      end

      def close
        pointer = @pointer
        rc = super
        HeldOnJvm.let_go(pointer) if pointer
        rc
      end

      %i[copy_in_string copy_in_bytes copy move size bytesize copy_out_string to_s get set gets more?].each do |name|
        define_method(name) do |*arguments|
          result = super(*arguments)
          @touched = true
          result
        end
      end
    end
  end
end
