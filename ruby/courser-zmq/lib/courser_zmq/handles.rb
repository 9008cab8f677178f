# frozen_string_literal: true

require 'weakref'

module ZMQ
  # A native object that is released exactly once, by whichever thread: {Queue#pop} hands the right to do so to one
  # caller only, also among threads that run at the same time, and may be called in a signal handler, where a mutex may
  # not.
  #
  # @api private
  class Handle
    # @return [FFI::Pointer]
    attr_reader :pointer

    def initialize(pointer)
      @pointer = pointer
      @right = Queue.new << true
      @pid = Process.pid
    end

    # @return [Boolean] whether it is released or about to be
    def released?
      @right.empty? || @pid != Process.pid
    end

    private

    # @return [Boolean] true for the one caller who is to release it
    def take_right
      @pid == Process.pid && @right.pop(true)
    rescue ThreadError
      false
    end

    # @return [nil]
    def return_right
      @right << true
      nil
    end
  end

  # A libzmq context, and the sockets that live in it. A context that the program dropped ends once its last socket has
  # gone: `zmq_ctx_term` would wait for that socket.
  #
  # @api private
  class ContextHandle < Handle
    # Seconds between two looks at what the sockets' threads are doing while a termination waits for them.
    LOOK_AGAIN = 0.1

    # @param pointer [FFI::Pointer]
    # @param owned [Boolean] false for a context made through {LibZMQ}, which is its maker's to terminate
    def initialize(pointer, owned: true)
      super(pointer)
      @dropped = false
      @sockets = Lifecycle.shared_hash
      @longest_linger_ms = 0
      Lifecycle.register(self) if owned
    end

    # @return [ContextHandle] the handle of a context known by its address only
    def self.of(pointer)
      Lifecycle.context_at(pointer.address) || new(pointer, owned: false)
    end

    # @param socket [SocketHandle]
    def add(socket)
      @sockets[socket.pointer.address] = socket
    end

    # @param socket [SocketHandle]
    def remove(socket)
      @sockets.delete(socket.pointer.address)
      start_termination if @dropped && @sockets.empty? && !Lifecycle::Finish.begun
    end

    # @param address [Integer] of a native socket
    # @return [Socket, nil] the one of this context that it belongs to
    def socket_at(address)
      @sockets[address]&.object
    end

    # Terminates the context: closes those of its sockets that no thread can be using, then waits for the others to be
    # closed by the threads that use them, and for messages to leave. The wait can be interrupted and taken up again.
    #
    # @return [Integer] 0 or -1
    def terminate
      terminator = start_termination
      return 0 unless terminator

      close_idle_sockets until terminator.join(LOOK_AGAIN)
      rc, code = terminator.value
      rc.negative? ? Util.fail_with(code) : rc
    end

    # The garbage collector found the Context object unused. Its sockets may still be in use.
    def reap
      @dropped = true
      start_termination if @sockets.empty?
    end

    # Notes how long a socket was told to linger.
    #
    # @param milliseconds [Integer]
    def note_linger(milliseconds)
      @longest_linger_ms = milliseconds if milliseconds > @longest_linger_ms
    end

    # @return [Integer] how long the end of the program may wait for this context
    def exit_limit_ms
      [ZMQ.exit_linger_ms, @longest_linger_ms].max
    end

    # @return [Array<Thread>] those that use its sockets
    def users
      @sockets.values.map(&:owner)
    end

    # @return [Thread, nil] the one that terminates it already
    attr_reader :terminator

    # Closes idle sockets at the end of the program.
    def close_at_exit
      idle_sockets.each(&:close_at_exit)
    end

    # Terminates it at the end of the program, unless sockets are left in use.
    def terminate_at_exit
      return unless @sockets.values.all?(&:released?) && take_right

      # On MRI, an interrupt is meant to end this; a JVM signals its threads for reasons of its own.
      loop { break unless LibZMQ.terminate_context(pointer) == -1 && FFI.errno == EINTR && Lifecycle::JRUBY }
      Lifecycle.unregister(self)
    end

    private

    def idle_sockets
      @sockets.values.select(&:idle?)
    end

    def close_idle_sockets
      idle_sockets.each(&:close_for_context)
    end

    # @return [Thread, nil] the one that terminates the context
    def start_termination
      return @terminator unless take_right

      LibZMQ.zmq_ctx_shutdown(pointer)
      close_idle_sockets
      # A thread of its own, because no signal meant for the caller may end the call in it: interrupted just after it
      # succeeded, that would not be known, and a second call would be one on freed memory.
      @terminator = Thread.new { terminate_now }
    rescue ThreadError
      # The main thread has ended, so no thread can be made: {Lifecycle::Finish} sees to the context.
      return_right
    end

    def terminate_now
      rc = nil
      loop do
        rc = LibZMQ.terminate_context(pointer) || 0
        break unless rc.negative? && FFI.errno == EINTR
      end
      Lifecycle.unregister(self)
      [rc, FFI.errno]
    end
  end

  # A libzmq socket.
  #
  # @api private
  class SocketHandle < Handle
    # @return [ContextHandle]
    attr_reader :context
    # @return [Boolean] whether a proxy has the socket
    attr_accessor :busy
    # @return [Thread, nil] the one that waits for the socket outside of its own methods: in a {Poller} or in a proxy
    attr_accessor :watcher
    # @return [String, nil] where its monitor listens
    attr_accessor :monitored_at
    # @return [Thread] who used it last, as far as known: who made it or who last waited on it
    attr_accessor :owner
    # @return [Boolean] whether LINGER is the one that libzmq or the program chose, not {ZMQ.default_linger_ms}
    attr_reader :own_linger
    alias own_linger? own_linger

    # @param socket [Socket]
    # @param pointer [FFI::Pointer]
    # @param context [ContextHandle]
    def initialize(socket, pointer, context)
      super(pointer)
      @socket = WeakRef.new(socket)
      @context = context
      @owner = Thread.current
      @busy = false
      @own_linger = linger_ms >= 0
      self.linger_ms = ZMQ.default_linger_ms unless @own_linger
      context.add(self)
    end

    # @return [Socket, nil] whose handle it is; nil once the garbage collector has that
    def object
      @socket.__getobj__
    rescue WeakRef::RefError
      nil
    end

    # @return [Boolean] whether it may be closed from this thread
    def idle?
      !busy && !waiting? && (owner == Thread.current || ended?(owner))
    end

    # @return [Integer] 0 or -1
    def close
      return 0 unless take_right

      rc = LibZMQ.zmq_close(pointer)
      context.remove(self)
      rc
    end
    alias reap close

    # Closes it because its context ends, so that the Socket object reports ETERM from now on.
    def close_for_context
      @socket.end_with_context
    rescue WeakRef::RefError
      close
    end

    # Closes it because the program ends: then even an infinite LINGER has a limit.
    def close_at_exit
      self.linger_ms = ZMQ.exit_linger_ms if !own_linger || linger_ms.negative?
      close_for_context
    end

    # The program has set LINGER.
    #
    # @param milliseconds [Integer]
    def note_linger(milliseconds)
      @own_linger = true
      context.note_linger(milliseconds)
    end

    private

    # @return [Boolean] whether a thread runs no more Ruby code
    def ended?(thread)
      !thread.alive? || (thread == Thread.main && Lifecycle::Finish.begun)
    end

    def waiting?
      @socket.waiting?
    rescue WeakRef::RefError
      false
    end

    def linger_ms
      value = FFI::MemoryPointer.new(:int)
      Native.zmq_getsockopt(pointer, LINGER, value, FFI::MemoryPointer.new(:size_t).write_ulong(value.size))
      value.read_int
    end

    def linger_ms=(milliseconds)
      value = FFI::MemoryPointer.new(:int).write_int(milliseconds)
      Native.zmq_setsockopt(pointer, LINGER, value, value.size)
    end
  end
end
