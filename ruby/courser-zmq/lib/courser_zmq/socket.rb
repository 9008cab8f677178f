# frozen_string_literal: true

module ZMQ
  # A ZeroMQ socket. It belongs to one thread at a time.
  #
  # Each operation comes in two kinds: those that return a code, 0 or more for success and -1 for a failure that
  # {Util.errno} explains, and those that raise ({Raising}).
  class Socket
    include Uncopied
    include Closing
    include OptionAccess
    include Waiting
    include(Lifecycle::JRUBY ? WaitingOnJvm : WaitingInLibzmq)
    include Sending
    include Fetching
    include Receiving
    include Raising
    include Batches
    include InterpretedLoops
    include Compiled if CompiledLoops.available?
    prepend HeldOnJvm::BySocket if Lifecycle::JRUBY

    # @return [String] its type, such as "REQ"
    attr_reader :name

    # @return [Socket, nil] nil when it could not be made
    def self.create(context_ptr, type, opts = {})
      new(context_ptr, type, opts)
    rescue *RACTOR_ERRORS
      raise
    rescue StandardError
      nil
    end

    # @param name [Symbol, String] such as `:req`
    # @return [Integer]
    # @raise [ArgumentError] when there is no type of that name
    def self.type_number(name)
      SocketTypeNameMap.key(name.to_s.upcase) or raise ArgumentError, "no socket type named #{name.inspect}"
    end

    # @param context_ptr [Context, FFI::Pointer]
    # @param type [Integer] such as {ZMQ::REQ}
    # @param opts [Hash] `:receiver_class`: the class of received messages, {Message} unless given; another one has to
    #   have its methods
    # @raise [ContextError]
    def initialize(context_ptr, type, opts = {})
      context = context_ptr.is_a?(Context) ? context_ptr.pointer : context_ptr
      @ended = nil
      prepare_receiving(opts[:receiver_class] || Message)
      @socket = make_socket(context, type)
      @name = SocketTypeNameMap[type]
      manage(context)
    end

    # @param address [String] such as "tcp://127.0.0.1:5555"
    # @return [Integer] 0 or -1
    def bind(address)
      code(LibZMQ.zmq_bind(@socket, text(address)))
    end

    # @param address [String]
    # @return [Integer] 0 or -1
    def connect(address)
      code(LibZMQ.zmq_connect(@socket, text(address)))
    end

    # @param endpoint [String]
    # @return [Integer] 0 or -1
    def unbind(endpoint)
      code(LibZMQ.zmq_unbind(@socket, text(endpoint)))
    end

    # @param endpoint [String]
    # @return [Integer] 0 or -1
    def disconnect(endpoint)
      code(LibZMQ.zmq_disconnect(@socket, text(endpoint)))
    end

    # Reports what happens to the socket's connections.
    #
    # @param events [Integer] which kinds of event
    # @yieldparam monitor [Monitor] closed when the block ends
    # @return [Object, Monitor] what the block returned, or the monitor where there is no block
    # @raise [ZeroMQError]
    def monitor(events = EVENT_ALL_V1)
      monitor = Monitor.new(self, events)
      return monitor unless block_given?

      begin
        yield monitor
      ensure
        monitor.close
      end
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{name}#{' closed' if closed?}>"
    end

    # What it is released by.
    # @api private
    attr_reader :handle

    # Sets options, binds and connects; where that fails, the socket is closed.
    # @api private
    def set_up(bind, connect, options)
      set!(**options)
      Array(bind).each { |endpoint| bind!(endpoint) }
      Array(connect).each { |endpoint| connect!(endpoint) }
    rescue StandardError
      close
      raise
    end

    # The finalizer. Made here so that it does not hold the object it is for.
    # @api private
    def self.dropper(handle)
      proc { Lifecycle.drop(handle) }
    end

    private

    def make_socket(context, type)
      raise ContextError.new('zmq_socket', 0, ETERM, 'the context is terminated') if context.nil? || context.null?

      socket = LibZMQ.zmq_socket(context, type)
      return socket unless socket.nil? || socket.null?

      raise ContextError.new('zmq_socket', 0, Util.errno, Util.error_string)
    end

    def manage(context)
      return unless @socket.is_a?(FFI::Pointer)

      @native = @socket.address
      @handle = SocketHandle.new(self, @socket, ContextHandle.of(context))
      ObjectSpace.define_finalizer(self, self.class.dropper(@handle))
    end

    # libzmq ends the process where it gets no endpoint at all.
    def text(endpoint)
      endpoint.nil? ? raise(TypeError, 'no implicit conversion of nil into String') : endpoint
    end

    # @return [Integer] a result code, with the right error where the socket was closed by its context
    def code(result)
      result == -1 ? failed : result
    end
  end
end
