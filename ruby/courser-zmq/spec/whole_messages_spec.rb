# frozen_string_literal: true

# Of a message of several parts, a peer gets all or nothing, whatever happens between its parts.
RSpec.describe 'messages of several parts' do
  let(:pair) { connected(ZMQ::PAIR, ZMQ::PAIR) }
  let(:first) { pair[0] }
  let(:second) { pair[1] }

  # What comes until nothing does.
  def rest_of(socket)
    messages = []
    loop { messages << socket.receive_message(timeout: 0) }
  rescue ZMQ::TimeoutError
    messages
  end

  describe 'with a closed message among them' do
    let(:closed) { ZMQ::Message.new('b').tap(&:close) }

    sends = {
      'send_message' => -> { first.send_message('a', closed) },
      'send_message of messages' => -> { first.send_message(ZMQ::Message.new('a'), closed, 'b') },
      'send_message with a timeout' => -> { first.send_message('a', closed, timeout: 1) },
      '<<' => -> { first << ['a', closed] },
      'request' => -> { first.request('a', closed) },
      'send_messages' => -> { first.send_messages([['a', closed]]) },
      'send_messages of more' => -> { first.send_messages(['z', %w[y x], ['a', closed, 'b']]) }
    }
    sends.each do |name, send|
      it "are refused by #{name}, and the next message is whole" do
        expect { instance_exec(&send) }.to raise_error(ZMQ::SocketError) { |error|
          expect([error.error_code, error.messages_sent.to_i]).to eq([ZMQ::EFAULT, 0])
        }
        first.send_message('c')
        expect(second.receive_message(timeout: Sockets::SOON)).to eq(%w[c])
      end
    end

    it 'do not go to the peer of the reply before' do
      router = new_socket(ZMQ::ROUTER)
      place = router.bind!(endpoint)
      one, two = %w[one two].map { |identity| new_socket(ZMQ::DEALER, identity: identity).connect!(place) }
      expect { router.send_message('one', '', closed) }.to raise_error(ZMQ::SocketError)
      router.send_message('two', '', 'body')
      expect(two.receive_message(timeout: Sockets::SOON)).to eq(['', 'body'])
      expect(rest_of(one)).to eq([])
    end
  end

  describe 'interrupted anywhere', :mri do
    # Calls after which a part has gone or come. Ruby looks for exceptions at the next branch or jump, which may be
    # before anything is noted of it.
    let(:calls) { %i[zmq_send zmq_msg_send zmq_msg_recv wait_recv] }

    # Runs the action once for each place at which an exception of another thread's could reach it: where one of the
    # socket's methods or blocks returns, or a call of libzmq's does. The exception is raised there, and the block looks
    # at what came of it.
    def at_each_return(action)
      (1..).each do |number|
        came = interrupted_at(number, action)
        yield number
        break unless came
      end
    end

    # @return [Boolean] whether there is such a place
    def interrupted_at(number, action)
      thread = Thread.current
      tracing = TracePoint.new(:return, :b_return, :c_return) do |point|
        next unless Thread.current == thread && point.path.include?('/courser_zmq/socket/')
        next if point.event == :c_return && !calls.include?(point.method_id)

        thread.raise(IOError) if (number -= 1).zero?
      end
      tracing.enable(&action)
      number < 1
    rescue IOError
      true
    end

    sends = {
      'send_message' => ->(socket) { socket.send_message('a', 'b', 'c') },
      'send_message with a timeout' => ->(socket) { socket.send_message('a', 'b', 'c', timeout: 1) },
      'send_message of a Message' => ->(socket) { socket.send_message('a', ZMQ::Message.new('b'), 'c') },
      'send_strings' => ->(socket) { socket.send_strings(%w[a b c]) },
      'sendmsgs' => ->(socket) { socket.sendmsgs(%w[a b c].map { |text| ZMQ::Message.new(text) }) },
      'send_messages' => ->(socket) { socket.send_messages([%w[a b c]]) },
      'send_messages of Messages' => ->(socket) { socket.send_messages([['a', 'b', ZMQ::Message.new('c')]]) }
    }
    sends.each do |name, send|
      it "#{name} sends all or nothing" do
        outcomes = Hash.new(0)
        at_each_return(-> { send.call(first) }) do |number|
          first.send_message('d', 'e')
          received = rest_of(second)
          expect([[%w[a b c], %w[d e]], [%w[d e]]]).to include(received), "at #{number}: #{received}"
          outcomes[received.size] += 1
        end
        expect(outcomes[2]).to be >= 1
      end
    end

    receives = {
      'receive_message' => ->(socket, got) { got << socket.receive_message },
      'receive_message with a timeout' => ->(socket, got) { got << socket.receive_message(timeout: 1) },
      'receive_messages' => ->(socket, got) { got.concat(socket.receive_messages(1)) },
      'each_message' => ->(socket, got) { got << socket.each_message.first },
      'recv_strings' => ->(socket, got) { socket.recv_strings(list = []) && got << list },
      'recvmsgs' => lambda { |socket, got|
        socket.recvmsgs(list = []) && got << list.map(&:copy_out_string)
      },
      'recv_multipart' => lambda { |socket, got|
        socket.recv_multipart(body = [], envelope = [])
        got << (envelope + body).map(&:copy_out_string)
      }
    }
    receives.each do |name, receive|
      [true, false].each do |waiting|
        it "#{name} #{'that waits ' if waiting}takes all or nothing" do
          got = nil
          prepare = lambda do
            got = []
            [%w[a b c], %w[d e]].each { |parts| first.send_strings(parts) }
            waits_at_once(second) if waiting
          end
          prepare.call
          at_each_return(-> { receive.call(second, got) }) do |number|
            received = got + rest_of(second)
            expect([[%w[a b c], %w[d e]], [%w[d e]]]).to include(received), "at #{number}: #{received}"
            prepare.call
          end
        end
      end
    end
  end

  # Makes it wait without a look before, as it does after a receive that had to.
  def waits_at_once(socket)
    socket.instance_exec { (@eager = false) || @direct_waits = 10 }
  end

  it 'are received whole when a wait for a later part would be interrupted', :mri do
    2.times { first.send_message('a', 'b', 'c') }
    waits_at_once(second)
    waits = 0
    allow(ZMQ::Native).to receive(:wait_recv).and_wrap_original do |original, *arguments|
      raise IOError if (waits += 1) == 2

      original.call(*arguments)
    end
    expect(second.receive_message).to eq(%w[a b c])
    expect { second.receive_message }.to raise_error(IOError)
    expect(second.receive_message).to eq(%w[a b c])
  end

  it 'are put aside whole when they come just as the wait is interrupted', :mri do
    2.times { first.send_message('a', 'b', 'c') }
    waits_at_once(second)
    allow(ZMQ::Native).to receive(:wait_recv).and_wrap_original do |original, *arguments|
      original.call(*arguments)
      raise IOError
    end
    expect { second.receive_message }.to raise_error(IOError)
    RSpec::Mocks.space.proxy_for(ZMQ::Native).reset
    expect(rest_of(second)).to eq([%w[a b c]] * 2)
  end

  def numbered(number)
    [number.to_s, 'x', number.to_s]
  end

  %w[receive_message recv_strings recvmsgs].each do |name|
    it "are not lost by a #{name} that is interrupted in its wait" do
      pusher, puller = connected(ZMQ::PUSH, ZMQ::PULL, transport: :tcp)
      total = 200
      worker = Thread.new { total.times { |number| pusher.send_strings(numbered(number)) && sleep(rand / 200) } }
      received = []
      receive = {
        'receive_message' => -> { received << puller.receive_message },
        'recv_strings' => -> { puller.recv_strings(list = []) && received << list },
        'recvmsgs' => -> { puller.recvmsgs(list = []) && received << list.map(&:copy_out_string) }
      }.fetch(name)
      interrupted_in_a_wait { loop(&receive) } while worker.alive? || received.size < total
      expect(received).to eq(Array.new(total) { |number| numbered(number) })
    end
  end

  # On the JVM a time limit takes longer than a message: hardly one would come.
  it 'stay whole when senders and receivers are interrupted at any time', :mri do
    pusher, puller = connected(ZMQ::PUSH, ZMQ::PULL, bound: { sndhwm: 2 }, connected: { rcvhwm: 2 })
    ended = false
    number = 0
    sender = Thread.new do
      until ended
        interrupted_after(rand / 200) { pusher.send_message(*numbered(number += 1), timeout: [nil, 10].sample) }
      end
    end
    received = []
    interrupted_after(rand / 200) { loop { received << puller.receive_message } } while received.size < 500
    ended = true
    sender.join
    expect(received.reject { |parts| parts == numbered(parts[0].to_i) }).to eq([])
    expect(received.map { |parts| parts[0].to_i }).to eq(received.map { |parts| parts[0].to_i }.sort.uniq)
  end

  def interrupted_after(seconds, &block)
    Timeout.timeout(seconds, IOError, &block)
  rescue IOError
    nil
  end

  describe 'that find no room' do
    let(:lonely) { new_socket(ZMQ::PUSH) }

    it 'wait as long as SNDTIMEO says' do
      lonely.set!(sndtimeo: 50)
      messages = %w[a b].map { |part| ZMQ::Message.new(part) }
      [-> { lonely.send_strings(%w[a b]) }, -> { lonely.sendmsgs(messages) }].each do |send|
        taken = seconds { expect([send.call, ZMQ::Util.errno]).to eq([-1, ZMQ::EAGAIN]) }
        expect(taken).to be_between(0.04, Sockets::SOON)
      end
      expect { lonely.send_message('a', 'b') }.to raise_error(ZMQ::TimeoutError)
    end

    it 'are sent once there is, as they were when the wait began' do
      place = lonely.bind!(endpoint)
      text = +'before'
      message = ZMQ::Message.new('m')
      worker = Thread.new { lonely.send_message(text, 'b', message) }
      eventually { lonely.waiting? }
      text.replace('after!')
      puller = new_socket(ZMQ::PULL).connect!(place)
      expect(worker.value).to equal(lonely)
      expect([puller.receive_message(timeout: Sockets::SOON), message.size]).to eq([%w[before b m], 0])
    end

    it 'can be continued with SNDMORE' do
      expect(first.send_strings(%w[a b], ZMQ::SNDMORE)).to eq(1)
      expect([rest_of(second), first.send_string('c'), rest_of(second)]).to eq([[], 1, [%w[a b c]]])
    end

    it 'do not keep the processor busy while another peer of a ROUTER has room' do
      router = new_socket(ZMQ::ROUTER, router_mandatory: 1, sndhwm: 1)
      place = router.bind!(endpoint)
      %w[full free].each { |identity| new_socket(ZMQ::DEALER, identity: identity, rcvhwm: 1).connect!(place) }
      nil while router.send_strings(%w[full a], ZMQ::DONTWAIT) != -1
      tries = 0
      allow(router).to receive(:put_parts).and_wrap_original do |original, *arguments|
        (tries += 1) > 1000 ? raise('it is busy') : original.call(*arguments)
      end
      expect { router.send_message('full', 'b', timeout: 0.3) }.to raise_error(ZMQ::TimeoutError)
    end

    it 'end with EINTR once a signal was handled, as single ones do', :mri do
      result = run_ruby(<<~CODE)
        require 'ffi-rzmq'
        socket = ZMQ::Context.new.socket(ZMQ::PUSH)
        trap(:USR1) { puts 'trapped' }
        Thread.new { sleep 0.01 until socket.waiting?; Process.kill(:USR1, Process.pid) }
        puts socket.send_strings(%w[a b]), ZMQ::Util.errno == ZMQ::EINTR
      CODE
      expect(result.output.split).to eq(%w[trapped -1 true])
    end
  end
end
