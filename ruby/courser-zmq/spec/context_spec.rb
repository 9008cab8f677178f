# frozen_string_literal: true

RSpec.describe ZMQ::Context do
  describe '.create' do
    it 'makes a context with one I/O thread and 1023 sockets' do
      made = described_class.create
      expect([made.io_threads, made.max_sockets]).to eq([1, 1023])
      made.terminate
    end

    it 'gives nil for a negative number of threads' do
      expect(described_class.create(-1)).to be_nil
      expect(described_class.create(io_threads: -1)).to be_nil
    end
  end

  describe 'in another Ractor', :mri do
    # @return what the block returns there: the class and the text of what it raises
    def elsewhere(&block)
      experimental = Warning[:experimental]
      Warning[:experimental] = false
      ractor = Ractor.new(&block)
      ractor.respond_to?(:take) ? ractor.take : ractor.value
    ensure
      Warning[:experimental] = experimental
    end

    it 'raises an error that says so, whether it is made by new or by create' do
      text = 'a ZMQ::Context works in the main Ractor only'
      made = elsewhere { ZMQ::Context.new rescue [$!.class.name, $!.message] } # rubocop:disable Style
      expect(made).to match(['Ractor::UnsafeError', start_with(text)])
      created = elsewhere { ZMQ::Context.create rescue [$!.class.name, $!.message] } # rubocop:disable Style
      expect(created).to match(['Ractor::UnsafeError', start_with(text)])
    end

    it 'gives no nil for a message' do
      expect(elsewhere { ZMQ::Message.create.nil? rescue 'raised' }).not_to be(true) # rubocop:disable Style
    end
  end

  describe '.new' do
    it 'raises a ContextError for a negative number of threads' do
      expect { described_class.new(-1) }.to raise_error(ZMQ::ContextError) { |error| expect(error).to be_einval }
    end

    it 'takes the number of threads alone or as an option' do
      expect(new_context(2).io_threads).to eq(2)
      expect(new_context(io_threads: 3).io_threads).to eq(3)
      expect(new_context(nil).io_threads).to eq(1)
    end

    it 'hands its numbers to libzmq' do
      made = new_context(io_threads: 2, max_sockets: 10)
      expect(made.get(ZMQ::IO_THREADS)).to eq(2)
      expect(made.get(ZMQ::MAX_SOCKETS)).to eq(10)
    end

    it 'gives the same pointer by two names' do
      expect(context.pointer).to be_a(FFI::Pointer)
      expect(context.pointer).to equal(context.context)
    end

    it 'defines one finalizer' do
      expect(ObjectSpace).to receive(:define_finalizer).once
      new_context
    end
  end

  describe '#set!' do
    it 'sets an option of the context' do
      expect(context.set!(ZMQ::MAX_MSGSZ, 1000).get(ZMQ::MAX_MSGSZ)).to eq(1000)
    end

    it 'raises for an option that does not exist' do
      expect { context.set!(999, 1) }.to raise_error(ZMQ::ContextError)
    end
  end

  describe '#socket' do
    it 'makes a socket of the type' do
      socket = context.socket(ZMQ::REQ)
      expect(socket).to be_a(ZMQ::Socket)
      expect(socket.name).to eq('REQ')
    end

    it 'gives nil for a type that does not exist' do
      expect(context.socket(999)).to be_nil
    end

    it 'gives nil where libzmq gives none' do
      allow(LibZMQ).to receive(:zmq_socket).and_return(nil)
      expect(context.socket(ZMQ::REQ)).to be_nil
    end

    it 'gives nil once all sockets are taken' do
      small = new_context(max_sockets: 2)
      sockets = Array.new(3) { small.socket(ZMQ::PUSH) }
      expect(sockets.map(&:nil?)).to eq([false, false, true])
    end

    it 'gives nil after termination' do
      context.terminate
      expect(context.socket(ZMQ::REQ)).to be_nil
    end
  end

  describe '#terminate' do
    it 'returns 0 and forgets the pointer' do
      expect(context.terminate).to eq(0)
      expect(context.pointer).to be_nil
      expect(context).to be_terminated
    end

    it 'does nothing the second time' do
      context.terminate
      expect(LibZMQ).not_to receive(:terminate_context)
      expect(context.terminate).to eq(0)
    end

    it 'calls libzmq with the pointer' do
      made = described_class.new
      expect(LibZMQ).to receive(:terminate_context).with(made.pointer).and_return(0)
      expect(made.terminate).to eq(0)
    end

    it 'closes sockets that this thread left open, which report ETERM from then on' do
      socket = context.socket(ZMQ::PULL)
      expect(seconds { context.terminate }).to be < Sockets::SOON
      expect(socket).to be_closed
      expect(socket.recv_string(+'')).to eq(-1)
      expect(ZMQ::Util.errno).to eq(ZMQ::ETERM)
      expect(socket.close).to eq(0)
    end

    it 'closes sockets whose thread has ended' do
      Thread.new { context.socket(ZMQ::PULL) }.join
      expect(seconds { context.terminate }).to be < Sockets::SOON
    end

    it 'ends the receive of another thread with ETERM and waits for it to close' do
      result = nil
      worker = Thread.new do
        socket = context.socket(ZMQ::PULL)
        result = [socket.recv_string(+''), ZMQ::Util.errno]
        socket.close
      end
      eventually { worker.status == 'sleep' || RUBY_ENGINE == 'jruby' }
      sleep 0.1
      expect(context.terminate).to eq(0)
      worker.join
      expect(result).to eq([-1, ZMQ::ETERM])
    end

    it 'ends the receive of another thread on a socket that was made here' do
      socket = context.socket(ZMQ::PULL)
      worker = Thread.new do
        [socket.recv_string(+''), ZMQ::Util.errno].tap { socket.close }
      end
      sleep 0.2
      expect(context.terminate).to eq(0)
      expect(worker.value).to eq([-1, ZMQ::ETERM])
    end

    it 'can be interrupted and taken up again' do
      release = Queue.new
      worker = Thread.new do
        socket = context.socket(ZMQ::PULL)
        release.pop
        socket.close
      end
      sleep 0.1
      expect { Timeout.timeout(0.3) { context.terminate } }.to raise_error(Timeout::Error)
      release << true
      expect(context.terminate).to eq(0)
      worker.join
    end

    it 'delivers what was sent before' do
      puller = new_socket(ZMQ::PULL)
      endpoint = puller.bind!('tcp://127.0.0.1:*')
      other = described_class.new
      pusher = other.socket(ZMQ::PUSH)
      pusher.connect(endpoint)
      100.times { |number| pusher.send_string(number.to_s) }
      pusher.close
      other.terminate
      expect(Array.new(100) { puller.receive(timeout: Sockets::SOON) }).to eq((0..99).map(&:to_s))
    end
  end

  describe '.open' do
    it 'gives a context to the block, returns its value and terminates' do
      kept = nil
      expect(described_class.open(io_threads: 2) { |made| (kept = made).io_threads }).to eq(2)
      expect(kept).to be_terminated
    end

    it 'terminates when the block raises' do
      kept = nil
      expect { described_class.open { |made| raise((kept = made).class.name) } }.to raise_error('ZMQ::Context')
      expect(kept).to be_terminated
    end

    it 'returns the context where there is no block' do
      made = described_class.open
      expect(made).not_to be_terminated
      made.terminate
    end
  end

  describe '#open' do
    it 'sets options, binds, connects and closes at the end' do
      kept = nil
      context.open(:pull, bind: %w[inproc://a inproc://b], rcvhwm: 7) do |puller|
        kept = puller
        expect(puller.get(:rcvhwm)).to eq(7)
        context.open(ZMQ::PUSH, connect: 'inproc://b') { |pusher| pusher << 'hello' }
        expect(puller.receive(timeout: Sockets::SOON)).to eq('hello')
      end
      expect(kept).to be_closed
    end

    it 'sets an option for each of several values' do
      context.open(:pub, bind: 'inproc://p') do |publisher|
        context.open(:sub, connect: 'inproc://p', subscribe: %w[a b]) do |subscriber|
          %w[a1 c1 b1].each { |topic| publisher << topic }
          expect(Array.new(2) { subscriber.receive(timeout: Sockets::SOON) }).to eq(%w[a1 b1])
        end
      end
    end

    it 'closes the socket where it cannot be set up' do
      expect { context.open(:pull, bind: 'nonsense') }.to raise_error(ZMQ::SocketError)
      expect(seconds { context.terminate }).to be < Sockets::SOON
    end

    it 'raises for a type that does not exist' do
      expect { context.open(999) }.to raise_error(ZMQ::ContextError)
    end
  end

  it 'gives no socket after its termination was interrupted, and can be waited for again' do
    own = ZMQ::Context.new
    socket = ZMQ::Socket.new(own, ZMQ::PUSH).set!(linger: 1000).connect!(dead_endpoint)
    socket.send_string('unsent')
    expect { Timeout.timeout(0.2) { own.terminate } }.to raise_error(Timeout::Error)
    expect([own.pointer, own.socket(ZMQ::PUSH), own.terminate, own.terminate]).to eq([nil, nil, 0, 0])
  end
end
