# frozen_string_literal: true

# Contexts and sockets for one example, released when it ends.
module Sockets
  # Seconds that may pass on the busiest machine before what need not wait is done. What these examples look for
  # would wait for ever.
  SOON = 20

  def self.included(base)
    base.after do
      (@opened_sockets || []).each(&:close)
      (@opened_contexts || []).each(&:terminate)
    end
  end

  # The context of the example.
  def context
    @context ||= new_context
  end

  def new_context(...)
    ZMQ::Context.new(...).tap { |made| (@opened_contexts ||= []) << made }
  end

  def new_socket(type, **options)
    socket = ZMQ::Socket.new(context, type)
    (@opened_sockets ||= []) << socket
    socket.set!(linger: 0, **options)
  end

  # Two sockets, the first of them bound and the second connected.
  def connected(bound_type, connected_type, transport: :inproc, bound: {}, connected: {})
    first = new_socket(bound_type, **bound)
    second = new_socket(connected_type, **connected)
    second.connect!(first.bind!(endpoint(transport)))
    [first, second]
  end

  def endpoint(transport = :inproc)
    case transport
    when :inproc then "inproc://#{rand(1 << 64)}"
    when :ipc then "ipc:///tmp/courser-zmq-#{Process.pid}-#{rand(1 << 32)}"
    else 'tcp://127.0.0.1:*'
    end
  end

  # An endpoint where no socket listens.
  def dead_endpoint
    'tcp://127.0.0.1:9'
  end

  # Receives with the interface that returns codes; nil where there is nothing.
  def receive_now(socket)
    string = +''
    socket.recv_string(string, ZMQ::DONTWAIT) == -1 ? nil : string
  end

  # Waits until the block gives something true.
  def eventually(limit = SOON)
    deadline = now + limit
    loop do
      result = yield
      return result if result
      raise "not within #{limit} s" if now > deadline

      sleep 0.01
    end
  end

  # Runs the block for a moment and interrupts it where it waits: elsewhere an interrupt takes the message with it that
  # the program has in hand.
  def interrupted_in_a_wait(&block)
    Timeout.timeout(rand / 200) { Thread.handle_interrupt(Exception => :on_blocking, &block) }
  rescue Timeout::Error
    nil
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Seconds that the block takes.
  def seconds
    start = now
    yield
    now - start
  end
end
