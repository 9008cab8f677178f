# frozen_string_literal: true

module ZMQ
  # Where sockets live, with the threads that do their input and output. One for each process is usual.
  #
  # Contexts may be shared by threads; sockets may not.
  class Context
    include Uncopied

    # @return [FFI::Pointer, nil] libzmq's context, nil once terminated or about to be
    attr_reader :context
    # @return [Integer]
    attr_reader :io_threads
    # @return [Integer]
    attr_reader :max_sockets
    alias pointer context

    # @return [Context, nil] nil when it could not be made
    # @raise [Ractor::UnsafeError] outside of the main Ractor
    def self.create(opts = {})
      new(opts)
    rescue *RACTOR_ERRORS
      raise
    rescue StandardError
      nil
    end

    # With a block, gives it a new context, terminates that at the end and returns what the block returned.
    #
    # @param opts [Hash] as for {#initialize}
    # @return [Object, Context]
    def self.open(**opts)
      context = new(opts)
      return context unless block_given?

      begin
        yield context
      ensure
        context.terminate
      end
    end

    # @param opts [Hash{Symbol => Integer}, Integer] `:io_threads` (1 for each gigabit a second) and `:max_sockets`, or
    #   the number of threads alone
    # @raise [ContextError]
    def initialize(opts = {})
      ZMQ.expect_main_ractor(self.class)
      opts = { io_threads: opts } unless opts.respond_to?(:empty?)
      @io_threads = opts[:io_threads] || IO_THREADS_DFLT
      @max_sockets = opts[:max_sockets] || MAX_SOCKETS_DFLT
      @context = LibZMQ.zmq_ctx_new
      Util.error_check('zmq_ctx_new', @context.nil? || @context.null? ? -1 : 0)
      configure
      @handle = ContextHandle.new(@context)
      ObjectSpace.define_finalizer(self, self.class.dropper(@handle))
    end

    # Ends the context. Sockets that this thread made, or whose thread has ended, are closed; other threads get ETERM
    # from the calls they are in and have to close theirs, which this waits for, as it does for messages still to be
    # sent (see {ZMQ.default_linger_ms}).
    #
    # It can be interrupted, and called again to wait on.
    #
    # @return [Integer] 0 or -1
    def terminate
      return 0 unless @handle

      @context = nil # its memory goes also when this wait is interrupted
      rc = @handle.terminate
      ObjectSpace.undefine_finalizer(self)
      @handle = nil
      rc
    end

    # @param type [Integer] such as {ZMQ::REQ}
    # @return [Socket, nil] nil when it could not be made
    def socket(type)
      Socket.new(@context, type)
    rescue ContextError
      nil
    end

    # A socket set up in one go.
    #
    # @param type [Integer, Symbol] {ZMQ::PUSH} or `:push`
    # @param bind [String, Array<String>] endpoints
    # @param connect [String, Array<String>] endpoints
    # @param options [Hash{Symbol => Object}] socket options by name, such as `linger: 0` or `subscribe: 'a'`
    # @yieldparam socket [Socket] closed when the block ends
    # @return [Object, Socket] what the block returned, or the socket where there is no block
    # @raise [ZeroMQError]
    def open(type, bind: [], connect: [], **options)
      socket = Socket.new(@context, type.is_a?(Integer) ? type : Socket.type_number(type))
      socket.set_up(bind, connect, options)
      return socket unless block_given?

      begin
        yield socket
      ensure
        socket.close
      end
    end

    # @return [Boolean]
    def terminated?
      @context.nil?
    end

    # Sets an option of the context, such as {ZMQ::MAX_MSGSZ}.
    #
    # @raise [ContextError]
    def set!(option, value)
      Util.error_check('zmq_ctx_set', LibZMQ.zmq_ctx_set(@context, option, value))
      self
    end

    # @return [Integer] an option of the context, -1 when there is no such option
    def get(option)
      LibZMQ.zmq_ctx_get(@context, option)
    end

    # Forgets the context in a child process.
    # @api private
    def abandon
      @context = @handle = nil
    end

    # The finalizer. Made here so that it does not hold the object it is for.
    # @api private
    def self.dropper(handle)
      proc { Lifecycle.drop(handle) }
    end

    private

    def configure
      set!(IO_THREADS, @io_threads)
      set!(MAX_SOCKETS, @max_sockets)
    rescue ContextError
      LibZMQ.zmq_ctx_term(@context)
      raise
    end
  end
end
