# frozen_string_literal: true

RSpec.describe ZMQ::Socket::Batches do
  let(:sockets) { connected(ZMQ::PAIR, ZMQ::PAIR) }
  let(:first) { sockets[0] }
  let(:second) { sockets[1] }

  describe '#each_message' do
    it 'gives the parts of each message until none comes in time' do
      [%w[a 1], %w[b 2], %w[c]].each { |parts| first << parts }
      seen = []
      expect(second.each_message(timeout: 0.05) { |name, value| seen << [name, value] }).to equal(second)
      expect(seen).to eq([%w[a 1], %w[b 2], ['c', nil]])
    end

    it 'ends with the context' do
      worker = Thread.new do
        socket = context.socket(ZMQ::PULL)
        seen = socket.each_message.to_a
        socket.close
        seen
      end
      sleep 0.2
      context.terminate
      expect(worker.value).to eq([])
    end

    it 'is an enumerator without a block' do
      3.times { |number| first << number.to_s }
      expect(second.each_message.first(2)).to eq(%w[0 1])
      expect(second.each_message(timeout: 0.05).map(&:to_i)).to eq([2])
    end

    it 'leaves what comes after a break, or after an error, to the next receive' do
      first.send_messages(%w[a b c d])
      failing = proc { |text| raise IOError, text }
      expect(second.each_message.first).to eq('a')
      expect { second.each_message(&failing) }.to raise_error(IOError, 'b')
      expect(second.receive_messages).to eq([%w[c], %w[d]])
    end

    it 'lets the block receive, too, and close the socket' do
      first.send_messages(%w[a b c d])
      pairs = []
      expect do
        second.each_message do |text|
          pairs << [text, second.receive]
          second.close if pairs.size == 2
        end
      end.to raise_error(ZMQ::SocketError) { |error| expect(error.error_code).to eq(ZMQ::ENOTSOCK) }
      expect(pairs).to eq([%w[a b], %w[c d]])
    end

    it 'is ended by another thread also while messages keep coming' do
      pusher, puller = connected(ZMQ::PUSH, ZMQ::PULL)
      endless = Thread.new { loop { pusher.send_string('x') } }
      counted = 0
      thread = Thread.new { puller.each_message { counted += 1 } }
      eventually { counted > 1000 }
      expect(thread.kill.join(Sockets::SOON)).to equal(thread)
      endless.kill.join
    end

    it 'gives what was put aside when a wait was interrupted, in its order', :mri do
      total = 300
      worker = Thread.new { total.times { |number| first.send_string(number.to_s) && sleep(rand / 200) } }
      received = []
      while worker.alive? || received.size < total
        interrupted_in_a_wait { second.each_message { |text| received << text.to_i } }
      end
      expect(received).to eq((0...total).to_a)
    end

    it 'lets errors of the block through' do
      first << 'a'
      failing = proc { raise ZMQ::TimeoutError.new('mine', -1, 0, '') }
      expect { second.each_message(&failing) }.to raise_error(ZMQ::TimeoutError, /error code \[0\]/)
    end
  end

  describe '#receive_messages' do
    it 'gives the messages that are there, with their parts' do
      first.send_messages(['a', %w[b c], '', ['', 'd', '']])
      expect(second.receive_messages).to eq([%w[a], %w[b c], [''], ['', 'd', '']])
    end

    it 'takes no more than the limit' do
      first.send_messages(%w[a b c])
      expect([second.receive_messages(2), second.receive_messages(2)]).to eq([[%w[a], %w[b]], [%w[c]]])
      [0, -1].each { |limit| expect { second.receive_messages(limit) }.to raise_error(ArgumentError) }
    end

    it 'stops after a mebibyte, and leaves the rest for the next' do
      part = 'x' * 300_000
      first.send_messages([part] * 6)
      sizes = Array.new(2) { second.receive_messages.map { |(only)| only.bytesize } }
      expect(sizes).to eq([[300_000] * 4, [300_000] * 2])
    end

    it 'waits for the first as long as it may' do
      expect(seconds { expect { second.receive_messages(timeout: 0.1) }.to raise_error(ZMQ::TimeoutError) })
        .to be_between(0.09, Sockets::SOON)
      second.set!(rcvtimeo: 20)
      expect { second.receive_messages }.to raise_error(ZMQ::TimeoutError)
      worker = Thread.new { sleep(0.2) && first.send_messages(%w[late]) }
      expect(second.receive_messages(timeout: Sockets::SOON)).to eq([%w[late]])
      worker.join
    end

    it 'gives strings of binary encoding' do
      first.send_messages(['hé'])
      expect(second.receive_messages).to eq([['hé'.b]])
    end

    it 'raises where the socket cannot receive, or is closed' do
      expect { new_socket(ZMQ::PUSH).receive_messages }.to raise_error(ZMQ::SocketError)
      second.close
      expect { second.receive_messages }
        .to raise_error(ZMQ::SocketError) { |error| expect(error.error_code).to eq(ZMQ::ENOTSOCK) }
    end
  end

  describe '#send_messages' do
    it 'sends strings, messages and arrays of both' do
      messages = Array.new(2) { |number| ZMQ::Message.new("m#{number}") }
      expect(first.send_messages(['a', messages[0], ['b', messages[1], 'c'], 'd'])).to equal(first)
      expect(second.receive_messages).to eq([%w[a], %w[m0], %w[b m1 c], %w[d]])
      expect(messages.map(&:size)).to eq([0, 0])
      messages.each(&:close)
    end

    it 'sends nothing where one of them is refused' do
      [nil, [nil], 1, %w[b].push(2)].each do |wrong|
        expect { first.send_messages(['a', wrong]) }.to raise_error(TypeError)
      end
      expect { first.send_messages(['a', []]) }.to raise_error(ArgumentError)
      expect { first.send_messages('a') }.to raise_error(TypeError, /String into Array/)
      expect(first.send_messages([])).to equal(first)
      expect { second.receive(timeout: 0.05) }.to raise_error(ZMQ::TimeoutError)
    end

    it 'waits for room, and says how many went when there was none in time' do
      pusher, puller = connected(ZMQ::PUSH, ZMQ::PULL, bound: { sndhwm: 5 }, connected: { rcvhwm: 5 })
      numbers = [*0...100].map(&:to_s)
      sent = nil
      expect { pusher.send_messages(numbers, timeout: 0.1) }.to raise_error(ZMQ::TimeoutError) { |error|
        sent = error.messages_sent
      }
      expect(sent).to be_between(1, 20)
      rest = Thread.new { pusher.send_messages(numbers.drop(sent), timeout: 10) }
      received = []
      received.concat(puller.receive_messages(timeout: Sockets::SOON)) while received.size < 100
      rest.join
      expect(received.flatten).to eq(numbers)
    end

    it 'keeps the parts of a message together where it has to wait for room' do
      pusher, puller = connected(ZMQ::PUSH, ZMQ::PULL, bound: { sndhwm: 2 }, connected: { rcvhwm: 2 })
      messages = Array.new(200) { |number| [number.to_s, 'x', number.to_s] }
      worker = Thread.new { pusher.send_messages(messages) }
      received = []
      received.concat(puller.receive_messages(7, timeout: Sockets::SOON)) while received.size < 200
      worker.join
      expect(received).to eq(messages)
    end

    it 'raises where the socket cannot send, its turn has not come, or a message is closed' do
      expect { new_socket(ZMQ::PULL).send_messages(%w[a]) }
        .to raise_error(ZMQ::SocketError) { |error| expect(error.messages_sent).to eq(0) }
      requester = new_socket(ZMQ::REQ).connect!(new_socket(ZMQ::REP).bind!(endpoint))
      expect { requester.send_messages(%w[a b]) }.to raise_error(ZMQ::SocketError) { |error|
        expect([error.efsm?, error.messages_sent]).to eq([true, 1])
      }
      closed = ZMQ::Message.new('a').tap(&:close)
      expect { first.send_messages(['a', closed]) }
        .to raise_error(ZMQ::SocketError) { |error| expect(error.messages_sent).to eq(0) }
      expect { second.receive(timeout: 0.05) }.to raise_error(ZMQ::TimeoutError)
    end
  end

  it 'carries many messages over TCP, none lost, in their order' do
    pusher, puller = connected(ZMQ::PUSH, ZMQ::PULL, transport: :tcp)
    numbers = [*0...20_000].map(&:to_s)
    worker = Thread.new { numbers.each_slice(500) { |slice| pusher.send_messages(slice) } }
    received = []
    received.concat(puller.receive_messages(timeout: 10)) while received.size < numbers.size
    worker.join
    expect(received.flatten).to eq(numbers)
  end

  it 'uses two objects for a message of one part, and one in a loop', if: ZMQ::CompiledLoops.available? do
    batch = ['x' * 100] * 500
    taken = objects_per_round(10) { first.send_messages(batch) && second.receive_messages }
    expect(taken / batch.size).to be <= 2.1
    looped = objects_per_round(10) { first.send_messages(batch) && second.each_message(timeout: 0) { |text| text } }
    expect(looped / batch.size).to be <= 1.2
  end
end
