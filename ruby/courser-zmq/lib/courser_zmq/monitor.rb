# frozen_string_literal: true

module ZMQ
  # Tells what happens to a socket's connections: connected, accepted, disconnected, handshake failed ...
  #
  # @example
  #   socket.monitor do |monitor|
  #     socket.connect!('tcp://127.0.0.1:5555')
  #     event = monitor.next_event(timeout: 1)
  #     event.name #=> :connected
  #   end
  #
  # A monitor is a socket and belongs to one thread at a time, which need not be that of the socket it watches.
  class Monitor
    # One thing that happened.
    #
    # `number` is such as {ZMQ::EVENT_CONNECTED}, `value` what comes with it (a file descriptor, an error number,
    # milliseconds), `address` the endpoint.
    Event = Struct.new(:number, :value, :address) do
      # @return [Symbol] such as `:connected`; `:unknown` for one that this gem has no name for
      def name
        NAMES.fetch(number, :unknown)
      end

      # @return [Boolean] whether it tells that a connection could not be had, or was lost
      def failure?
        FAILURES.include?(name)
      end

      # @return [String, nil] what the value means where it is an error number
      def error
        Util.message_of(value) if ERROR_VALUES.include?(name)
      end

      # @return [String]
      def to_s
        [name, address, error].compact.join(' ')
      end
    end

    # How many events wait to be read. Beyond that libzmq's I/O thread would wait for the reader.
    BACKLOG_MAX = 100_000

    NAMES = %i[
      connected connect_delayed connect_retried listening bind_failed accepted accept_failed closed close_failed
      disconnected monitor_stopped handshake_failed_no_detail handshake_succeeded handshake_failed_protocol
      handshake_failed_auth
    ].to_h { |name| [ZMQ.const_get("EVENT_#{name.upcase}"), name] }.freeze
    FAILURES = %i[
      bind_failed accept_failed close_failed disconnected handshake_failed_no_detail handshake_failed_protocol
      handshake_failed_auth
    ].freeze
    ERROR_VALUES = %i[bind_failed accept_failed close_failed handshake_failed_no_detail].freeze
    private_constant :NAMES, :FAILURES, :ERROR_VALUES

    # @param socket [Socket] the one to watch
    # @param events [Integer] which kinds of event
    # @raise [ZeroMQError]
    def initialize(socket, events = EVENT_ALL_V1)
      Util.error_check('zmq_socket_monitor', Util.fail_with(ENOTSOCK)) if socket.closed?

      @socket = socket
      @endpoint = "inproc://courser-zmq-monitor-#{object_id}"
      @receiver = Socket.new(socket.handle.context.pointer, PAIR)
      start(events)
    end

    # @param timeout [Numeric, nil] seconds to wait; nil for ever
    # @return [Event, nil] nil when the time was up or the socket has been closed
    def next_event(timeout: nil)
      return if @receiver.closed?

      event, address = @receiver.receive_message(timeout: timeout)
      number, value = event.unpack('Sl')
      @receiver.close if number == EVENT_MONITOR_STOPPED
      Event.new(number, value, address)
    rescue TimeoutError, TerminatedError
      nil
    end

    # Gives the events one after the other, until the socket is closed or, given a timeout, none came in time.
    #
    # @param timeout [Numeric, nil] seconds to wait for each
    # @yieldparam event [Event]
    # @return [self, Enumerator] without a block, an enumerator
    def each_event(timeout: nil)
      return enum_for(:each_event, timeout: timeout) unless block_given?

      while (event = next_event(timeout: timeout))
        yield event
      end
      self
    end

    # Stops watching.
    #
    # @return [nil]
    def close
      return if @receiver.closed?

      LibZMQ.zmq_socket_monitor(@socket.handle.pointer, nil, 0) if watching?
      @receiver.close
      nil
    end

    # @return [Boolean]
    def closed?
      @receiver.closed?
    end

    private

    def start(events)
      @receiver.set!(rcvhwm: BACKLOG_MAX)
      @receiver.connect!(@endpoint)
      handle = @socket.handle
      Util.error_check('zmq_socket_monitor', LibZMQ.zmq_socket_monitor(handle.pointer, @endpoint, events))
      handle.monitored_at = @endpoint
    rescue StandardError
      @receiver.close
      raise
    end

    # A socket has one monitor: the next one takes the place of the one before.
    def watching?
      !@socket.closed? && @socket.handle.monitored_at == @endpoint
    end
  end
end
