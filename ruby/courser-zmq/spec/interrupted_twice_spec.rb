# frozen_string_literal: true

# A second exception may come while what the first one has left is being put in order: from another thread (a timeout, a
# kill) or from a handler of a signal (Ctrl-C pressed twice). Only those of other threads can be made to wait.
RSpec.describe 'messages of several parts that are interrupted twice', :mri do
  # The calls of C functions at whose end an exception may come.
  calls = %i[zmq_msg_recv wait_recv zmq_msg_move zmq_msg_more zmq_getsockopt zmq_msg_close handle_interrupt new]

  # Remembers all messages that were made.
  let(:receiver_class) do
    Class.new(ZMQ::Message) do
      def self.made
        @made ||= []
      end

      def initialize(*)
        super
        self.class.made << self
      end
    end
  end
  let(:first) { new_socket(ZMQ::PAIR) }
  let(:second) { ZMQ::Socket.new(context, ZMQ::PAIR, receiver_class: receiver_class) }

  before { second.connect!(first.bind!(endpoint)) }
  after { second.close }

  # Calls the block at each place where the gem receives or polls, with its number.
  def at_places(action)
    thread = Thread.current
    number = 0
    tracing = TracePoint.new(:return, :b_return, :c_return) do |point|
      yield number += 1 if Thread.current == thread && place?(point)
    end
    tracing.enable(&action)
    number
  rescue IOError
    number
  end

  define_method(:place?) do |point|
    point.path.match?(%r{/courser_zmq/(socket|poller)/}) &&
      (point.event != :c_return || calls.include?(point.method_id))
  end

  # What is raised, as another thread raises it and as a signal's handler does.
  kinds = { 'other threads' => -> { Thread.current.raise(IOError) }, 'signals' => -> { raise IOError } }

  # Runs the action once for each two places, and the block behind that.
  def at_each_two_places(interrupt, action)
    (1..).each do |one|
      reached = nil
      (1..).each do |two|
        reached = at_places(action) { |number| interrupt.call if [one, one + two].include?(number) }
        yield one, two
        break if reached < one + two
      end
      break if reached < one
    end
  end

  # What comes until nothing does.
  def rest_of(socket)
    messages = []
    loop { messages << socket.receive_message(timeout: 0) }
  rescue ZMQ::TimeoutError
    messages
  end

  # Makes it wait without a look before, as it does after a receive that had to.
  def waits_at_once(socket)
    socket.instance_exec { (@eager = false) || @direct_waits = 10 }
  end

  receives = {
    'receive_message' => ->(socket, got) { got << socket.receive_message },
    'receive_message with a timeout' => ->(socket, got) { got << socket.receive_message(timeout: 1) },
    'receive_messages' => ->(socket, got) { got.concat(socket.receive_messages(1)) },
    'each_message' => ->(socket, got) { got << socket.each_message.first },
    'recv_strings' => ->(socket, got) { socket.recv_strings(list = []) && got << list },
    'recvmsgs' => ->(socket, got) { socket.recvmsgs(list = []) && got << list.map(&:copy_out_string) }
  }
  kinds.each do |whose, interrupt|
    receives.each do |name, receive|
      [true, false].each do |waiting|
        it "#{name} #{'that waits ' if waiting}takes all or nothing, by #{whose}", limit: 600 do
          got = []
          prepare = lambda do
            got.clear
            [%w[a b c], %w[d e]].each { |parts| first.send_strings(parts) }
            waits_at_once(second) if waiting
          end
          prepare.call
          at_each_two_places(interrupt, -> { receive.call(second, got) }) do |one, two|
            received = got + rest_of(second)
            expect([[%w[a b c], %w[d e]], [%w[d e]]]).to include(received), "at #{one} and #{two}: #{received}"
            prepare.call
          end
        end
      end
    end

    it "recvmsgs leaves no part in memory that nothing frees, by #{whose}" do
      list = []
      prepare = lambda do
        receiver_class.made.clear
        list.clear
        first.send_strings(%w[a b c])
      end
      prepare.call
      at_each_two_places(interrupt, -> { second.recvmsgs(list) }) do |one, two|
        left = receiver_class.made - list
        expect(left.sum(&:size)).to eq(0), "at #{one} and #{two}: #{left}"
        list.each(&:close)
        rest_of(second)
        prepare.call
      end
    end

    it "a poll leaves its sockets to be closed with their context, by #{whose}" do
      poller = ZMQ::Poller.new
      [first, second].each { |socket| poller.register_readable(socket) }
      at_each_two_places(interrupt, -> { poller.poll(10) }) do |one, two|
        expect([first, second].map { |socket| socket.handle.watcher }).to eq([nil, nil]), "at #{one} and #{two}"
      end
    end
  end
end
