# frozen_string_literal: true

module ZMQ
  # Error numbers and their texts, result codes, keys and ports.
  class Util
    # The ports that {bind_to_random_tcp_port} chooses from.
    RANDOM_PORTS = (10_000..65_534)

    # A new pair of CURVE keys, each as 40 characters of Z85.
    #
    # @return [Array(String, String)] the public and the secret key
    # @raise [NotSupportedError] when libzmq was built without CURVE
    def self.curve_keypair
      public_key = FFI::MemoryPointer.new(:char, Options::KEY_BYTES)
      secret_key = FFI::MemoryPointer.new(:char, Options::KEY_BYTES)
      rc = LibZMQ.zmq_curve_keypair(public_key, secret_key)
      return [public_key.read_string, secret_key.read_string] if resultcode_ok?(rc)

      raise NotSupportedError.new('zmq_curve_keypair', rc, errno, 'libzmq was built without CURVE; it needs libsodium')
    end

    # The public key that belongs to a secret one.
    #
    # @param secret_key [String] 40 characters of Z85
    # @return [String] 40 characters of Z85
    # @raise [SocketError] EINVAL for what is no key
    def self.curve_public(secret_key)
      public_key = FFI::MemoryPointer.new(:char, Options::KEY_BYTES)
      # libzmq has room for one key on its stack, and does not look how long the text is that it decodes there.
      rc = if secret_key.bytesize == Options::KEY_BYTES - 1 && !secret_key.b.include?("\0")
             LibZMQ.zmq_curve_public(public_key, FFI::MemoryPointer.from_string(secret_key))
           else
             fail_with(EINVAL)
           end
      error_check('zmq_curve_public', rc)
      public_key.read_string
    end

    # @param bytes [String] whose size is a multiple of 4
    # @return [String, nil] the same in Z85, 5 characters for 4 bytes; nil for another size
    def self.z85_encode(bytes)
      text = FFI::MemoryPointer.new(:char, (bytes.bytesize / 4 * 5) + 1)
      LibZMQ.zmq_z85_encode(text, FFI::MemoryPointer.from_string(bytes), bytes.bytesize)
    end

    # @param text [String] whose size is a multiple of 5
    # @return [String, nil] the bytes; nil for what is no Z85
    def self.z85_decode(text)
      bytes = FFI::MemoryPointer.new(:uint8, (text.bytesize / 5 * 4) + 1)
      result = LibZMQ.zmq_z85_decode(bytes, text)
      bytes.get_bytes(0, text.bytesize / 5 * 4) unless result.null?
    end

    # @return [Boolean] whether `rc` says that a call succeeded
    def self.resultcode_ok?(rc) # rubocop:disable Naming/MethodParameterName
      rc >= 0
    end

    # The error number of the last call of this thread that failed. It is the one FFI keeps for each thread, so neither
    # other threads nor the interpreter's own system calls get at it.
    #
    # @return [Integer]
    def self.errno
      FFI.errno
    end

    # @return [String] what {errno} means
    def self.error_string
      message_of(errno)
    end

    # @return [String] what the error number `code` means
    def self.message_of(code)
      LibZMQ.zmq_strerror(code).read_string
    end

    # @return [true]
    # @raise [ZeroMQError] of the kind that fits `source` when `result_code` is -1
    def self.error_check(source, result_code)
      raise_error(source, result_code) if result_code == -1

      true
    end

    # @raise [ZeroMQError] of the kind that fits `source`, with {errno} and its text
    def self.raise_error(source, result_code)
      raise error_class(source).new(source, result_code, errno, error_string)
    end

    # @return [Boolean] whether the last call of this thread failed because it would have had to wait
    def self.eagain?
      errno == EAGAIN
    end

    # @return [Boolean] whether `source` is a function whose failure is a {ContextError}
    def self.context_error?(source)
      error_class(source) == ContextError
    end

    # @return [Boolean] whether `source` is a function whose failure is a {MessageError}
    def self.message_error?(source)
      error_class(source) == MessageError
    end

    # @return [Integer] one of the {RANDOM_PORTS}, which need not be free
    def self.random_port
      rand(RANDOM_PORTS)
    end

    # Sets what {errno} returns to `code`: for a call that failed before others were needed to clean up.
    #
    # @return [-1]
    def self.fail_with(code)
      FFI.errno = code
      # FFI notes the number when a call returns; this one returns it untouched.
      LibZMQ.zmq_errno
      -1
    end

    # Binds a socket to a free port above 10,000.
    #
    # @param socket [Socket]
    # @param host [String] address or interface
    # @param max_tries [Integer] how many ports to try
    # @return [Integer, nil] the port, nil when none of those tried was free
    def self.bind_to_random_tcp_port(socket, host = '127.0.0.1', max_tries = 500)
      max_tries.times do
        port = random_port
        return port if resultcode_ok?(socket.bind("tcp://#{host}:#{port}"))
        return nil unless errno == EADDRINUSE
      end
      nil
    end

    # @return [Boolean] whether libzmq was built with `capability`: "curve", "gssapi", "ipc", "pgm", "tipc", "draft" ...
    def self.has?(capability)
      LibZMQ.zmq_has(capability.to_s) == 1
    end

    # @api private
    def self.error_class(source)
      case source
      when 'zmq_socket', /\Azmq_ctx_/ then ContextError
      when /\Azmq_msg_/ then MessageError
      when /\Azmq_/ then SocketError
      else ZeroMQError
      end
    end
    private_class_method :error_class
  end
end
