# frozen_string_literal: true

RSpec.describe ZMQ::Util do
  describe '.curve_keypair' do
    it 'gives two different keys of 40 characters' do
      keys = described_class.curve_keypair
      expect(keys.map(&:size)).to eq([40, 40])
      expect(keys.uniq.size).to eq(2)
    end

    it 'raises where libzmq has no CURVE' do
      allow(LibZMQ).to receive(:zmq_curve_keypair).and_return(-1)
      expect { described_class.curve_keypair }.to raise_error(ZMQ::NotSupportedError, /libsodium/)
    end
  end

  describe '.curve_public' do
    it 'gives the public key of a secret one' do
      public_key, secret_key = described_class.curve_keypair
      expect(described_class.curve_public(secret_key)).to eq(public_key)
      expect { described_class.curve_public('nonsense') }.to raise_error(ZMQ::SocketError)
    end

    it 'refuses what has not the length of a key' do
      # In a process of its own: libzmq writes beyond the end of its stack's room for what is longer.
      result = run_ruby(<<~'RUBY')
        require 'ffi-rzmq'
        secrets = [0, 5, 10, 35, 45, 60, 1000].map { |size| '0' * size } << "00000#{"\0" * 35}"
        codes = secrets.map do |secret|
          ZMQ::Util.curve_public(secret)
        rescue ZMQ::SocketError => e
          e.error_code
        end
        print codes.uniq == [ZMQ::EINVAL] ? 'refused' : codes.inspect
      RUBY
      expect([result.output, result.errors[0, 100]]).to eq(['refused', ''])
    end
  end

  describe '.z85_encode, .z85_decode' do
    it 'are the inverse of each other' do
      bytes = ['864fd26fb559f75b'].pack('H*')
      expect(described_class.z85_encode(bytes)).to eq('HelloWorld')
      expect(described_class.z85_decode('HelloWorld')).to eq(bytes)
    end

    it 'give nil for what has the wrong size' do
      expect([described_class.z85_encode('abc'), described_class.z85_decode('abc')]).to eq([nil, nil])
    end
  end

  describe '.errno, .error_string' do
    it 'are about the last failure of this thread' do
      socket = new_socket(ZMQ::PULL)
      socket.bind('foo://bar')
      others = Array.new(4) { Thread.new { 100.times { context.socket(999) } } }
      100.times { GC.start(full_mark: false) if RUBY_ENGINE == 'ruby' }
      expect(described_class.errno).to eq(ZMQ::EPROTONOSUPPORT)
      expect(described_class.error_string).to eq('Protocol not supported')
      others.each(&:join)
    end

    it 'know the errors of libzmq' do
      expect(described_class.message_of(ZMQ::ETERM)).to eq('Context was terminated')
    end
  end

  describe '.resultcode_ok?' do
    it 'is true from 0 on' do
      expect([-1, 0, 1].map { |rc| described_class.resultcode_ok?(rc) }).to eq([false, true, true])
    end
  end

  describe '.error_check' do
    it 'is true for anything but -1' do
      expect([0, 3].map { |rc| described_class.error_check('zmq_poll', rc) }).to eq([true, true])
    end

    { 'zmq_ctx_new' => ZMQ::ContextError, 'zmq_ctx_set' => ZMQ::ContextError, 'zmq_socket' => ZMQ::ContextError,
      'zmq_msg_init' => ZMQ::MessageError, 'zmq_msg_send' => ZMQ::MessageError, 'zmq_bind' => ZMQ::SocketError,
      'nonsense' => ZMQ::ZeroMQError }.each do |source, kind|
      it "raises a #{kind} for #{source}" do
        described_class.fail_with(ZMQ::ENOMEM)
        expect { described_class.error_check(source, -1) }.to raise_error(kind) { |error|
          expect(error.class).to eq(kind)
          expect([error.source, error.result_code, error.error_code]).to eq([source, -1, ZMQ::ENOMEM])
          expect(error.message).to eq("msg [Cannot allocate memory], error code [#{ZMQ::ENOMEM}], rc [-1]")
        }
      end
    end
  end

  describe '.raise_error' do
    it 'raises what fits the source, whatever the result' do
      described_class.fail_with(ZMQ::ENOMEM)
      expect { described_class.raise_error('zmq_msg_init', -1) }.to raise_error(ZMQ::MessageError, /Cannot allocate/)
    end
  end

  describe '.context_error?, .message_error?' do
    it 'tell the kind of a source' do
      sources = %w[zmq_ctx_set zmq_msg_copy zmq_bind]
      expect(sources.map { |source| described_class.context_error?(source) }).to eq([true, false, false])
      expect(sources.map { |source| described_class.message_error?(source) }).to eq([false, true, false])
    end
  end

  describe '.eagain?' do
    it 'tells whether the last call would have had to wait' do
      described_class.fail_with(ZMQ::EAGAIN)
      expect(described_class).to be_eagain
      described_class.fail_with(ZMQ::EFSM)
      expect(described_class).not_to be_eagain
    end
  end

  describe '.random_port' do
    it 'is one that needs no privileges' do
      expect(Array.new(50) { described_class.random_port }).to all(be_between(10_000, 65_534))
    end
  end

  describe '.fail_with' do
    it 'sets the error number for both ways of asking' do
      expect([described_class.fail_with(ZMQ::EFSM), described_class.errno, LibZMQ.zmq_errno])
        .to eq([-1, ZMQ::EFSM, ZMQ::EFSM])
    end
  end

  describe '.bind_to_random_tcp_port' do
    let(:socket) { new_socket(ZMQ::PULL) }

    it 'gives the port' do
      port = described_class.bind_to_random_tcp_port(socket)
      expect(port).to be_between(10_000, 65_534)
      expect(socket.last_endpoint).to eq("tcp://127.0.0.1:#{port}")
    end

    it 'gives nil for a host that is none' do
      expect(described_class.bind_to_random_tcp_port(socket, 'nonsense.invalid', 3)).to be_nil
    end

    it 'gives nil when no port was free' do
      taken = ZMQ::Util.bind_to_random_tcp_port(new_socket(ZMQ::PULL))
      allow(described_class).to receive(:rand).and_return(taken)
      expect(described_class.bind_to_random_tcp_port(socket, '127.0.0.1', 3)).to be_nil
    end
  end

  describe '.has?' do
    it 'tells what libzmq was built with' do
      expect([described_class.has?('ipc'), described_class.has?(:nonsense)]).to eq([true, false])
    end
  end
end

RSpec.describe ZMQ do
  it 'tells the release of the interface, and the one of the gem' do
    expect([described_class.version, ZMQ::VERSION]).to eq(%w[2.0.7 2.0.7])
    expect(ZMQ::GEM_VERSION).to match(/\A\d+\.\d+\.\d+\z/)
  end

  it 'tells its paths' do
    lib = "#{File.expand_path('../lib', __dir__)}/"
    expect([described_class.libpath, described_class.libpath('a', 'b')]).to eq([lib, "#{lib}/a/b".sub('//', '/')])
    expect([described_class.path, described_class.path('c')]).to all(include('courser-zmq'))
    expect(described_class.libpath { $LOAD_PATH.first }).to eq(lib)
  end
end

RSpec.describe ZMQ::ZeroMQError do
  it 'tells about itself' do
    error = ZMQ::ContextError.new('zmq_ctx_new', -1, ZMQ::EINVAL, 'text')
    expect([error.einval?, error.eterm?, error.message]).to eq([true, false, 'msg [text], error code [22], rc [-1]'])
    expect(ZMQ::MessageError.new('x', -1, ZMQ::ENOMEM, 'text')).to be_enomem
    expect([ZMQ::ContextError, ZMQ::MessageError, ZMQ::NotSupportedError]).to all(be < described_class)
    expect(described_class).to be < StandardError
  end
end
