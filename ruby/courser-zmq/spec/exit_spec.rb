# frozen_string_literal: true

RSpec.describe 'the end of a program' do
  # Runs a program in a process of its own; one that hangs makes the example fail.
  # Less than the LINGER of 30 s that unsent messages get, and more than a busy machine takes.
  def ends(code, within: 15)
    result = run_ruby("require 'ffi-rzmq'\ncontext = ZMQ::Context.new\n#{code}")
    expect(result.errors.lines.grep_v(/warning|WARNING/)).to eq([])
    expect(result.status).to be_success
    expect(result.seconds).to be < within unless RUBY_ENGINE == 'jruby'
    result.output
  end

  it 'comes although a message is unsent and nothing is closed' do
    ends("socket = context.socket(ZMQ::PUSH); socket.connect('#{dead_endpoint}'); socket.send_string('unsent')")
  end

  it 'comes although the socket is closed and the context is not terminated', :mri do
    ends("s = context.socket(ZMQ::PUSH); s.connect('#{dead_endpoint}'); s.send_string('unsent'); s.close")
  end

  it 'comes although LINGER was set to infinite', :mri do
    ends("s = context.socket(ZMQ::PUSH); s.setsockopt(ZMQ::LINGER, -1); s.connect('#{dead_endpoint}')
          s.send_string('unsent')")
    ends("s = context.socket(ZMQ::PUSH); s.setsockopt(ZMQ::LINGER, -1); s.connect('#{dead_endpoint}')
          s.send_string('unsent'); s.close")
  end

  it 'comes although a context is garbage while its socket lives', :mri do
    ends("socket = context.socket(ZMQ::PUSH); context = nil; 3.times { GC.start }; sleep 0.1
          socket.connect('#{dead_endpoint}'); socket.send_string('unsent')")
  end

  it 'comes although other threads wait on sockets', :mri do
    ends('3.times { Thread.new { context.socket(ZMQ::PULL).recv_string(+"") } }; sleep 0.2')
    ends('s = context.socket(ZMQ::PULL); Thread.new { s.recv_string(+"") }; sleep 0.2')
    ends('a = context.socket(ZMQ::PULL); b = context.socket(ZMQ::PUSH); Thread.new { ZMQ::Proxy.new(a, b) }; sleep 0.2')
  end

  it 'comes by exit, by an exception and in a thread', :mri do
    setup = "s = context.socket(ZMQ::PUSH); s.connect('#{dead_endpoint}'); s.send_string('unsent')\n"
    ends("#{setup}exit")
    ends("#{setup}Thread.new { exit }.join")
    result = run_ruby("require 'ffi-rzmq'\ncontext = ZMQ::Context.new\n#{setup}raise 'failed'")
    expect([result.status.exitstatus, result.errors]).to match([1, /failed/])
  end

  it 'waits for messages on their way', :mri do
    puller = new_socket(ZMQ::PULL)
    place = puller.bind!('tcp://127.0.0.1:*')
    ends("s = context.socket(ZMQ::PUSH); s.connect('#{place}'); 500.times { |n| s.send_string(n.to_s) }")
    expect(Array.new(500) { puller.receive(timeout: Sockets::SOON) }).to eq((0..499).map(&:to_s))
  end

  it 'waits for messages that other threads have sent', :mri do
    puller = new_socket(ZMQ::PULL)
    place = puller.bind!('tcp://127.0.0.1:*')
    ends(<<~CODE)
      sent = Queue.new
      Thread.new { s = context.socket(ZMQ::PUSH); s.connect('#{place}'); s.send_string('a'); sent << true; sleep }
      sent.pop
    CODE
    expect(puller.receive(timeout: Sockets::SOON)).to eq('a')
  end

  it 'lets threads that it ends terminate the context', :mri do
    ends(<<~CODE)
      ready = Queue.new
      Thread.new do
        socket = context.socket(ZMQ::PULL)
        ready << true
        sleep
      ensure
        socket.close
        context.terminate
      end
      ready.pop
    CODE
  end

  it 'leaves sockets to the at_exit handlers, also to one that was there before' do
    puller = new_socket(ZMQ::PULL)
    place = puller.bind!('tcp://127.0.0.1:*')
    result = run_ruby(<<~CODE)
      at_exit do
        puts SOCKET.send_string('made before')
        other = ZMQ::Context.new.socket(ZMQ::PUSH)
        other.connect('#{place}')
        other.send_string('made there')
      end
      require 'ffi-rzmq'
      SOCKET = ZMQ::Context.new.socket(ZMQ::PUSH)
      SOCKET.connect('#{place}')
    CODE
    expect(result.output.split).to eq(%w[11])
    expect(Array.new(2) { puller.receive(timeout: Sockets::SOON) }).to contain_exactly('made before', 'made there')
  end

  it 'leaves sockets to at_exit handlers in child processes, too, and waits for their messages', :mri do
    puller = new_socket(ZMQ::PULL)
    place = puller.bind!('tcp://127.0.0.1:*')
    ends(<<~CODE)
      at_exit do
        next unless Process.pid == $parent
        Process.wait(fork do
          own = ZMQ::Context.new.socket(ZMQ::PUSH)
          own.connect('#{place}')
          own.send_string('from the child')
        end)
      end
      $parent = Process.pid
    CODE
    expect(puller.receive(timeout: Sockets::SOON)).to eq('from the child')
  end

  it 'can be hastened by Ctrl-C', :mri do
    result = run_ruby(<<~CODE)
      require 'ffi-rzmq'
      socket = ZMQ::Context.new.socket(ZMQ::PUSH)
      socket.setsockopt(ZMQ::LINGER, 60_000)
      socket.connect('#{dead_endpoint}')
      socket.send_string('unsent')
      spawn('sleep 1; kill -INT ' + Process.pid.to_s)
    CODE
    expect(result.seconds).to be < 50
  end

  it 'waits as long as a finite LINGER says', :mri do
    result = run_ruby(<<~CODE)
      require 'ffi-rzmq'
      socket = ZMQ::Context.new.socket(ZMQ::PUSH)
      socket.setsockopt(ZMQ::LINGER, 2500)
      socket.connect('#{dead_endpoint}')
      socket.send_string('unsent')
    CODE
    expect(result.seconds).to be_between(2.4, 50)
  end

  it 'waits as long as the program says', :mri do
    result = run_ruby(<<~CODE)
      require 'ffi-rzmq'
      ZMQ.exit_linger_ms = 2500
      socket = ZMQ::Context.new.socket(ZMQ::PUSH)
      socket.connect('#{dead_endpoint}')
      socket.send_string('unsent')
    CODE
    expect(result.seconds).to be_between(2.4, 50)
  end

  it 'is not held up by a termination, which waits for as long as default_linger_ms says', :mri do
    result = run_ruby(<<~CODE)
      require 'ffi-rzmq'
      puts ZMQ.default_linger_ms
      ZMQ.default_linger_ms = 1500
      context = ZMQ::Context.new
      socket = context.socket(ZMQ::PUSH)
      socket.connect('#{dead_endpoint}')
      socket.send_string('unsent')
      start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      puts context.terminate, (Process.clock_gettime(Process::CLOCK_MONOTONIC) - start).between?(1.4, 4)
    CODE
    expect(result.output.split).to eq(%w[30000 0 true])
  end

  it 'frees the sockets that the garbage collector finds', :mri do
    output = ends(<<~CODE)
      1500.times { context.socket(ZMQ::PUSH) or (GC.start; sleep 0.1) }
      GC.start
      sleep 0.3
      puts context.socket(ZMQ::PUSH) ? 'room' : 'full'
    CODE
    expect(output).to eq("room\n")
  end

  it 'frees contexts that the garbage collector finds, once their sockets are gone', :mri do
    output = ends(<<~CODE)
      descriptors = -> { Dir.children('/proc/self/fd').size }
      before = descriptors.call
      20.times { ZMQ::Context.new.socket(ZMQ::PUSH) }
      puts descriptors.call - before > 60
      10.times { GC.start; sleep 0.05 }
      puts descriptors.call - before < 20
    CODE
    expect(output).to eq("true\ntrue\n")
  end

  it 'does not matter to a context whose last socket outlives it', :mri do
    output = ends(<<~CODE)
      first = context.socket(ZMQ::PAIR)
      second = context.socket(ZMQ::PAIR)
      context = nil
      3.times { GC.start }
      sleep 0.2
      first.bind('inproc://a')
      second.connect('inproc://a')
      first.send_string('alive')
      second.recv_string(text = +'')
      puts text
      [first, second].each(&:close)
    CODE
    expect(output).to eq("alive\n")
  end
end
