# frozen_string_literal: true

RSpec.describe 'proxies' do
  # Runs the block with a proxy between a PULL and a PUSH socket, which a thread of its own closes in the end.
  def with_streamer(kind, capture: false)
    ends = Array.new(3) { endpoint }
    ready = Queue.new
    thread = Thread.new { run_streamer(kind, ends.first(capture ? 3 : 2), ready) }
    ready.pop
    yield ends
    context.terminate
    thread.join(Sockets::SOON) or raise 'the proxy does not end'
  end

  def run_streamer(kind, ends, ready)
    sockets = ends.zip([ZMQ::PULL, ZMQ::PUSH, ZMQ::PUB]).map do |place, type|
      context.socket(type).tap { |socket| socket.bind(place) }
    end
    ready << true
    kind.new(*sockets)
    sockets.each(&:close)
  end

  # Runs the block in a thread, with two sockets of its own whose context is shut down meanwhile.
  def in_a_context_that_ends
    ready = Queue.new
    thread = Thread.new do
      sockets = sockets_at_the_end(ready)
      yield sockets
    ensure
      sockets&.each(&:close)
    end
    ready.pop
    context.terminate
    thread.value
  end

  def sockets_at_the_end(ready)
    sockets = [context.socket(ZMQ::PULL), context.socket(ZMQ::PUSH)]
    ready << true
    eventually { sockets.first.recv_string(+'', ZMQ::DONTWAIT) == -1 && ZMQ::Util.errno == ZMQ::ETERM }
    sockets
  end

  [ZMQ::Device, ZMQ::Proxy].each do |kind|
    describe kind do
      it 'passes messages on until the context ends' do
        with_streamer(kind) do |front, back|
          pusher = new_socket(ZMQ::PUSH).connect!(front)
          puller = new_socket(ZMQ::PULL).connect!(back)
          pusher.send_strings(%w[hello world])
          expect(puller.receive_message(timeout: Sockets::SOON)).to eq(%w[hello world])
        end
      end

      it 'captures them' do
        with_streamer(kind, capture: true) do |front, back, side|
          witness = new_socket(ZMQ::SUB, subscribe: '').connect!(side)
          sleep 0.1
          pusher = new_socket(ZMQ::PUSH).connect!(front)
          puller = new_socket(ZMQ::PULL).connect!(back)
          pusher.send_string('hello')
          expect([puller, witness].map { |socket| socket.receive(timeout: Sockets::SOON) }).to eq(%w[hello hello])
        end
      end

      it 'ends at once where the context has ended just before' do
        expect(in_a_context_that_ends { |sockets| kind.new(*sockets) }).to be_a(kind)
      end

      it 'does so where it is steered, too, as on JRuby and in fibers' do
        expect(in_a_context_that_ends { |sockets| [kind.allocate.send(:run_steered, *sockets, nil)] }).to eq([nil])
      end

      it 'takes nothing but sockets' do
        socket = new_socket(ZMQ::PULL)
        [[1, 2], [socket, nil], [nil, socket], [socket, socket, 3]].each do |arguments|
          expect { kind.new(*arguments) }.to raise_error(ArgumentError)
          expect(kind.create(*arguments)).to be_nil
        end
      end

      it 'ends when another thread closes one of its sockets', :mri do
        sockets = [new_socket(ZMQ::PULL), new_socket(ZMQ::PUSH)]
        thread = Thread.new { kind.new(*sockets) }
        sleep 0.1
        expect([sockets.first.close, thread.join(Sockets::SOON)&.value.class]).to eq([0, kind])
      end

      it 'is ended by a kill, and its sockets can be used again' do
        front = new_socket(ZMQ::PULL)
        back = new_socket(ZMQ::PUSH)
        place = front.bind!(endpoint)
        thread = Thread.new { kind.new(front, back) }
        sleep 0.3
        thread.kill
        expect(thread.join(Sockets::SOON)).to eq(thread)
        new_socket(ZMQ::PUSH).connect!(place) << 'hello'
        expect(front.receive(timeout: Sockets::SOON)).to eq('hello')
      end
    end
  end

  describe ZMQ::SteerableProxy do
    let(:front) { new_socket(ZMQ::PULL) }
    let(:back) { new_socket(ZMQ::PUSH) }
    let(:pusher) { new_socket(ZMQ::PUSH) }
    let(:puller) { new_socket(ZMQ::PULL) }
    let!(:proxy) do
      pusher.connect!(front.bind!(endpoint))
      puller.connect!(back.bind!(endpoint))
      described_class.new(front, back).start
    end

    after { proxy.stop }

    it 'passes messages, pauses, resumes and stops' do
      pusher << 'a'
      expect(puller.receive(timeout: Sockets::SOON)).to eq('a')
      proxy.pause
      sleep 0.1
      pusher << 'b'
      expect { puller.receive(timeout: 0.2) }.to raise_error(ZMQ::TimeoutError)
      proxy.resume
      expect(puller.receive(timeout: Sockets::SOON)).to eq('b')
      expect(proxy).to be_running
      expect(proxy.stop).to be_nil
      expect([proxy.running?, proxy.stop]).to eq([false, nil])
      pusher << 'c'
      expect(front.receive(timeout: Sockets::SOON)).to eq('c')
    end

    it 'refuses what is no socket, and commands when it is not running' do
      expect { described_class.new(nil, front) }.to raise_error(ArgumentError)
      expect { described_class.new(front, back).pause }.to raise_error(ThreadError)
    end

    it 'counts' do
      3.times { pusher << 'hello' }
      3.times { puller.receive(timeout: Sockets::SOON) }
      counts = proxy.statistics
      expect([counts.frontend_messages_in, counts.frontend_bytes_in]).to eq([3, 15])
      expect([counts.backend_messages_out, counts.backend_bytes_out, counts.frontend_messages_out]).to eq([3, 15, 0])
    end

    it 'counts also after it was paused and resumed' do
      2.times { proxy.pause.resume }
      pusher << 'hello'
      expect(puller.receive(timeout: Sockets::SOON)).to eq('hello')
      expect(proxy.statistics.frontend_messages_in).to eq(1)
    end

    it 'ends with the context' do
      expect(proxy.join(0.05)).to be_nil
      terminator = Thread.new { context.terminate }
      expect(proxy.join(Sockets::SOON)).to equal(proxy)
      [front, back, pusher, puller].each(&:close)
      proxy.stop
      expect(terminator.join(Sockets::SOON)).to eq(terminator)
    end
  end
end
