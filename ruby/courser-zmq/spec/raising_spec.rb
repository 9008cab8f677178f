# frozen_string_literal: true

RSpec.describe ZMQ::Socket::Raising do
  let(:sockets) { connected(ZMQ::PAIR, ZMQ::PAIR) }
  let(:first) { sockets[0] }
  let(:second) { sockets[1] }

  it 'raises where an endpoint is refused' do
    { bind!: 'zmq_bind', connect!: 'zmq_connect', unbind!: 'zmq_unbind', disconnect!: 'zmq_disconnect' }
      .each do |operation, source|
        expect { first.public_send(operation, 'nonsense') }.to raise_error(ZMQ::SocketError) { |error|
          expect(error.source).to eq(source)
        }
      end
  end

  it 'chains' do
    puller = new_socket(ZMQ::PULL)
    place = puller.bind!('tcp://127.0.0.1:*')
    pusher = new_socket(ZMQ::PUSH).connect!(place).disconnect!(place).connect!(place)
    expect(pusher << 'a' << %w[b c]).to equal(pusher)
    expect(Array.new(2) { puller.receive_message(timeout: Sockets::SOON) }).to eq([%w[a], %w[b c]])
    expect(puller.unbind!(place)).to equal(puller)
  end

  describe '#send_message' do
    it 'sends strings and messages as parts' do
      message = ZMQ::Message.new('b')
      expect(first.send_message('a', message, 'c', timeout: Sockets::SOON)).to equal(first)
      first.send_message('d')
      first << message
      expect(Array.new(3) { second.receive_message(timeout: Sockets::SOON) }).to eq([%w[a b c], %w[d], ['']])
      message.close
    end

    it 'raises a TimeoutError when the time is up' do
      lonely = new_socket(ZMQ::PUSH)
      expect { lonely.send_message('a', timeout: 0.1) }.to raise_error(ZMQ::TimeoutError)
      lonely.set!(sndtimeo: 50)
      expect(seconds { expect { lonely.send_message('a') }.to raise_error(ZMQ::TimeoutError) })
        .to be_between(0.04, Sockets::SOON)
      expect { lonely.send_message(ZMQ::Message.new('a')) }.to raise_error(ZMQ::TimeoutError, &:eagain?)
    end

    it 'waits for room as long as it may' do
      pusher = new_socket(ZMQ::PUSH)
      place = pusher.bind!(endpoint)
      worker = Thread.new { pusher.send_message('a', timeout: Sockets::SOON) }
      sleep 0.2
      puller = new_socket(ZMQ::PULL).connect!(place)
      expect(puller.receive(timeout: Sockets::SOON)).to eq('a')
      worker.join
    end

    it 'raises a SocketError out of turn' do
      requester = new_socket(ZMQ::REQ).connect!(new_socket(ZMQ::REP).bind!(endpoint))
      requester << 'a'
      expect { requester << 'b' }.to raise_error(ZMQ::SocketError, &:efsm?)
    end

    it 'refuses a closed message, also with a timeout' do
      socket = new_socket(ZMQ::PAIR)
      closed = ZMQ::Message.new('a').tap(&:close)
      [nil, 0.1].each do |timeout|
        expect { socket.send_message(closed, timeout: timeout) }
          .to raise_error(ZMQ::SocketError) { |e| expect(e.error_code).to eq(ZMQ::EFAULT) }
      end
    end

    it 'waits for as long as it may, which may be very long' do
      socket = new_socket(ZMQ::PULL)
      [1e9, Float::INFINITY].each do |timeout|
        expect { Timeout.timeout(0.1) { socket.receive(timeout: timeout) } }.to raise_error(Timeout::Error)
      end
    end

    it 'wants at least one part, and strings' do
      expect { first.send_message }.to raise_error(ArgumentError)
      expect { first.send_message(nil) }.to raise_error(TypeError)
    end
  end

  describe '#receive, #receive_message, #receive_into' do
    it 'give a part, all parts, or a part in a message' do
      2.times { first << %w[a b c] }
      message = ZMQ::Message.new
      expect([second.receive, second.more_parts?, second.receive_message]).to eq(['a', true, %w[b c]])
      expect(second.receive_into(message)).to equal(message)
      expect([message.copy_out_string, second.receive_message(timeout: Sockets::SOON)]).to eq(['a', %w[b c]])
      message.close
    end

    it 'raise a TimeoutError when the time is up' do
      [0, 0.05, 0.3].each do |timeout|
        %i[receive receive_message].each do |operation|
          receive = -> { second.public_send(operation, timeout: timeout) }
          taken = seconds { expect(&receive).to raise_error(ZMQ::TimeoutError) }
          expect(taken).to be_between(timeout * 0.95, Sockets::SOON)
        end
      end
      second.set!(rcvtimeo: 20)
      expect { second.receive }.to raise_error(ZMQ::TimeoutError)
      expect { second.receive_into(ZMQ::Message.new, timeout: 0.01) }.to raise_error(ZMQ::TimeoutError)
    end

    it 'refuse a closed message, also behind a wait and where one was put aside' do
      # In a process of its own: libzmq ends it where it gets no message at all.
      result = run_ruby(<<~'RUBY')
        require 'ffi-rzmq'
        context = ZMQ::Context.new
        first = context.open(:pair, bind: 'inproc://closed', linger: 0)
        second = context.open(:pair, connect: 'inproc://closed', linger: 0)
        closed = ZMQ::Message.new.tap(&:close)
        refused = lambda do |**options|
          second.receive_into(closed, **options)
          'taken'
        rescue ZMQ::SocketError => e
          e.error_code == ZMQ::EFAULT
        end
        seen = [refused.call, refused.call(timeout: 1)]
        worker = Thread.new { sleep(0.2) and first << 'late' }
        seen << second.receive << refused.call
        worker.join
        first << 'aside'
        second.send(:keep, ZMQ::ManagedMessage.new.tap { |message| second.receive_into(message) }.pointer)
        seen << refused.call << refused.call(timeout: 1) << second.receive
        print seen.inspect
      RUBY
      expect([result.output, result.errors[0, 100]]).to eq(['[true, true, "late", true, true, true, "aside"]', ''])
    end

    it 'give what comes in time' do
      worker = Thread.new { sleep(0.2) and first << 'late' }
      expect(second.receive(timeout: Sockets::SOON)).to eq('late')
      worker.join
    end

    it 'raise a TerminatedError when the context ends' do
      worker = Thread.new do
        socket = context.socket(ZMQ::PULL)
        begin
          socket.receive(timeout: 10)
        rescue ZMQ::TerminatedError => e
          e
        ensure
          socket.close
        end
      end
      sleep 0.2
      context.terminate
      expect(worker.value).to be_a(ZMQ::TerminatedError).and be_eterm
    end

    it 'give large parts' do
      first << ('x' * 200_000)
      expect(second.receive(timeout: Sockets::SOON).bytesize).to eq(200_000)
    end

    it 'use two objects at most', :mri do
      expect(objects_per_round { first.send_string('x' * 100) && second.receive }).to be <= 4
    end
  end

  describe '#request' do
    it 'sends and waits for the reply' do
      replier = new_socket(ZMQ::REP)
      requester = new_socket(ZMQ::REQ).connect!(replier.bind!(endpoint))
      worker = Thread.new { replier << replier.receive_message.map(&:upcase) }
      expect(requester.request('a', 'b', timeout: Sockets::SOON)).to eq(%w[A B])
      worker.join
      expect { requester.request('a', timeout: 0.1) }.to raise_error(ZMQ::TimeoutError)
    end
  end
end
