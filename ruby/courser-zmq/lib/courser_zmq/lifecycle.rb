# frozen_string_literal: true

# How long the end of a socket, a context and a program may take, and what sees to it.
module ZMQ
  class << self
    # Milliseconds that a closed socket goes on sending what it holds when the program has not set {LINGER}; -1 is for
    # ever. Sockets take it when they are made. libzmq's own default is for ever, which makes a program with an
    # unreachable peer never end.
    #
    # @return [Integer]
    attr_accessor :default_linger_ms

    # Milliseconds that the end of the program waits for messages of contexts that were not terminated. A finite
    # {LINGER} set on one of their sockets extends it.
    #
    # @return [Integer]
    attr_accessor :exit_linger_ms
  end
  self.default_linger_ms = 30_000
  self.exit_linger_ms = 1_000

  # For objects that release something native when they go: two of them would release it twice.
  #
  # @api private
  module Uncopied
    private

    def initialize_copy(_source)
      ObjectSpace.undefine_finalizer(self) # Ruby has copied it already
      raise TypeError, "a #{self.class} cannot be copied"
    end
  end

  # What is alive: contexts and their sockets. It lets them be released in the right order by all that may let go of
  # them: the program, the garbage collector, the end of the process or a fork.
  #
  # Nothing here takes a lock, so all of it may run in a signal handler. What the garbage collector drops is handed to a
  # thread of its own, because a finalizer runs in the midst of whatever code happens to be running and must not wait.
  #
  # @api private
  module Lifecycle
    JRUBY = RUBY_ENGINE == 'jruby'

    # @return [#[], #[]=, #delete, #values] a hash that threads may share
    def self.shared_hash
      return {} unless JRUBY

      require 'java'
      java.util.concurrent.ConcurrentHashMap.new
    end

    @contexts = shared_hash
    @dropped = Queue.new

    class << self
      # @return [Array<ContextHandle>] the live contexts
      def contexts
        @contexts.values.to_a
      end

      # @return [ContextHandle, nil] the live context at an address
      def context_at(address)
        @contexts[address]
      end

      # @param pointer [FFI::Pointer]
      # @return [Socket, nil] the live one that this is the native socket of
      def socket_at(pointer)
        contexts.lazy.filter_map { |context| context.socket_at(pointer.address) }.first
      end

      # @param handle [ContextHandle]
      def register(handle)
        @contexts[handle.pointer.address] = handle
        Finish.arm if Finish.near
      end

      # @param handle [ContextHandle]
      def unregister(handle)
        @contexts.delete(handle.pointer.address)
      end

      # Takes a handle that the garbage collector found unused.
      #
      # @param handle [Handle]
      def drop(handle)
        return if Finish.begun || handle.released?

        @dropped << handle
        @reaper = Thread.new { reap } unless @reaper&.alive?
      rescue ThreadError
        nil # the program is about to end
      end

      # Makes a child process forget its parent's sockets and contexts: libzmq's threads do not exist in it.
      def abandon
        @reaper = nil
        @dropped.clear
        Finish.abandon
        return if @contexts.empty?

        @contexts.clear
        [Socket, Context].each { |kind| ObjectSpace.each_object(kind, &:abandon) }
      end

      private

      def reap
        Thread.current.name = 'courser-zmq reaper'
        loop do
          @dropped.pop.reap
        rescue StandardError => e
          warn "courser-zmq: releasing a dropped object failed: #{e.message}"
        end
      end
    end

    # Runs {Lifecycle.abandon} in every child process. `daemon` forks without going through `_fork`.
    module ForkHook
      def _fork
        super.tap { |pid| Lifecycle.abandon if pid.zero? }
      end

      def daemon(...)
        super.tap { Lifecycle.abandon }
      end
    end

    # The same for Ruby 3.0, which has no `_fork`.
    module OldForkHook
      def fork
        return super.tap { |pid| Lifecycle.abandon unless pid } unless block_given?

        super() do
          Lifecycle.abandon
          yield
        end
      end
    end

    if JRUBY
      # There is no fork.
    elsif Process.respond_to?(:_fork)
      Process.singleton_class.prepend(ForkHook)
    else
      [Process.singleton_class, Kernel.singleton_class, Kernel].each { |place| place.prepend(OldForkHook) }
    end
  end
end
