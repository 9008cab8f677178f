# frozen_string_literal: true

require 'socket'
require 'openssl'

RSpec.describe ZMQ::Poller do
  let(:poller) { described_class.new }
  let(:sockets) { connected(ZMQ::DEALER, ZMQ::ROUTER) }
  let(:dealer) { sockets[0] }
  let(:router) { sockets[1] }

  it 'keeps its items in a PollItems' do
    expect(ZMQ::PollItems).to receive(:new)
    described_class.new
  end

  describe '#register' do
    it 'refuses no pollable and no events' do
      expect([poller.register(nil, ZMQ::POLLIN), poller.register(dealer, 0)]).to eq([nil, nil])
      expect(poller.size).to eq(0)
    end

    it 'gives the events, which are both unless told otherwise' do
      expect(poller.register(double('pollable'))).to eq(ZMQ::POLLIN | ZMQ::POLLOUT)
      expect(poller.register(dealer, ZMQ::POLLIN)).to eq(ZMQ::POLLIN)
    end

    it 'adds events to those of before' do
      expect(poller.register_readable(dealer)).to eq(ZMQ::POLLIN)
      expect(poller.register_writable(dealer)).to eq(ZMQ::POLLIN | ZMQ::POLLOUT)
      expect(poller.size).to eq(1)
    end

    it 'keeps added events when another pollable comes' do
      poller.register_readable(router)
      poller.register_writable(router)
      poller.register_readable(dealer)
      poller.poll(0)
      expect(poller.writables).to eq([router])
    end

    it 'takes what has a socket, a posix_fileno or an io' do
      io = double('io', posix_fileno: 1)
      [double('a', socket: FFI::MemoryPointer.new(4)), double('b', posix_fileno: 1), double('c', io: io)]
        .each { |pollable| expect(poller.register(pollable, ZMQ::POLLIN)).to eq(ZMQ::POLLIN) }
      expect(poller.size).to eq(3)
    end

    it 'waits very long where it is told to' do
      poller = described_class.new
      poller.register_readable(new_socket(ZMQ::PULL))
      expect { Timeout.timeout(0.1) { poller.poll(1 << 40) } }.to raise_error(Timeout::Error)
    end

    it 'refuses a timeout that no 64 bits hold' do
      poller = described_class.new
      poller.register_readable(new_socket(ZMQ::PULL))
      expect { poller.poll(1 << 70) }.to raise_error(RangeError, /1180591620717411303424 ms/)
    end

    it 'asks a pollable for its socket once' do
      pollable = double('pollable')
      expect(pollable).to receive(:socket).once.and_return(FFI::MemoryPointer.new(4))
      poller.register(pollable)
    end
  end

  describe '#deregister' do
    it 'tells whether it was registered for the event' do
      expect([poller.deregister(nil, 1), poller.deregister(dealer, ZMQ::POLLIN)]).to eq([nil, false])
      poller.register(dealer, ZMQ::POLLOUT)
      expect([poller.deregister_readable(dealer), poller.deregister_writable(dealer)]).to eq([false, true])
    end

    it 'takes away no events but those' do
      poller.register(dealer, ZMQ::POLLOUT)
      poller.deregister(dealer, ZMQ::POLLIN | ZMQ::POLLOUT)
      expect(poller.size).to eq(0)
    end

    it 'adds no events that were not there' do
      poller.register(dealer, ZMQ::POLLIN)
      poller.deregister(dealer, ZMQ::POLLOUT)
      poller.deregister(dealer, ZMQ::POLLIN)
      expect(poller.size).to eq(0)
    end

    it 'deletes a pollable without events' do
      poller.register(dealer, ZMQ::POLLIN)
      poller.deregister(dealer, ZMQ::POLLIN)
      expect(poller.size).to eq(0)
    end

    it 'deletes what is closed' do
      closed_io = double('io', posix_fileno: 1, closed?: true)
      socket = new_socket(ZMQ::PULL)
      raw = double('raw')
      allow(raw).to receive(:socket).and_return(FFI::MemoryPointer.new(4), nil)
      pollables = [socket, double('a', posix_fileno: 1, closed?: true), double('b', io: closed_io), raw]
      pollables.each { |pollable| poller.register(pollable) }
      socket.close
      expect(pollables.map { |pollable| poller.deregister(pollable, ZMQ::POLLIN) }).to all(be(true))
      expect(poller.size).to eq(0)
    end
  end

  describe '#delete' do
    it 'tells whether it was there, also when it has been closed' do
      others = Array.new(2) { new_socket(ZMQ::REP) }
      expect(poller.delete(dealer)).to be(false)
      [dealer, *others].each { |socket| poller.register(socket) }
      others[1].close
      expect([poller.delete(others[1]), poller.delete(others[1]), poller.delete(dealer)]).to eq([true, false, true])
      expect(poller.size).to eq(1)
    end
  end

  describe '#poll' do
    it 'returns 0 at once when nothing is registered' do
      expect(seconds { expect(poller.poll).to eq(0) }).to be < Sockets::SOON
    end

    it 'returns 0 when the time is up' do
      poller.register_readable(router)
      [5, 100, 100.9].each do |timeout|
        expect(seconds { expect(poller.poll(timeout)).to eq(0) }).to be_between(timeout / 1100.0, Sockets::SOON)
      end
      expect(poller.readables).to eq([])
    end

    it 'does not wait when asked not to' do
      poller.register_readable(router)
      expect(seconds { expect([poller.poll_nonblock, poller.poll(0)]).to eq([0, 0]) }).to be < Sockets::SOON
    end

    it 'tells what can be read and written' do
      poller.register(router)
      poller.register(dealer)
      dealer.send_string('test')
      expect(poller.poll(1000)).to eq(2)
      expect([poller.readables, poller.writables]).to eq([[router], [router, dealer]])
    end

    it 'forgets the last result' do
      poller.register_readable(router)
      dealer.send_string('test')
      poller.poll(1000)
      expect(router.receive_message(timeout: Sockets::SOON).last).to eq('test')
      expect([poller.poll(0), poller.readables]).to eq([0, []])
    end

    it 'sees a message that comes while it waits' do
      poller.register_readable(router)
      worker = Thread.new { sleep(0.2) and dealer.send_string('test') }
      expect(poller.poll(:blocking)).to eq(1)
      expect(poller.poll(-1)).to eq(1)
      worker.join
    end

    it 'sees a message over tcp, time after time' do
      puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH, transport: :tcp)
      poller.register_readable(puller)
      worker = Thread.new { 50.times { pusher.send_string('a') and sleep(0.002) } }
      50.times do
        expect(poller.poll(5000)).to eq(1)
        expect(receive_now(puller)).to eq('a')
      end
      worker.join
    end

    it 'no longer sees what was deregistered' do
      poller.register_readable(router)
      poller.register_writable(dealer)
      dealer.send_string('test')
      poller.deregister_writable(dealer)
      expect(poller.poll(1000)).to eq(1)
      poller.deregister_readable(router)
      expect(poller.poll(1000)).to eq(0)
    end

    it 'fails with ENOTSOCK for a socket that has been closed' do
      poller.register_readable(router)
      router.close
      expect([poller.poll(10), ZMQ::Util.errno]).to eq([-1, ZMQ::ENOTSOCK])
    end

    context 'with an object that stands for a socket' do
      let(:wrapper) do
        Class.new do
          attr_accessor :inner

          def socket
            inner.socket
          end
        end.new
      end

      before do
        wrapper.inner = router
        poller.register_readable(wrapper)
      end

      it 'does not ask libzmq about a socket that has been closed' do
        router.close
        expect(ZMQ::Native).not_to receive(:zmq_poll)
        expect([poller.poll(10), ZMQ::Util.errno]).to eq([-1, ZMQ::ENOTSOCK])
      end

      it 'does not ask about the one before, where it has another socket since' do
        wrapper.inner = dealer
        router.close
        expect(ZMQ::Native).not_to receive(:zmq_poll)
        expect([poller.poll(10), ZMQ::Util.errno]).to eq([-1, ZMQ::ENOTSOCK])
      end

      it 'has the end of the socket wait until the poll has left it' do
        worker = Thread.new { [poller.poll(60_000), ZMQ::Util.errno] }
        eventually { router.handle.watcher == worker }
        router.close
        expect(worker.value).to eq([-1, ZMQ::ENOTSOCK])
      end

      it 'sees a message that was put aside' do
        dealer.send_string('aside')
        expect(poller.poll(60_000)).to eq(1)
        message = ZMQ::ManagedMessage.new
        2.times { router.recvmsg(message) }
        router.send(:keep, message.pointer)
        expect([poller.poll(0), poller.readables]).to eq([1, [wrapper]])
      end
    end

    it 'sees the end of the context' do
      worker = Thread.new do
        socket = context.socket(ZMQ::PULL)
        own = described_class.new
        own.register_readable(socket)
        own.poll(10_000)
        [socket.recv_string(+'', ZMQ::DONTWAIT), ZMQ::Util.errno].tap { socket.close }
      end
      sleep 0.2
      context.terminate
      expect(worker.value).to eq([-1, ZMQ::ETERM])
    end

    it 'watches pipes' do
      reader, writer = IO.pipe
      poller.register_readable(reader)
      expect(poller.poll(20)).to eq(0)
      poller.register_writable(writer)
      writer.write('message')
      expect(poller.poll).to eq(2)
      expect([poller.readables, poller.writables]).to eq([[reader], [writer]])
      [reader, writer].each(&:close)
    end

    it 'wakes up for a pipe and for a socket alike' do
      reader, writer = IO.pipe
      poller.register_readable(reader)
      poller.register_readable(router)
      worker = Thread.new { sleep(0.2) and writer.write('a') }
      expect([poller.poll(5000), poller.readables]).to eq([1, [reader]])
      worker.join
      reader.read(1)
      worker = Thread.new { sleep(0.2) and dealer.send_string('a') }
      expect([poller.poll(5000), poller.readables]).to eq([1, [router]])
      worker.join
      [reader, writer].each(&:close)
    end

    it 'watches TCP sockets' do
      server = TCPServer.new('127.0.0.1', 0)
      client = TCPSocket.new('127.0.0.1', server.addr[1])
      accepted = server.accept
      poller.register_readable(accepted)
      poller.register_writable(client)
      client.write('message')
      eventually { poller.poll(1000) == 2 }
      expect([poller.readables, poller.writables]).to eq([[accepted], [client]])
      [server, client, accepted].each(&:close)
    end

    it 'watches TLS sockets' do
      server, client = tls_pair
      poller.register_readable(server)
      poller.register_writable(client)
      client.write('message')
      eventually { poller.poll(1000) == 2 }
      expect([poller.readables, poller.writables]).to eq([[server], [client]])
      [client, server].each { |socket| socket.io.close }
    end
  end

  describe '#inspect' do
    it 'tells what is watched' do
      poller.register_readable(dealer)
      expect(poller.inspect).to match(/\A#<ZMQ::Poller ptr \[.+\], events \[1\], revents \[0\]>\z/)
      expect(poller.to_s).to eq(poller.inspect)
    end
  end

  describe ZMQ::PollItems do
    it 'is a collection of items by what they watch' do
      items = described_class.new
      first = ZMQ::PollItem.from_pollable(dealer)
      second = ZMQ::PollItem.from_pollable($stdin)
      items << first
      items.push(second)
      expect([items.size, items.empty?, items.map(&:pollable)]).to eq([2, false, [dealer, $stdin]])
      expect([items[dealer], items.get(nil)]).to eq([first, nil])
      expect([items[dealer].socket, items[$stdin].fd]).to eq([dealer.socket, 0])
      expect(items.address).to be_a(FFI::Pointer)
      expect([items.delete(dealer), items.delete(dealer), items.size]).to eq([true, false, 1])
      expect(items.to_s).to include('events [0]')
    end
  end

  describe ZMQ::PollItem do
    it 'wraps a native structure' do
      item = described_class.from_pointer(FFI::MemoryPointer.new(LibZMQ::PollItem.size))
      item.events = ZMQ::POLLIN
      item.fd = 5
      expect([item.events, item.fd, item.readable?, item.writable?]).to eq([ZMQ::POLLIN, 5, false, false])
      expect(item.poll_item.inspect).to include('fd [5]')
      item.poll_item[:revents] = ZMQ::POLLOUT
      expect([item.readable?, item.writable?]).to eq([false, true])
    end
  end

  def tls_pair
    listener = TCPServer.new('127.0.0.1', 0)
    client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new('127.0.0.1', listener.addr[1]))
    server = OpenSSL::SSL::SSLSocket.new(listener.accept, tls_settings)
    connecting = Thread.new { client.connect }
    server.accept
    connecting.join
    listener.close
    [server, client]
  end

  def tls_settings
    key = OpenSSL::PKey::RSA.new(2048)
    OpenSSL::SSL::SSLContext.new.tap do |settings|
      settings.key = key
      settings.cert = certificate_for(key)
    end
  end

  def certificate_for(key)
    certificate = OpenSSL::X509::Certificate.new
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse('/CN=localhost')
    certificate.public_key = key.public_key
    certificate.serial = 1
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    certificate.sign(key, OpenSSL::Digest.new('SHA256'))
  end
end
