# frozen_string_literal: true

RSpec.describe ZMQ::Socket do
  types = %i[REQ REP DEALER ROUTER PUB SUB PUSH PULL PAIR XPUB XSUB STREAM]

  describe '.new' do
    types.each do |type|
      it "makes a #{type} socket" do
        socket = described_class.new(context.pointer, ZMQ.const_get(type))
        expect(socket.name).to eq(type.to_s)
        expect(socket.socket).to be_a(FFI::Pointer)
        expect(socket.get(:type)).to eq(ZMQ.const_get(type))
        expect(socket.close).to eq(0)
      end
    end

    it 'takes a context or its pointer' do
      [context, context.pointer].each { |from| expect(described_class.new(from, ZMQ::REQ).close).to eq(0) }
    end

    it 'raises a ContextError for a null context and for none' do
      expect { described_class.new(FFI::Pointer.new(0), ZMQ::REQ) }.to raise_error(ZMQ::ContextError)
      expect { described_class.new(nil, ZMQ::REQ) }.to raise_error(ZMQ::ContextError) { |e| expect(e).to be_eterm }
    end

    it 'leaves no native socket behind when its arguments are wrong' do
      expect(described_class.create(context, ZMQ::PUB, nil)).to be_nil
      expect(seconds { context.terminate }).to be < Sockets::SOON
    end

    it 'tells why libzmq refused' do
      expect { described_class.new(context, 999) }.to raise_error(ZMQ::ContextError) { |e| expect(e).to be_einval }
    end

    it 'keeps the raw socket that libzmq gave' do
      raw = double('socket', null?: false)
      expect(LibZMQ).to receive(:zmq_socket).and_return(raw)
      expect(described_class.new(context.pointer, ZMQ::REQ).socket).to eq(raw)
    end

    it 'defines a finalizer' do
      expect(ObjectSpace).to receive(:define_finalizer).at_least(1)
      described_class.new(context.pointer, ZMQ::REQ).close
    end
  end

  describe '.create' do
    it 'gives nil where .new raises' do
      expect(described_class.create(FFI::Pointer.new(0), ZMQ::REQ)).to be_nil
      expect(described_class.create(context, 999)).to be_nil
    end

    it 'makes a socket' do
      expect(described_class.create(context, ZMQ::REQ).close).to eq(0)
    end
  end

  describe '#dup, #clone' do
    it 'are refused, and the socket goes on working' do
      [new_socket(ZMQ::PAIR), context].each do |original|
        10.times { expect { original.dup }.to raise_error(TypeError) }
        expect { original.clone }.to raise_error(TypeError)
      end
      3.times { GC.start && sleep(0.05) }
      first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
      first.send_string('a')
      expect(second.receive(timeout: Sockets::SOON)).to eq('a')
    end
  end

  describe '#close' do
    it 'closes once' do
      socket = new_socket(ZMQ::REQ)
      expect(LibZMQ).to receive(:zmq_close).once.with(socket.socket).and_call_original
      expect([socket.close, socket.close]).to eq([0, 0])
      expect(socket.socket).to be_nil
      expect(socket).to be_closed
    end

    it 'closes once when threads race' do
      sockets = Array.new(20) { described_class.new(context, ZMQ::PUSH) }
      Array.new(4) { Thread.new { sockets.each(&:close) } }.each(&:join)
      expect(sockets).to all(be_closed)
    end

    it 'makes every operation fail with ENOTSOCK' do
      socket = new_socket(ZMQ::PAIR)
      socket.close
      operations = [
        -> { socket.send_string('a') }, -> { socket.recv_string(+'') }, -> { socket.bind('inproc://x') },
        -> { socket.connect('inproc://x') }, -> { socket.setsockopt(ZMQ::LINGER, 0) },
        -> { socket.getsockopt(ZMQ::LINGER, []) }, -> { socket.unbind('inproc://x') },
        -> { socket.disconnect('inproc://x') }, -> { socket.sendmsg(ZMQ::Message.new('a')) },
        -> { socket.recvmsg(ZMQ::Message.new) }, -> { socket.recv_strings([]) }, -> { socket.recvmsgs([]) }
      ]
      expect(operations.map { |operation| [operation.call, ZMQ::Util.errno] }.uniq).to eq([[-1, ZMQ::ENOTSOCK]])
      expect(socket.more_parts?).to be(false)
      expect(socket.identity).to be_nil
    end
  end

  describe 'what it received last', :mri do
    let(:opened) { [] }

    # The new socket waits at once, as it does after a receive that had to: then its own inbox is used.
    def receive_in_new_socket
      first, second = Array.new(2) { eventually { described_class.create(context, ZMQ::PAIR) } }
      opened.push(first, second)
      second.connect!(first.bind!(endpoint))
      first.send_string('x' * 60_000)
      second.instance_exec { (@eager = false) || @direct_waits = 10 }
      raise 'wrong bytes' unless second.receive.bytesize == 60_000
    end

    def drop
      opened.clear
      GC.start
      eventually { ZMQ::Lifecycle.context_at(context.pointer.address).users.size < 50 }
    end

    it 'is freed once it is closed' do
      round = proc do
        receive_in_new_socket
        opened.last(2).each(&:close)
        drop if opened.size == 200
      end
      500.times(&round)
      expect(resident_growth_kb { 1500.times(&round) }).to be < 32_768
    end

    it 'is freed once it is dropped' do
      round = proc do
        receive_in_new_socket
        drop if opened.size == 200
      end
      500.times(&round)
      expect(resident_growth_kb { 1500.times(&round) }).to be < 32_768
    end
  end

  describe '#bind, #connect, #unbind, #disconnect' do
    it 'return 0' do
      first = new_socket(ZMQ::PULL)
      second = new_socket(ZMQ::PUSH)
      expect(first.bind('tcp://127.0.0.1:*')).to eq(0)
      endpoint = first.last_endpoint
      expect([second.connect(endpoint), second.disconnect(endpoint), first.unbind(endpoint)]).to eq([0, 0, 0])
    end

    it 'refuse what is no endpoint' do
      socket = new_socket(ZMQ::PAIR)
      %i[bind connect unbind disconnect].each do |operation|
        [nil, 7, :a].each { |wrong| expect { socket.public_send(operation, wrong) }.to raise_error(TypeError) }
      end
    end

    it 'return -1 and tell why' do
      socket = new_socket(ZMQ::PULL)
      failures = { bind: 'nonsense', connect: 'foo://x', unbind: 'tcp://127.0.0.1:1', disconnect: 'tcp://127.0.0.1:1' }
      codes = failures.map do |operation, argument|
        expect(socket.public_send(operation, argument)).to eq(-1)
        ZMQ::Util.errno
      end
      expect(codes).to eq([ZMQ::EINVAL, ZMQ::EPROTONOSUPPORT, ZMQ::ENOENT, ZMQ::ENOENT])
    end

    it 'refuse an address that is taken' do
      first = new_socket(ZMQ::PULL)
      endpoint = first.bind!('tcp://127.0.0.1:*')
      expect(new_socket(ZMQ::PULL).bind(endpoint)).to eq(-1)
      expect(ZMQ::Util.errno).to eq(ZMQ::EADDRINUSE)
    end
  end

  describe '#inspect' do
    it 'tells type and state' do
      socket = new_socket(ZMQ::PUSH)
      expect(socket.inspect).to eq('#<ZMQ::Socket PUSH>')
      socket.close
      expect(socket.inspect).to eq('#<ZMQ::Socket PUSH closed>')
    end
  end
end
