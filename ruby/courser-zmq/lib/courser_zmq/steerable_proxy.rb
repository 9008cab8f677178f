# frozen_string_literal: true

module ZMQ
  # A proxy in a thread of its own that can be paused, resumed, asked for its counts and stopped.
  #
  # @example
  #   proxy = ZMQ::SteerableProxy.new(frontend, backend).start
  #   proxy.pause
  #   proxy.resume
  #   proxy.stop
  #
  # From {#start} to {#stop} the sockets are the proxy's; afterwards they are the program's again, to be closed by it.
  class SteerableProxy
    # What has passed through a proxy, each way, in messages and bytes.
    Statistics = Struct.new(:frontend_messages_in, :frontend_bytes_in, :frontend_messages_out, :frontend_bytes_out,
                            :backend_messages_in, :backend_bytes_in, :backend_messages_out, :backend_bytes_out)

    # What libzmq 4.3.5 takes for each other.
    MIXED_UP = { 'PAUSE' => 'RESUME', 'RESUME' => 'PAUSE' }.freeze
    private_constant :MIXED_UP

    # Seconds that the proxy's thread may take to answer.
    ANSWER_TIMEOUT = 5

    # Marks sockets as being in use for as long as the block runs.
    #
    # @api private
    def self.occupying(*sockets)
      handles = sockets.compact.map(&:handle)
      # On JRuby, no other thread could make this one leave libzmq.
      watcher = Lifecycle::JRUBY ? nil : Thread.current
      handles.each { |handle| (handle.busy = true) && (handle.watcher = watcher) }
      yield
    ensure
      Cleanup.complete { handles&.each { |handle| handle.busy = handle.watcher = nil } }
    end

    # Whether a signal or the end of a wait interrupted a proxy that is to go on.
    #
    # @api private
    def self.interrupted?(result, sockets)
      result == -1 && Util.errno == EINTR && sockets.none? { |socket| socket&.closed? }
    end

    # @param frontend [Socket]
    # @param backend [Socket]
    # @param capture [Socket, nil] gets a copy of every message
    # @raise [ArgumentError] when one of them is no socket
    # @raise [NotSupportedError] when libzmq has no steerable proxy
    def initialize(frontend, backend, capture: nil)
      unless LibZMQ.respond_to?(:zmq_proxy_steerable)
        raise NotSupportedError.new('zmq_proxy_steerable', -1, ENOTSUP, 'libzmq has no steerable proxy')
      end

      @sockets = [frontend, backend, capture]
      return if [frontend, backend, *capture].all?(Socket)

      raise ArgumentError, 'a proxy works between ZMQ::Sockets'
    end

    # Starts passing messages.
    #
    # @return [self]
    def start
      raise ThreadError, 'the proxy runs already' if @thread

      open_control
      @thread = Thread.new { run }
      @mixed_up = mixed_up?
      self
    end

    # Stops reading from both sides until {#resume}.
    #
    # @return [self]
    def pause
      command('PAUSE')
    end

    # @return [self]
    def resume
      command('RESUME')
    end

    # @return [Statistics]
    # @raise [TimeoutError] when the proxy does not answer
    def statistics
      command('STATISTICS')
      Statistics.new(*@near.receive_message(timeout: ANSWER_TIMEOUT).map { |part| part.unpack1('Q') })
    end

    # Ends the proxy and waits until it has let go of its sockets.
    #
    # @return [nil]
    def stop
      return unless @thread

      @near.send_string('TERMINATE', DONTWAIT) if running?
      @thread.join
      close_control
      @thread = nil
    end

    # Waits until it ends by itself, which it does when the context is terminated.
    #
    # @param seconds [Numeric, nil] at most
    # @return [self, nil] nil when the time was up
    def join(seconds = nil)
      return self unless @thread

      @thread.join(seconds) && self
    end

    # @return [Boolean]
    def running?
      !@thread.nil? && @thread.alive?
    end

    private

    # The pair over which the proxy's thread takes commands. The context can end in between, and waits for what is open.
    def open_control
      context = @sockets.first.handle.context.pointer
      endpoint = "inproc://courser-zmq-proxy-#{object_id}"
      @far = Socket.new(context, PAIR)
      @far.bind!(endpoint)
      @near = Socket.new(context, PAIR)
      @near.connect!(endpoint)
    rescue ZeroMQError
      close_control
      raise
    end

    def close_control
      [@near, @far].compact.each(&:close)
      @near = @far = nil
    end

    def run
      pointers = [*@sockets, @far].map { |socket| socket&.socket }
      self.class.occupying(*@sockets, @far) do
        loop { break unless self.class.interrupted?(LibZMQ.zmq_proxy_steerable(*pointers), @sockets) }
      end
    end

    def command(name)
      raise ThreadError, 'the proxy is not running' unless @thread

      meant = @mixed_up ? MIXED_UP.fetch(name, name) : name
      @near.send_message(meant, timeout: ANSWER_TIMEOUT)
      @near.receive_message(timeout: ANSWER_TIMEOUT) if @mixed_up && MIXED_UP.key?(name)
      self
    end

    # libzmq 4.3.5 pauses when it is to resume and the other way round, and answers either with an empty message. Some
    # systems have mended theirs: a command that changes nothing, and a second one that is always answered, tell.
    def mixed_up?
      return false unless LibZMQ.version_number == 40_305

      %w[RESUME STATISTICS].each { |name| @near.send_message(name, timeout: ANSWER_TIMEOUT) }
      return false unless @near.receive_message(timeout: ANSWER_TIMEOUT) == ['']

      @near.send_message('PAUSE', timeout: ANSWER_TIMEOUT)
      2.times { @near.receive_message(timeout: ANSWER_TIMEOUT) }
      true
    rescue TimeoutError, TerminatedError
      false # it has ended already, with its context
    end
  end
end
