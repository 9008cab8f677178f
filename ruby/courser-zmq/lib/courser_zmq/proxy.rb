# frozen_string_literal: true

module ZMQ
  # Passes messages between two sockets, and a copy of each to a third one. Making one runs it: that returns when the
  # context is terminated.
  class Device
    # @return [nil]
    attr_reader :device

    # @return [Device, nil] nil when an argument is no socket
    def self.create(frontend, backend, capture = nil)
      new(frontend, backend, capture)
    rescue ArgumentError
      nil
    end

    # @param frontend [Socket]
    # @param backend [Socket]
    # @param capture [Socket, nil]
    # @raise [ArgumentError] when one of them is no socket
    def initialize(frontend, backend, capture = nil)
      sockets = { frontend: frontend, backend: backend, capture: capture }.compact
      sockets = { frontend: frontend, backend: backend }.merge(sockets)
      sockets.each do |role, socket|
        raise ArgumentError, "the #{role} is a #{socket.class}, not a ZMQ::Socket" unless socket.is_a?(Socket)
      end
      run(frontend, backend, capture)
    end

    private

    # Neither JRuby nor a fiber's scheduler can interrupt libzmq's own loop, so there it runs in a thread of its own.
    def run(frontend, backend, capture)
      return run_steered(frontend, backend, capture) if Lifecycle::JRUBY || Socket::Waiting::FIBERS.current_scheduler

      sockets = [frontend, backend, capture]
      pointers = sockets.map { |socket| socket&.socket }
      SteerableProxy.occupying(*sockets) do
        loop { break unless SteerableProxy.interrupted?(LibZMQ.zmq_proxy(*pointers), sockets) }
      end
    end

    def run_steered(frontend, backend, capture)
      proxy = SteerableProxy.new(frontend, backend, capture: capture)
      proxy.start.join
    rescue ZeroMQError => e
      # The context may have ended just before: that is the end, as it is while the proxy runs.
      raise unless e.eterm?
    ensure
      proxy&.stop
    end
  end

  # The name that libzmq has for it now.
  class Proxy < Device
  end
end
