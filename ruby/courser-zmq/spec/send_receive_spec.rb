# frozen_string_literal: true

RSpec.describe 'sending and receiving with result codes' do
  let(:sockets) { connected(ZMQ::PAIR, ZMQ::PAIR) }
  let(:sender) { sockets[0] }
  let(:receiver) { sockets[1] }

  describe '#send_string, #recv_string' do
    [0, 1, 33, 34, 63, 64, 100, 1024, 65_535, 65_536, 65_537, 1_000_000].each do |size|
      it "carry #{size} bytes" do
        sent = Random.new(size).bytes(size)
        expect(sender.send_string(sent)).to eq(size)
        received = +'something'
        expect(receiver.recv_string(received)).to eq(size)
        expect(received).to eq(sent)
        expect(received.encoding).to eq(Encoding::BINARY)
      end
    end

    it 'carry 50 MB over tcp' do
      sender, receiver = connected(ZMQ::PUSH, ZMQ::PULL, transport: :tcp)
      sent = 'courser' * 7_000_000
      expect(sender.send_string(sent)).to eq(sent.bytesize)
      received = +''
      receiver.recv_string(received)
      expect(received == sent).to be(true)
    end

    # libzmq tells the size as an int. The memory is never written to, so only the copy that is received takes any.
    it 'carry more than 2 GiB', :slow, :mri, limit: 900 do
      size = (1 << 31) + 10
      memory = LibC.malloc(size)
      LibZMQ.zmq_msg_init_data((message = ZMQ::Message.new).pointer, memory, size, nil, nil)
      receives = [-> { receiver.receive }, -> { receiver.receive_message[0] }, -> { receiver.receive_messages[0][0] },
                  -> { receiver.recv_string(text = +'') && text }]
      [true, false].product(receives).each do |eager, receive|
        sender << message.dup
        receiver.instance_exec { (@eager = eager) || @direct_waits = 1 }
        expect((received = receive.call).bytesize).to eq(size)
        received.clear
      end
      LibC.free(memory)
    end

    it 'send the bytes of any encoding' do
      ['é', 'é'.encode('UTF-16LE'), "\xff\x00".b].each do |string|
        sender.send_string(string)
        expect(receive_now(receiver)).to eq(string.b)
      end
    end

    it 'send a frozen string and leave every string as it was' do
      string = 'é'
      sender.send_string(string)
      expect([string, string.encoding]).to eq(['é', Encoding::UTF_8])
    end

    it 'refuse what is no string' do
      [nil, 7, :symbol, []].each do |nothing|
        expect { sender.send_string(nothing) }.to raise_error(TypeError)
      end
      expect(receive_now(receiver)).to be_nil
    end

    it 'use at most two objects a round', :mri do
      string = 'x' * 1000
      received = +''
      objects = objects_per_round do
        sender.send_string(string)
        receiver.recv_string(received)
      end
      expect(objects).to be <= 2
    end

    it 'overwrite a string of the same length without touching those that share its bytes' do
      received = +''
      sender.send_string('a' * 100)
      receiver.recv_string(received)
      copies = [received.dup, received[10..], received.b, String.new(received)]
      key = { received => 1 }
      sender.send_string("\xff" * 100)
      receiver.recv_string(received)
      expect(received).to eq("\xff".b * 100)
      expect(copies.map(&:chars).map(&:uniq)).to all(eq(['a']))
      expect(key.keys.first).to eq('a' * 100)
    end

    it 'let a string know what it holds after it was overwritten' do
      received = 'a' * 100
      expect(received.ascii_only?).to be(true)
      ["\xff".b * 100, 'b' * 100].each do |sent|
        sender.send_string(sent)
        receiver.recv_string(received)
        expect([received.ascii_only?, received.encoding]).to eq([sent.ascii_only?, Encoding::BINARY])
      end
    end

    it 'do not write into a frozen string' do
      frozen = ('a' * 100).freeze
      sender.send_string('b' * 100)
      expect { receiver.recv_string(frozen) }.to raise_error(FrozenError)
      expect(frozen).to eq('a' * 100)
    end

    it 'do not write into a literal' do
      literals = Array.new(2) { 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc'.dup }
      sender.send_string('d' * literals[0].size)
      receiver.recv_string(literals[0])
      expect(literals.map { |string| string[0] }).to eq(%w[d c])
    end
  end

  describe 'DONTWAIT' do
    it 'makes a receive fail with EAGAIN where there is nothing' do
      list = [1]
      calls = [-> { receiver.recv_string(+'', ZMQ::DONTWAIT) }, -> { receiver.recv_strings(list, ZMQ::DONTWAIT) },
               -> { receiver.recvmsg(ZMQ::Message.new, ZMQ::NOBLOCK) },
               -> { receiver.recv_multipart(list, list, ZMQ::DONTWAIT) }]
      expect(calls.map { |call| [call.call, ZMQ::Util.errno] }.uniq).to eq([[-1, ZMQ::EAGAIN]])
      expect(list).to eq([1])
      expect([receiver.recvmsgs(messages = [], ZMQ::DONTWAIT), messages]).to eq([-1, []])
    end

    it 'makes a send fail with EAGAIN where there is no peer' do
      lonely = new_socket(ZMQ::PUSH)
      calls = [-> { lonely.send_string('a', ZMQ::DONTWAIT) }, -> { lonely.send_strings(%w[a b], ZMQ::DONTWAIT) },
               -> { lonely.sendmsg(ZMQ::Message.new('a'), ZMQ::DONTWAIT) },
               -> { lonely.send_and_close(ZMQ::Message.new('a'), ZMQ::DONTWAIT) }]
      expect(calls.map { |call| [call.call, ZMQ::Util.errno] }.uniq).to eq([[-1, ZMQ::EAGAIN]])
    end

    it 'makes a send fail with EAGAIN at the high-water mark' do
      sender, = connected(ZMQ::PUSH, ZMQ::PULL, bound: { sndhwm: 1 }, connected: { rcvhwm: 1 })
      codes = Array.new(5) { sender.send_string('a', ZMQ::DONTWAIT) }
      expect([codes.count(1), codes.last]).to eq([2, -1])
    end
  end

  describe 'RCVTIMEO and SNDTIMEO' do
    [10, 200].each do |timeout_ms|
      it "limit a wait to #{timeout_ms} ms" do
        receiver.set!(rcvtimeo: timeout_ms)
        lonely = new_socket(ZMQ::PUSH, sndtimeo: timeout_ms)
        calls = [-> { receiver.recv_string(+'') }, -> { receiver.recv_strings([]) },
                 -> { receiver.recvmsg(ZMQ::Message.new) }, -> { lonely.send_string('a') },
                 -> { lonely.sendmsg(ZMQ::Message.new('a')) }, -> { lonely.send_strings(%w[a b]) }]
        calls.each do |call|
          result = nil
          expect(seconds { result = [call.call, ZMQ::Util.errno] }).to be_between(timeout_ms / 1100.0, Sockets::SOON)
          expect(result).to eq([-1, ZMQ::EAGAIN])
        end
        expect([receiver.get(:rcvtimeo), lonely.get(:sndtimeo)]).to eq([timeout_ms] * 2)
      end
    end

    it 'limit every one of many waits' do
      receiver.set!(rcvtimeo: 1)
      expect(Array.new(100) { receiver.recv_string(+'') }).to all(eq(-1))
    end

    it 'do not matter when the wait ends in time' do
      receiver.set!(rcvtimeo: 10_000)
      puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH, transport: :tcp, bound: { rcvtimeo: 10_000 })
      Thread.new { sleep 0.1 and pusher.send_string('late') }
      expect([puller.recv_string(string = +''), string]).to eq([4, 'late'])
    end

    it 'are 0 for no wait at all' do
      receiver.set!(rcvtimeo: 0)
      expect([receiver.recv_string(+''), ZMQ::Util.errno]).to eq([-1, ZMQ::EAGAIN])
    end
  end

  describe 'a wait' do
    it 'ends when a message comes, time after time' do
      puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH, transport: :tcp)
      worker = Thread.new { 100.times { |number| pusher.send_string(number.to_s) and sleep(0.001) } }
      received = Array.new(100) { puller.recv_string(string = +'') and string }
      worker.join
      expect(received).to eq((0..99).map(&:to_s))
    end

    it 'ends when there is room to send, and what changed meanwhile is not sent' do
      pusher = new_socket(ZMQ::PUSH)
      place = pusher.bind!(endpoint)
      text = +'before'
      worker = Thread.new { pusher.send_string(text) }
      sleep 0.2
      text.replace('after!')
      puller = new_socket(ZMQ::PULL).connect!(place)
      expect([worker.value, puller.receive(timeout: Sockets::SOON)]).to eq([6, 'before'])
    end

    it 'lets other threads run' do
      receiver.set!(rcvtimeo: 20_000)
      counter = Thread.new { 50.times { sleep(0.001) } and sender.send_string('counted') }
      expect(receiver.recv_string(+'')).to eq(7)
      expect(counter.value).to eq(7)
    end
  end

  describe '#send_strings, #recv_strings' do
    [1, 2, 10, 1000].each do |parts|
      it "carry #{parts} parts" do
        sent = Array.new(parts) { |number| number.to_s * (number % 50) }
        expect(sender.send_strings(sent)).to eq(sent.last.bytesize)
        list = ['before']
        expect(receiver.recv_strings(list)).to eq(sent.last.bytesize)
        expect(list).to eq(['before', *sent])
      end
    end

    it 'fail for no parts' do
      results = [sender.send_strings([]), sender.send_strings(nil), sender.sendmsgs([])]
      expect([*results, ZMQ::Util.errno]).to eq([-1, -1, -1, ZMQ::EINVAL])
      expect(receive_now(receiver)).to be_nil
    end

    it 'send nothing where one of them cannot be sent' do
      first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
      closed = ZMQ::Message.new('b').tap(&:close)
      expect { first.send_strings(['a', nil]) }.to raise_error(TypeError)
      expect { first.send_message('a', 7) }.to raise_error(TypeError)
      expect([first.sendmsgs([ZMQ::Message.new('a'), closed]), ZMQ::Util.errno]).to eq([-1, ZMQ::EFAULT])
      first.send_strings(%w[c d])
      expect(second.receive_message(timeout: Sockets::SOON)).to eq(%w[c d])
    end

    it 'keep messages apart' do
      sender.send_strings(%w[a b])
      sender.send_string('c')
      lists = Array.new(2) { receiver.recv_strings(list = []) and list }
      expect(lists).to eq([%w[a b], %w[c]])
    end

    it 'send parts one by one with SNDMORE' do
      sender.send_string('a', ZMQ::SNDMORE)
      expect(receive_now(receiver)).to be_nil
      sender.send_string('b')
      receiver.recv_strings(list = [])
      expect(list).to eq(%w[a b])
    end
  end

  describe '#sendmsgs, #recvmsgs' do
    it 'carry messages' do
      sent = %w[a b c].map { |string| ZMQ::Message.new(string) }
      expect(sender.sendmsgs(sent)).to eq(1)
      list = []
      expect(receiver.recvmsgs(list)).to eq(1)
      expect(list.map(&:copy_out_string)).to eq(%w[a b c])
      expect(list.map(&:more?)).to eq([true, true, false])
      (sent + list).each(&:close)
    end
  end

  describe '#send_and_close' do
    it 'closes the message whether it was sent or not' do
      sent = ZMQ::Message.new('a')
      refused = ZMQ::Message.new('b')
      expect([sender.send_and_close(sent), new_socket(ZMQ::PULL).send_and_close(refused)]).to eq([1, -1])
      expect(ZMQ::Util.errno).to eq(ZMQ::ENOTSUP)
      expect([sent, refused]).to all(be_closed)
    end
  end

  describe '#recv_multipart' do
    it 'takes the envelope off' do
      router, requester = connected(ZMQ::ROUTER, ZMQ::REQ, connected: { identity: 'foo' })
      requester.send_strings(%w[hello world])
      body = []
      envelope = []
      expect(router.recv_multipart(body, envelope)).to eq(5)
      expect([envelope, body].map { |list| list.map(&:copy_out_string) }).to eq([['foo', ''], %w[hello world]])
    end

    it 'takes all for an envelope where no part is empty' do
      sender.send_strings(%w[a b])
      receiver.recv_multipart(body = [], envelope = [])
      expect([envelope.size, body.size]).to eq([2, 0])
    end
  end

  describe 'receiver_class' do
    let(:received) { [] }
    let(:custom) do
      seen = received
      Class.new(ZMQ::Message) do
        define_method(:copy_out_string) { super().upcase.tap { |text| seen << text } }
      end
    end

    def receiver_with(kind)
      socket = ZMQ::Socket.new(context, ZMQ::PULL, receiver_class: kind)
      (@opened_sockets ||= []) << socket
      @pusher = new_socket(ZMQ::PUSH)
      @pusher.connect!(socket.bind!(endpoint))
      socket
    end

    it 'is asked for the strings' do
      socket = receiver_with(custom)
      @pusher.send_string('a')
      @pusher.send_strings(%w[b c])
      expect([socket.recv_string(string = +''), string]).to eq([1, 'A'])
      expect([socket.recv_strings(list = []), list]).to eq([1, %w[B C]])
      expect(received).to eq(%w[A B C])
      expect([socket.recv_string(+'', ZMQ::DONTWAIT), ZMQ::Util.errno]).to eq([-1, ZMQ::EAGAIN])
    end

    it 'is the class of received messages' do
      [custom, ZMQ::ManagedMessage, ZMQ::Message].each do |kind|
        socket = receiver_with(kind)
        @pusher.send_string('a')
        socket.recvmsgs(list = [])
        expect(list.map(&:class)).to eq([kind])
        list.each(&:close)
      end
    end

    it 'still waits and tries again' do
      socket = receiver_with(custom)
      socket.set!(rcvtimeo: 20)
      3.times { expect(socket.recv_string(+'')).to eq(-1) }
      @pusher.send_string('a')
      expect([socket.recv_string(string = +''), string]).to eq([1, 'A'])
    end
  end
end
