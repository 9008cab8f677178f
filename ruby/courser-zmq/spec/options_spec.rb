# frozen_string_literal: true

RSpec.describe 'socket options' do
  types = %i[REQ REP DEALER ROUTER PUB SUB PUSH PULL PAIR XPUB XSUB]

  def read(socket, option)
    array = []
    [socket.getsockopt(option, array), array[0]]
  end

  types.each do |type|
    context "on a #{type} socket" do
      let(:socket) { new_socket(ZMQ.const_get(type)) }
      let(:fresh) { ZMQ::Socket.new(context, ZMQ.const_get(type)).tap { |made| @opened_sockets = [made] } }

      it 'keeps an identity of 1 to 255 bytes' do
        (1..255).each do |length|
          expect(socket.setsockopt(ZMQ::IDENTITY, 'a' * length)).to eq(0)
          expect(read(socket, ZMQ::IDENTITY)).to eq([0, 'a' * length])
        end
      end

      it 'refuses an identity of 256 bytes' do
        expect(socket.setsockopt(ZMQ::IDENTITY, 'a' * 256)).to eq(-1)
      end

      { AFFINITY: 3, RATE: 200, RECOVERY_IVL: 200, SNDBUF: 100, RCVBUF: 100, RECONNECT_IVL: 200, BACKLOG: 200,
        SNDHWM: 5, RCVHWM: 6, MAXMSGSIZE: 1 << 40, RECONNECT_IVL_MAX: 900, RCVTIMEO: 10, SNDTIMEO: 20, IPV6: 1,
        MULTICAST_HOPS: 3, TCP_KEEPALIVE: 1, TCP_KEEPALIVE_CNT: 4, TCP_KEEPALIVE_IDLE: 30, TCP_KEEPALIVE_INTVL: 5,
        IMMEDIATE: 1, HANDSHAKE_IVL: 1500, HEARTBEAT_IVL: 100, HEARTBEAT_TTL: 700, HEARTBEAT_TIMEOUT: 900,
        CONNECT_TIMEOUT: 60, TOS: 8, LINGER: 200 }.each do |option, value|
        it "keeps #{option}" do
          expect(socket.setsockopt(ZMQ.const_get(option), value)).to eq(0)
          expect(read(socket, ZMQ.const_get(option))).to eq([0, value])
        end
      end

      { RECONNECT_IVL: 100, BACKLOG: 100, IPV4ONLY: 1, RCVTIMEO: -1, SNDTIMEO: -1, HANDSHAKE_IVL: 30_000,
        MAXMSGSIZE: -1, RCVMORE: false }.each do |option, value|
        it "has #{option} at #{value} to begin with" do
          expect(read(fresh, ZMQ.const_get(option))).to eq([0, value])
        end
      end

      it 'reads LINGER as libzmq would have it until the program sets it' do
        expect(read(fresh, ZMQ::LINGER)).to eq([0, %i[SUB XSUB].include?(type) ? 0 : -1])
        [0, 200, -1].each do |value|
          expect(fresh.setsockopt(ZMQ::LINGER, value)).to eq(0)
          expect(read(fresh, ZMQ::LINGER)).to eq([0, value])
        end
      end

      it 'refuses negative rates and intervals' do
        expect([ZMQ::RATE, ZMQ::RECOVERY_IVL].map { |option| socket.setsockopt(option, -200) }).to eq([-1, -1])
      end

      it 'turns IPV4ONLY off and on, and refuses other values' do
        expect([0, 1, -1, 2].map { |value| socket.setsockopt(ZMQ::IPV4ONLY, value) }).to eq([0, 0, -1, -1])
      end

      it 'gives LAST_ENDPOINT with its closing zero byte' do
        port = ZMQ::Util.bind_to_random_tcp_port(socket)
        expect(read(socket, ZMQ::LAST_ENDPOINT)).to eq([0, "tcp://127.0.0.1:#{port}\0"])
      end

      it 'gives a descriptor, a mask of events and the type' do
        expect(read(socket, ZMQ::FD)[1]).to be_positive
        expect(read(socket, ZMQ::EVENTS)[1]).to be_between(0, 3)
        expect(read(socket, ZMQ::TYPE)).to eq([0, ZMQ.const_get(type)])
      end

      it 'takes subscriptions only where it is a SUB socket' do
        expected = type == :SUB ? 0 : -1
        expect(socket.setsockopt(ZMQ::SUBSCRIBE, 'topic')).to eq(expected)
        expect(socket.setsockopt(ZMQ::UNSUBSCRIBE, 'topic')).to eq(expected)
      end
    end
  end

  describe 'the numbers' do
    it 'are those of zmq.h' do
      header = '/usr/include/zmq.h'
      skip 'there is no zmq.h' unless File.exist?(header)
      numbers = File.read(header).scan(/^#define ZMQ_(\w+) (-?\d+|0x\h+)\s*$/).to_h
      numbers.reject! { |name, _| name.match?(/\AVERSION_|DEFINED|_DFLT\z|HAVE|_MAX_LENGTH|CURRENT|HAS_|PIPES|_WS_/) }
      expect(numbers.size).to be > 130
      wrong = numbers.reject { |name, text| ZMQ.const_defined?(name) && ZMQ.const_get(name) == Integer(text) }
      # That one is what ffi-rzmq means by it; the header's has the name of its first version.
      expect(wrong).to eq('EVENT_ALL' => format('0x%X', ZMQ::EVENT_ALL_V1))
      expect(ZMQ::EVENT_ALL).to eq(0x7FF)
    end

    it 'are sorted into those of integers, of long integers and of strings' do
      lists = [ZMQ::IntegerSocketOptions, ZMQ::LongLongSocketOptions, ZMQ::StringSocketOptions]
      expect(lists.sum(&:size)).to eq(ZMQ::SocketOptions.size)
      expect(lists[0]).to include(ZMQ::LINGER, ZMQ::HEARTBEAT_IVL, ZMQ::TOS, ZMQ::ROUTER_HANDOVER)
      expect(lists[1]).to include(ZMQ::AFFINITY, ZMQ::MAXMSGSIZE)
      expect(lists[2]).to include(ZMQ::SUBSCRIBE, ZMQ::CURVE_SERVERKEY, ZMQ::SOCKS_PROXY)
    end

    it 'and all other constants may be shared between ractors', :mri do
      unshareable = ZMQ.constants.map { |name| [name, ZMQ.const_get(name)] }
                       .reject { |_, value| value.is_a?(Module) || Ractor.shareable?(value) }
      expect(unshareable).to eq([])
    end
  end

  describe 'that ffi-rzmq could not set' do
    { ROUTER: { ROUTER_HANDOVER: 1 },
      XPUB: { XPUB_VERBOSE: 1, XPUB_VERBOSER: 1, XPUB_MANUAL: 1, XPUB_NODROP: 1, INVERT_MATCHING: 1 },
      STREAM: { STREAM_NOTIFY: 0 },
      REQ: { REQ_CORRELATE: 1, REQ_RELAXED: 1, PROBE_ROUTER: 1, CONFLATE: 1 } }.each do |type, options|
      options.each do |option, value|
        it "#{option} is set on a #{type} socket" do
          expect(new_socket(ZMQ.const_get(type)).setsockopt(ZMQ.const_get(option), value)).to eq(0)
        end
      end
    end

    it 'XPUB_WELCOME_MSG greets a subscriber' do
      publisher = new_socket(ZMQ::XPUB, xpub_welcome_msg: 'welcome')
      subscriber = new_socket(ZMQ::SUB, subscribe: 'wel')
      subscriber.connect!(publisher.bind!(endpoint))
      publisher.receive(timeout: Sockets::SOON)
      expect(subscriber.receive(timeout: Sockets::SOON)).to eq('welcome')
    end

    it 'SOCKS_PROXY is set, read and taken back' do
      socket = new_socket(ZMQ::REQ)
      expect(socket.setsockopt(ZMQ::SOCKS_PROXY, '127.0.0.1:1080')).to eq(0)
      expect(socket.get(:socks_proxy)).to eq('127.0.0.1:1080')
      expect(socket.setsockopt(ZMQ::SOCKS_PROXY, nil)).to eq(0)
      expect(socket.get(:socks_proxy)).to eq('')
    end

    it 'GSSAPI options are set where libzmq has GSSAPI' do
      skip 'libzmq has no GSSAPI' unless ZMQ::Util.has?(:gssapi)
      socket = new_socket(ZMQ::REQ)
      expect(socket.setsockopt(ZMQ::GSSAPI_PRINCIPAL, 'ann@EXAMPLE')).to eq(0)
      expect(socket.setsockopt(ZMQ::GSSAPI_PLAINTEXT, 1)).to eq(0)
    end

    it 'CURVE keys can be read' do
      public_key, secret_key = ZMQ::Util.curve_keypair
      socket = new_socket(ZMQ::REQ, curve_publickey: public_key, curve_secretkey: secret_key)
      expect([read(socket, ZMQ::CURVE_PUBLICKEY), socket.get(:curve_secretkey)]).to eq([[0, public_key], secret_key])
    end
  end

  describe '#setsockopt' do
    it 'counts bytes, not characters' do
      publisher, subscriber = connected(ZMQ::PUB, ZMQ::SUB)
      expect(subscriber.setsockopt(ZMQ::SUBSCRIBE, 'é')).to eq(0)
      publisher.send_string("\xC3x")
      publisher.send_string('école')
      expect(subscriber.receive(timeout: Sockets::SOON)).to eq('école'.b)
    end

    it 'takes the first bytes of a string where a length is given' do
      socket = new_socket(ZMQ::REQ)
      expect(socket.setsockopt(ZMQ::IDENTITY, 'abcdef', 3)).to eq(0)
      expect(socket.identity).to eq('abc')
    end

    it 'reads no further than the string' do
      socket = new_socket(ZMQ::REQ)
      expect(socket.setsockopt(ZMQ::IDENTITY, 'abc', 100)).to eq(0)
      expect(socket.identity).to eq('abc')
    end

    it 'takes true and false' do
      socket = new_socket(ZMQ::ROUTER)
      expect([true, false].map { |value| socket.setsockopt(ZMQ::ROUTER_MANDATORY, value) }).to eq([0, 0])
    end

    it 'fails with EINVAL for an option that does not exist' do
      socket = new_socket(ZMQ::REQ)
      expect([socket.setsockopt(9999, 1), ZMQ::Util.errno]).to eq([-1, ZMQ::EINVAL])
      expect([socket.setsockopt(9999, 'x'), ZMQ::Util.errno]).to eq([-1, ZMQ::EINVAL])
      array = [:untouched]
      expect([socket.getsockopt(9999, array), ZMQ::Util.errno]).to eq([-1, ZMQ::EINVAL])
      expect(array).to eq([:untouched])
    end
  end

  describe '#identity=' do
    let(:socket) { new_socket(ZMQ::REQ) }

    it 'does not set an empty or too long one' do
      ['', 'a' * 256].each do |value|
        socket.identity = value
        expect(socket.identity).to eq('')
      end
    end

    it 'sets 1 to 255 bytes, and a number as a string' do
      ['a', 'a' * 255, 7].each do |value|
        socket.identity = value
        expect(socket.identity).to eq(value.to_s)
      end
    end
  end

  describe 'by name' do
    let(:socket) { new_socket(ZMQ::SUB) }

    it 'are set and read' do
      expect(socket.set!(rcvhwm: 5, linger: 7)).to equal(socket)
      expect([socket[:rcvhwm], socket.get('linger'), socket[ZMQ::LINGER]]).to eq([5, 7, 7])
      socket[:rcvhwm] = 8
      expect(socket[:rcvhwm]).to eq(8)
    end

    it 'raise for a value that libzmq refuses' do
      expect { socket.set!(rate: -1) }.to raise_error(ZMQ::SocketError) { |error| expect(error).to be_einval }
      expect { socket[:rate] = -1 }.to raise_error(ZMQ::SocketError, /Invalid argument/)
    end

    it 'raise for a name that is none' do
      %i[nonsense pull context linger! a::b].each do |name|
        expect { socket.get(name) }.to raise_error(ArgumentError)
      end
    end

    it 'give the endpoint without its closing zero byte' do
      expect(socket.bind!('tcp://127.0.0.1:*')).to match(%r{\Atcp://127\.0\.0\.1:\d+\z}).and eq(socket.last_endpoint)
    end
  end
end
