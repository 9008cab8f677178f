# frozen_string_literal: true

RSpec.describe 'socket patterns' do
  %i[inproc ipc tcp].each do |transport|
    context "over #{transport}" do
      define_method(:pair_of) do |bound, connecting, **options|
        connected(bound, connecting, transport: transport, **options)
      end

      it 'REQ and REP take turns' do
        replier, requester = pair_of(ZMQ::REP, ZMQ::REQ)
        2.times do |round|
          requester.send_strings(['question', round.to_s])
          expect(replier.receive_message(timeout: Sockets::SOON)).to eq(['question', round.to_s])
          replier.send_strings(%w[an answer])
          expect(requester.receive_message(timeout: Sockets::SOON)).to eq(%w[an answer])
        end
      end

      it 'REQ refuses a second request, and REP a second reply, with EFSM' do
        replier, requester = pair_of(ZMQ::REP, ZMQ::REQ)
        expect(requester.send_string('a')).to eq(1)
        expect([requester.send_string('b'), ZMQ::Util.errno]).to eq([-1, ZMQ::EFSM])
        replier.receive(timeout: Sockets::SOON)
        replier.send_string('c')
        expect([replier.send_string('d'), ZMQ::Util.errno]).to eq([-1, ZMQ::EFSM])
      end

      it 'DEALER and ROUTER carry envelopes' do
        router, dealer = pair_of(ZMQ::ROUTER, ZMQ::DEALER, connected: { identity: 'd' })
        dealer.send_strings(['', 'hello'])
        expect(router.receive_message(timeout: Sockets::SOON)).to eq(['d', '', 'hello'])
        router.send_strings(['d', '', 'world'])
        expect(dealer.receive_message(timeout: Sockets::SOON)).to eq(['', 'world'])
      end

      it 'XREQ and XREP are the same by their old names' do
        router, dealer = pair_of(ZMQ::XREP, ZMQ::XREQ)
        dealer.send_string('hello')
        expect(router.receive_message(timeout: Sockets::SOON)[1..]).to eq(['hello'])
        expect([router.name, dealer.name]).to eq(%w[ROUTER DEALER])
      end

      it 'ROUTER with ROUTER_MANDATORY refuses a peer it does not know' do
        router, = pair_of(ZMQ::ROUTER, ZMQ::DEALER, bound: { router_mandatory: 1 })
        expect([router.send_strings(%w[stranger hello]), ZMQ::Util.errno]).to eq([-1, ZMQ::EHOSTUNREACH])
      end

      it 'PUB sends what SUB asked for' do
        publisher, subscriber = pair_of(ZMQ::XPUB, ZMQ::SUB)
        subscriber.subscribe('a', 'b.')
        expect(Array.new(2) { publisher.receive(timeout: Sockets::SOON) }).to contain_exactly("\x01a", "\x01b.")
        %w[a1 b1 b.1 c].each { |topic| publisher.send_strings([topic, 'body']) }
        expect(Array.new(2) { subscriber.receive_message(timeout: Sockets::SOON) }).to eq([%w[a1 body], %w[b.1 body]])
        subscriber.unsubscribe('a')
        expect(publisher.receive(timeout: Sockets::SOON)).to eq("\x00a".b)
      end

      it 'PUB drops what no peer asked for' do
        publisher, subscriber = pair_of(ZMQ::PUB, ZMQ::SUB)
        expect(publisher.send_string('lost')).to eq(4)
        expect(receive_now(subscriber)).to be_nil
        expect([publisher.get(:events), subscriber.get(:events)]).to eq([ZMQ::POLLOUT, 0])
      end

      it 'XSUB subscribes by messages' do
        publisher, subscriber = pair_of(ZMQ::XPUB, ZMQ::XSUB)
        subscriber.send_string("\x01a")
        expect(publisher.receive(timeout: Sockets::SOON)).to eq("\x01a")
        publisher.send_string('abc')
        expect(subscriber.receive(timeout: Sockets::SOON)).to eq('abc')
      end

      it 'PUSH deals out to PULL sockets in turn' do
        pusher = new_socket(ZMQ::PUSH)
        place = pusher.bind!(endpoint(transport))
        pullers = Array.new(3) { new_socket(ZMQ::PULL).connect!(place) }
        sleep 0.2
        6.times { |number| pusher.send_string(number.to_s) }
        received = pullers.map { |puller| Array.new(2) { puller.receive(timeout: Sockets::SOON) } }
        expect(received.flatten).to match_array(%w[0 1 2 3 4 5])
      end

      it 'PAIR talks both ways' do
        first, second = pair_of(ZMQ::PAIR, ZMQ::PAIR)
        first.send_string('to')
        second.send_string('fro')
        expect([second, first].map { |socket| socket.receive(timeout: Sockets::SOON) }).to eq(%w[to fro])
      end

      it 'a message sent in one object is received in another' do
        puller, pusher = pair_of(ZMQ::PULL, ZMQ::PUSH)
        sent = ZMQ::Message.new('booga-booga')
        received = ZMQ::Message.new
        expect(pusher.sendmsg(sent)).to eq(11)
        expect(puller.recvmsg(received)).to eq(11)
        expect(received.copy_out_string).to eq('booga-booga')
        [sent, received].each(&:close)
      end

      it 'as many sockets as threads each get their message' do
        pusher = new_socket(ZMQ::PUSH)
        place = pusher.bind!(endpoint(transport))
        pullers = Array.new(4) { new_socket(ZMQ::PULL).connect!(place) }
        sleep 0.2
        workers = pullers.map { |puller| Thread.new { puller.recv_string(string = +'') and string } }
        4.times { pusher.send_string('booga') }
        expect(workers.map(&:value)).to eq(['booga'] * 4)
      end

      it 'threads share a socket under a mutex' do
        puller, pusher = pair_of(ZMQ::PULL, ZMQ::PUSH)
        mutex = Mutex.new
        workers = Array.new(4) { Thread.new { mutex.synchronize { puller.receive(timeout: Sockets::SOON) } } }
        4.times { pusher.send_string('booga') }
        expect(workers.map(&:value)).to eq(['booga'] * 4)
      end
    end
  end

  it 'STREAM talks to plain TCP' do
    require 'socket'
    stream = new_socket(ZMQ::STREAM)
    port = stream.bind!('tcp://127.0.0.1:*')[/\d+\z/].to_i
    client = TCPSocket.new('127.0.0.1', port)
    peer, greeting = stream.receive_message(timeout: Sockets::SOON)
    client.write('hello')
    expect([greeting, stream.receive_message(timeout: Sockets::SOON)]).to eq(['', [peer, 'hello']])
    stream.send_strings([peer, 'world'])
    expect(client.readpartial(10)).to eq('world')
    client.close
  end

  it 'PROBE_ROUTER makes a client known' do
    router, = connected(ZMQ::ROUTER, ZMQ::DEALER, connected: { probe_router: 1, identity: 'here' })
    expect(router.receive_message(timeout: Sockets::SOON)).to eq(['here', ''])
  end

  it 'CONFLATE keeps the newest message' do
    puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH, bound: { conflate: 1 }, connected: { conflate: 1 })
    3.times { |number| pusher.send_string(number.to_s) }
    expect([receive_now(puller), receive_now(puller)]).to eq(['2', nil])
  end

  it 'heartbeats keep a connection and do not disturb it' do
    options = { heartbeat_ivl: 20, heartbeat_timeout: 200, heartbeat_ttl: 500 }
    puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH, transport: :tcp, bound: options, connected: options)
    pusher.send_string('a')
    sleep 0.3
    pusher.send_string('b')
    expect(Array.new(2) { puller.receive(timeout: Sockets::SOON) }).to eq(%w[a b])
  end
end
