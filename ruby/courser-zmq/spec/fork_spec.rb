# frozen_string_literal: true

RSpec.describe 'a fork', :mri do
  # What the block returns in a child process, as text.
  def in_child
    reader, writer = IO.pipe
    pid = fork { answer(writer) { yield.inspect } }
    writer.close
    Timeout.timeout(10) { reader.read }
  ensure
    reader.close
    Process.wait(pid)
  end

  def answer(writer)
    writer.write(yield)
  rescue StandardError => e
    writer.write(e.full_message)
  ensure
    writer.close
    exit!
  end

  it "leaves the parent's sockets unusable in the child, without waiting" do
    socket = new_socket(ZMQ::PULL)
    results = in_child do
      [socket.recv_string(+''), ZMQ::Util.errno, socket.send_string('a'), socket.setsockopt(ZMQ::LINGER, 0),
       socket.closed?, socket.close, context.socket(ZMQ::PULL), context.terminate, context.terminated?]
    end
    expect(results).to eq([-1, ZMQ::ENOTSOCK, -1, -1, true, 0, nil, 0, true].inspect)
  end

  it 'lets the child make contexts and sockets of its own' do
    new_socket(ZMQ::PULL)
    result = in_child do
      ZMQ::Context.open do |own|
        puller = own.open(:pull, bind: 'inproc://a')
        own.open(:push, connect: 'inproc://a') << 'hello'
        puller.receive(timeout: Sockets::SOON)
      end
    end
    expect(result).to eq('"hello"')
  end

  it "does not disturb the parent, whatever the child's garbage collector and exit do" do
    puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH, transport: :tcp)
    unclosed = Array.new(10) { ZMQ::Socket.new(context, ZMQ::PUSH) }
    result = run_in_fork do
      unclosed.clear
      GC.start
    end
    expect(result).to be_success
    pusher.send_string('still here')
    expect(puller.receive(timeout: Sockets::SOON)).to eq('still here')
    unclosed.each(&:close)
  end

  it 'of parent and child can talk' do
    puller = new_socket(ZMQ::PULL)
    place = puller.bind!('tcp://127.0.0.1:*')
    result = run_in_fork do
      ZMQ::Context.open { |own| own.open(:push, connect: place) { |pusher| pusher << 'from the child' } }
    end
    expect([puller.receive(timeout: Sockets::SOON), result.success?]).to eq(['from the child', true])
  end

  it 'by popen and by daemon is noticed, too' do
    result = run_ruby(<<~CODE)
      require 'ffi-rzmq'
      socket = ZMQ::Context.new.socket(ZMQ::PULL)
      if (io = IO.popen('-'))
        puts io.read
      else
        puts socket.closed?
        exit!
      end
      reader, writer = IO.pipe
      if fork
        writer.close
        puts reader.read
      else
        other = ZMQ::Context.new.socket(ZMQ::PULL)
        Process.daemon(true, true)
        writer.puts other.closed?
        writer.close
        exit!
      end
    CODE
    expect([result.output.split, result.errors]).to eq([%w[true true], ''])
  end

  it 'is noticed on Ruby 3.0, which has another hook' do
    old = Class.new do
      def fork
        return 0 unless block_given?

        yield
      end
    end
    old.prepend(ZMQ::Lifecycle::OldForkHook)
    expect(ZMQ::Lifecycle).to receive(:abandon).once
    expect([old.new.fork, old.new.fork { :child }]).to eq([0, :child])
  end

  # Runs the block in a child that ends as programs do.
  def run_in_fork(&block)
    pid = fork do
      $stdout.reopen(File::NULL)
      block.call
      exit!(true)
    end
    Process.wait2(pid)[1]
  end
end
