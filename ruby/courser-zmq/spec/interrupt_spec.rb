# frozen_string_literal: true

RSpec.describe 'interrupts' do
  let(:lonely_puller) { new_socket(ZMQ::PULL).tap { |socket| socket.bind!('tcp://127.0.0.1:*') } }
  let(:lonely_pusher) { new_socket(ZMQ::PUSH).tap { |socket| socket.bind!('tcp://127.0.0.1:*') } }
  let(:poller) { ZMQ::Poller.new.tap { |made| made.register_readable(lonely_puller) } }

  waits = {
    'recv_string' => -> { lonely_puller.recv_string(+'') },
    'recvmsg' => -> { lonely_puller.recvmsg(ZMQ::Message.new) },
    'recv_strings' => -> { lonely_puller.recv_strings([]) },
    'receive' => -> { lonely_puller.receive },
    'receive with a timeout' => -> { lonely_puller.receive(timeout: 60) },
    'receive_messages' => -> { lonely_puller.receive_messages },
    'receive_messages with a timeout' => -> { lonely_puller.receive_messages(timeout: 60) },
    'each_message' => -> { lonely_puller.each_message { |text| text } },
    'send_messages' => -> { lonely_pusher.send_messages(%w[a b]) },
    'send_messages with a timeout' => -> { lonely_pusher.send_messages(%w[a b], timeout: 60) },
    'send_string' => -> { lonely_pusher.send_string('a') },
    'sendmsg' => -> { lonely_pusher.sendmsg(ZMQ::Message.new('a')) },
    'send_message of parts' => -> { lonely_pusher.send_message('a', 'b') },
    'send_strings' => -> { lonely_pusher.send_strings(%w[a b]) },
    'sendmsgs' => -> { lonely_pusher.sendmsgs(%w[a b].map { |text| ZMQ::Message.new(text) }) },
    'recvmsgs' => -> { lonely_puller.recvmsgs([]) },
    'send_message with a timeout' => -> { lonely_pusher.send_message('a', timeout: 60) },
    'poll' => -> { poller.poll },
    'poll with a timeout' => -> { poller.poll(60_000) }
  }

  waits.each do |name, wait|
    describe "a waiting #{name}" do
      it 'ends with Timeout' do
        taken = seconds do
          expect { Timeout.timeout(0.2) { instance_exec(&wait) } }.to raise_error(Timeout::Error)
        end
        expect(taken).to be < Sockets::SOON
      end

      it 'ends with Thread#kill' do
        thread = Thread.new { instance_exec(&wait) }
        sleep 0.2
        expect(thread.kill.join(Sockets::SOON)).to equal(thread)
      end

      it 'ends with Thread#raise' do
        thread = Thread.new do
          instance_exec(&wait)
        rescue IOError => e
          e.message
        end
        sleep 0.2
        thread.raise(IOError, 'enough')
        expect(thread.join(Sockets::SOON)&.value).to eq('enough')
      end

      it 'fails with ENOTSOCK when another thread closes the socket' do
        thread = Thread.new do
          [instance_exec(&wait), ZMQ::Util.errno]
        rescue ZMQ::SocketError => e
          [-1, e.error_code]
        end
        sleep 0.2
        expect([lonely_puller, lonely_pusher].map(&:close)).to eq([0, 0])
        expect(thread.join(Sockets::SOON)&.value).to eq([-1, ZMQ::ENOTSOCK])
      end
    end
  end

  it 'end when a socket is closed that was handed to the waiting thread' do
    puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH)
    later = Thread.new { sleep(0.1) && pusher.send_string('a') }
    puller.receive
    later.join
    thread = Thread.new { [puller.recv_string(+''), ZMQ::Util.errno] }
    sleep 0.2
    puller.close
    expect(thread.join(Sockets::SOON)&.value).to eq([-1, ZMQ::ENOTSOCK])
  end

  it 'do not lose the messages that come at the same time' do
    puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH, transport: :tcp)
    total = 400
    worker = Thread.new { total.times { |number| pusher.send_string(number.to_s) && sleep(rand / 200) } }
    received = []
    interrupted_in_a_wait { loop { received << puller.receive.to_i } } while worker.alive? || received.size < total
    expect(received).to eq([*0...total])
  end

  it 'do not lose an empty message that comes at the same time', :mri do
    { inproc: ['', 'body'], tcp: [''] }.each do |transport, message|
      first, second = connected(ZMQ::PAIR, ZMQ::PAIR, transport: transport)
      receive_now(second) # so that the next receive waits
      Thread.new { sleep(0.1) && first.send_message(*message) }
      allow(ZMQ::Native).to receive(:wait_recv).and_wrap_original do |original, *arguments|
        original.call(*arguments)
        raise IOError
      end
      expect { second.recv_string(+'') }.to raise_error(IOError)
      RSpec::Mocks.space.proxy_for(ZMQ::Native).reset
      expect(second.receive_message(timeout: Sockets::SOON)).to eq(message)
    end
  end

  it 'leave the copy of what was to be sent to the garbage collector', :mri do
    allow(ZMQ::Native).to receive(:wait_send).and_raise(IOError)
    closed = 0
    # Only what is made here counts: earlier examples have left messages to it as well.
    allow(ZMQ::ManagedMessage).to receive(:releaser).and_wrap_original do |original, pointer|
      release = original.call(pointer)
      proc { closed += 1 if release.call }
    end
    100.times { expect { lonely_pusher.send_string('late') }.to raise_error(IOError) }
    eventually { GC.start || closed > 50 }
  end

  it 'leave no kept message to a closed socket' do
    second = new_socket(ZMQ::PAIR)
    second.send(:keep, ZMQ::Message.new('kept').pointer)
    second.close
    expect([second.recv_string(text = +''), ZMQ::Util.errno, text]).to eq([-1, ZMQ::ENOTSOCK, ''])
  end

  it 'leave a kept message to be seen by a poll' do
    first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
    second.send(:keep, ZMQ::Message.new('kept').pointer)
    poller = ZMQ::Poller.new
    poller.register_readable(second)
    poller.register_writable(first)
    expect([poller.poll(1000), poller.readables, second.get(:events)]).to eq([2, [second], 3])
    expect([receive_now(second), poller.poll(1000), poller.readables]).to eq(['kept', 1, []])
  end

  it 'keep a message for the next receive, of any kind' do
    first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
    message = ZMQ::Message.new('kept')
    receives = [-> { second.recv_string(string = +'') && string }, -> { second.receive },
                -> { second.receive(timeout: 1) }, -> { second.receive_into(ZMQ::Message.new).copy_out_string },
                -> { second.recv_strings(list = []) && list[0] }, -> { receive_now(second) }]
    receives.each do |receive|
      message.copy_in_string('kept')
      second.send(:keep, message.pointer)
      first.send_string('next')
      expect([receive.call, receive.call]).to eq(%w[kept next])
    end
  end

  describe 'a signal', :mri do
    it 'makes a waiting recv_string return -1 with EINTR once its handler has run' do
      result = run_ruby(<<~CODE)
        require 'ffi-rzmq'
        socket = ZMQ::Context.new.socket(ZMQ::PULL)
        trap(:USR1) { puts 'trapped' }
        Thread.new { sleep 0.3; Process.kill(:USR1, Process.pid) }
        puts socket.recv_string(+''), ZMQ::Util.errno == ZMQ::EINTR
      CODE
      expect(result.output.split).to eq(%w[trapped -1 true])
    end

    it 'does not end a waiting receive, proxy or termination' do
      result = run_ruby(<<~CODE)
        require 'ffi-rzmq'
        context = ZMQ::Context.new
        puller = context.open(:pull, bind: 'inproc://a')
        pusher = context.open(:push, connect: 'inproc://a')
        trap(:USR1) { puts 'trapped' }
        Thread.new { 3.times { sleep 0.2; Process.kill(:USR1, Process.pid) }; pusher << 'late' }
        puts puller.receive
        Thread.new { sleep 0.2; Process.kill(:USR1, Process.pid); sleep 0.2; context.terminate }
        ZMQ::Proxy.new(puller, pusher)
        puts 'proxy ended'
        other = ZMQ::Context.new
        Thread.new { s = other.socket(ZMQ::PULL); sleep 0.4; s.close }
        sleep 0.1
        Thread.new { sleep 0.1; Process.kill(:USR1, Process.pid) }
        puts other.terminate
      CODE
      expect([result.output.split("\n"), result.errors])
        .to eq([['trapped', 'trapped', 'trapped', 'late', 'trapped', 'proxy ended', 'trapped', '0'], ''])
    end

    it 'may close sockets and terminate contexts in its handler' do
      result = run_ruby(<<~CODE)
        require 'ffi-rzmq'
        context = ZMQ::Context.new
        socket = context.socket(ZMQ::PULL)
        trap(:INT) do
          puts socket.close, context.terminate
          exit
        end
        Thread.new { sleep 0.3; Process.kill(:INT, Process.pid) }
        loop { socket.recv_string(+'') }
      CODE
      expect([result.output.split, result.errors, result.status.exitstatus]).to eq([%w[0 0], '', 0])
    end
  end

  describe 'Ctrl-C' do
    waits = ["socket.recv_string(+'')", 'socket.receive', 'poller.poll', 'ZMQ::Proxy.new(socket, other)']
    waits = waits.first(1) if RUBY_ENGINE == 'jruby'

    waits.each do |wait|
      it "ends a program in #{wait}" do
        result = run_ruby(<<~CODE)
          require 'ffi-rzmq'
          context = ZMQ::Context.new
          socket = context.socket(ZMQ::PULL)
          other = context.socket(ZMQ::PUSH)
          poller = ZMQ::Poller.new
          poller.register_readable(socket)
          main = Thread.current
          # JRuby raises no Interrupt by itself.
          trap(:INT) { main.raise(Interrupt) } if RUBY_ENGINE == 'jruby'
          Thread.new { sleep 0.5; Process.kill(:INT, Process.pid) }
          begin
            #{wait}
          rescue Interrupt
            puts 'interrupted'
          end
        CODE
        expect(result.output).to eq("interrupted\n"), result.errors
      end
    end
  end
end
