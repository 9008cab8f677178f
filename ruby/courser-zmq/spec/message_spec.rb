# frozen_string_literal: true

RSpec.describe ZMQ::Message do
  describe '.new' do
    it 'is empty without an argument' do
      message = described_class.new
      expect([message.size, message.copy_out_string]).to eq([0, ''])
      message.close
    end

    it 'copies the bytes of a string, whatever its encoding' do
      ["\x83\x6e\x04\x00\x00\x44\xd1\x81", 'é', '', 'a' * 100_000].each do |string|
        message = described_class.new(string)
        expect([message.size, message.copy_out_string]).to eq([string.bytesize, string.b])
        message.close
      end
    end

    it 'hands the bytes to libzmq with zmq_msg_init_data and begins empty with zmq_msg_init' do
      expect(LibZMQ).to receive(:zmq_msg_init_data).and_return(0)
      described_class.new('text')
      expect(LibZMQ).to receive(:zmq_msg_init).and_return(0)
      described_class.new
    end

    it 'defines no finalizer' do
      expect(ObjectSpace).not_to receive(:define_finalizer)
      described_class.new('text').close
      described_class.new.close
    end

    it 'raises a MessageError when libzmq refuses' do
      allow(LibZMQ).to receive(:zmq_msg_init).and_return(-1)
      expect { described_class.new }.to raise_error(ZMQ::MessageError)
      expect(described_class.create).to be_nil
    end
  end

  describe '.create' do
    it 'makes a message, and nil of what is no string' do
      expect(described_class.create('a').tap(&:close)).to be_a(described_class)
      expect(described_class.create(7)).to be_nil
    end
  end

  describe '.of_size' do
    it 'is written in place' do
      message = described_class.of_size(3)
      message.data.put_bytes(0, 'abc')
      expect(message.copy_out_string).to eq('abc')
      message.close
    end

    it 'leaves nothing behind that could crash when there is not enough memory' do
      result = run_ruby(<<~CODE)
        require 'ffi-rzmq'
        2.times do
          ZMQ::ManagedMessage.of_size(1 << 62)
        rescue ZMQ::MessageError => e
          puts e.enomem?
        end
        GC.start
      CODE
      expect(result.output).to eq("true\ntrue\n")
      expect(result.status).to be_success
    end
  end

  describe '#copy_in_string, #copy_in_bytes' do
    it 'take no more bytes than there are, and not less than none' do
      message = described_class.new('first')
      [4, -1].each { |length| expect { message.copy_in_bytes('abc', length) }.to raise_error(RangeError) }
      expect(message.copy_out_string).to eq('first')
      message.close
    end

    it 'make no message when there is not enough memory' do
      allow(LibC).to receive(:malloc).and_return(FFI::Pointer::NULL)
      expect { described_class.new('text') }.to raise_error(ZMQ::MessageError) { |e| expect(e).to be_enomem }
    end

    it 'replace the content' do
      message = described_class.new('first')
      expect(message.copy_in_string('second one')).to eq(0)
      expect(message.copy_out_string).to eq('second one')
      expect(message.copy_in_bytes("a\0bcd", 3)).to eq(0)
      expect(message.copy_out_string).to eq("a\0b")
      message.close
    end

    it 'free what they replace', :slow, :mri do
      message = described_class.new
      string = 'x' * 100_000
      grown = resident_growth_kb { 2_000.times { message.copy_in_string(string) } }
      message.close
      expect(grown).to be < 20_000
    end
  end

  describe '#copy, #move' do
    %i[itself pointer].each do |form|
      it "take content from a message given as #{form}" do
        source = described_class.new('text')
        shared = described_class.new
        moved = described_class.new
        expect(shared.copy(source.public_send(form))).to eq(0)
        expect([shared.copy_out_string, source.copy_out_string]).to eq(%w[text text])
        expect(moved.move(source.public_send(form))).to eq(0)
        expect([moved.copy_out_string, source.size]).to eq(['text', 0])
        [source, shared, moved].each(&:close)
      end
    end

    it 'call libzmq' do
      source = described_class.new('text')
      target = described_class.new
      expect(LibZMQ).to receive(:zmq_msg_copy).with(target.pointer, source.pointer)
      target.copy(source)
      expect(LibZMQ).to receive(:zmq_msg_move).with(target.pointer, source.pointer)
      target.move(source)
    end
  end

  describe '#size, #data' do
    it 'ask libzmq' do
      message = described_class.new('text')
      expect(LibZMQ).to receive(:zmq_msg_size).and_call_original
      expect(message.size).to eq(4)
      expect(LibZMQ).to receive(:zmq_msg_data).and_call_original
      expect(message.data.read_bytes(4)).to eq('text')
      message.close
    end
  end

  describe '#copy_out_string' do
    it 'gives a new string of binary encoding each time' do
      message = described_class.new('é')
      first = message.copy_out_string
      first << 'changed'
      expect(message.copy_out_string).to eq('é'.b)
      expect(message.to_s.encoding).to eq(Encoding::BINARY)
      message.close
    end
  end

  describe '#close' do
    it 'calls libzmq once' do
      message = described_class.new('text')
      expect(LibZMQ).to receive(:zmq_msg_close).once.and_call_original
      expect([message.close, message.close]).to eq([0, 0])
      expect(message).to be_closed
    end

    it 'leaves nothing that could crash' do
      message = described_class.new('text')
      message.close
      expect([message.size, message.copy_out_string, message.data, message.more?]).to eq([0, '', nil, false])
      failures = [message.get(ZMQ::MORE), message.set(1, 1), message.copy(described_class.new),
                  message.move(described_class.new), message.copy_in_string('a'), message.copy_in_bytes('a', 1)]
      expect(failures).to all(eq(-1))
      expect(ZMQ::Util.errno).to eq(ZMQ::EFAULT)
      expect([message.gets('User-Id'), message.inspect]).to eq([nil, '#<ZMQ::Message closed>'])
    end

    it 'leaves nothing that could be sent or received into' do
      first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
      message = described_class.new('text')
      message.close
      expect([first.sendmsg(message), second.recvmsg(message)]).to eq([-1, -1])
      expect(described_class.new.copy(message)).to eq(-1)
    end
  end

  describe '#more?, #get' do
    it 'tell whether further parts follow' do
      first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
      first.send_strings(%w[a b])
      first.send_string('c')
      message = described_class.new
      told = Array.new(3) do
        second.recvmsg(message)
        [message.more?, message.get(ZMQ::MORE), second.more_parts?]
      end
      expect(told).to eq([[true, 1, true], [false, 0, false], [false, 0, false]])
      message.close
    end

    it 'fail for a property that does not exist' do
      message = described_class.new('a')
      expect([message.get(999), message.set(999, 1)]).to eq([-1, -1])
      message.close
    end
  end

  describe '#gets' do
    it 'is asked for by name' do
      first, second = connected(ZMQ::PAIR, ZMQ::PAIR, transport: :tcp)
      first.send_string('a')
      message = second.receive_into(ZMQ::Message.new, timeout: Sockets::SOON)
      expect([message.gets(:'Socket-Type'), message.gets('Nonsense'), message.gets(nil)]).to eq(['PAIR', nil, nil])
      message.close
    end

    it 'tells about the peer' do
      first, second = connected(ZMQ::PULL, ZMQ::PUSH, transport: :tcp)
      second.send_string('a')
      message = first.receive_into(described_class.new, timeout: Sockets::SOON)
      expect([message.gets('Socket-Type'), message.gets('Peer-Address'), message.gets('X')])
        .to eq(['PUSH', '127.0.0.1', nil])
      message.close
    end
  end

  describe 'sent and received' do
    it 'needs no copy and no new object', :mri do
      first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
      message = described_class.new('x' * 1000)
      objects = objects_per_round do
        first.sendmsg(message)
        second.recvmsg(message)
      end
      expect(objects).to be < 0.01
      expect(message.size).to eq(1000)
      message.close
    end

    it 'is empty after it was sent and keeps its content when it could not be' do
      first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
      message = described_class.new('text')
      expect([first.sendmsg(message), message.size]).to eq([4, 0])
      lonely = new_socket(ZMQ::PUSH)
      message.copy_in_string('again')
      expect([lonely.sendmsg(message, ZMQ::DONTWAIT), message.copy_out_string]).to eq([-1, 'again'])
      expect(second.receive(timeout: Sockets::SOON)).to eq('text')
      message.close
    end
  end
end

RSpec.describe ZMQ::Message do
  it 'copied or moved to itself stays as it is' do
    message = described_class.new('text' * 20)
    [message, message.pointer].each do |same|
      expect([message.copy(same), message.move(same), message.copy_out_string]).to eq([0, 0, 'text' * 20])
    end
    message.close
    expect([message.copy(message), ZMQ::Util.errno]).to eq([-1, ZMQ::EFAULT])
  end

  [described_class, ZMQ::ManagedMessage].each do |kind|
    it "of the class #{kind} and its duplicates share their content, and each is closed by itself" do
      message = kind.new('text' * 20)
      copies = [message.dup, message.clone]
      message.close
      expect(copies.map(&:copy_out_string)).to eq(['text' * 20] * 2)
      expect(copies.map(&:close) + [message.dup.closed?]).to eq([0, 0, true])
    end
  end
end

RSpec.describe ZMQ::ManagedMessage do
  it 'stays whole when duplicates of it are garbage', :mri do
    message = described_class.new('text' * 20)
    100.times { message.dup }
    3.times { GC.start }
    expect(message.copy_out_string).to eq('text' * 20)
  end

  it 'is a message with a finalizer' do
    expect(ObjectSpace).to receive(:define_finalizer).once
    expect(described_class.new('text').copy_out_string).to eq('text')
  end

  it 'has its finalizer also when it is made empty, to be received into' do
    expect(ObjectSpace).to receive(:define_finalizer).once
    described_class.new
  end

  it 'can be closed, and then is not closed again' do
    message = described_class.new('text')
    expect([message.close, message.close, message.size]).to eq([0, 0, 0])
  end

  it 'is whole for as long as it is used, however many others the garbage collector frees meanwhile', :slow do
    first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
    100_000.times do
      first.sendmsg(described_class.new('sent'))
      second.recvmsg(described_class.new)
      raise 'wrong bytes' unless described_class.new('kept').copy_out_string == 'kept'
    end
  end

  it 'is freed by the garbage collector after it was received', :slow, :mri do
    first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
    string = 'x' * 4096
    receive = proc { first.send_string(string) && second.recvmsg(described_class.new) }
    20_000.times(&receive)
    expect(resident_growth_kb { 20_000.times(&receive) }).to be < 20_000
  end
end
