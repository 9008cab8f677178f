# frozen_string_literal: true

require_relative 'support/reactor'

# JRuby's schedulers do not reach into the fibers that they schedule.
RSpec.describe 'under a fiber scheduler', :mri do
  # Runs the block in a reactor beside a fiber that counts, and returns the count.
  def count_beside
    count = 0
    done = false
    Reactor.run do
      Fiber.schedule { (count += 1) && sleep(0.01) until done }
      Fiber.schedule { yield.tap { done = true } }
    end
    count
  end

  %i[inproc tcp].each do |transport|
    it "a receive over #{transport} lets other fibers run" do
      puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH, transport: transport)
      received = +''
      count = count_beside do
        Fiber.schedule { sleep(0.3) && pusher.send_string('late') }
        puller.recv_string(received)
      end
      expect([received, count]).to match(['late', be > 1])
    end
  end

  it 'a receive ends when another fiber closes the socket' do
    puller = new_socket(ZMQ::PULL)
    results = []
    count_beside do
      Fiber.schedule { sleep(0.1) && results << puller.close }
      results << puller.recv_string(+'') << ZMQ::Util.errno
    end
    expect(results).to contain_exactly(-1, ZMQ::ENOTSOCK, 0)
  end

  it 'RCVTIMEO and timeouts are kept' do
    puller = new_socket(ZMQ::PULL, rcvtimeo: 200)
    results = []
    count = count_beside do
      results << puller.recv_string(+'') << ZMQ::Util.errno
      results << begin
        puller.receive(timeout: 0.2)
      rescue ZMQ::TimeoutError
        :timeout
      end
    end
    expect([results, count]).to match([[-1, ZMQ::EAGAIN, :timeout], be > 1])
  end

  it 'a send that has to wait lets other fibers run' do
    pusher = new_socket(ZMQ::PUSH)
    place = pusher.bind!(endpoint)
    puller = nil
    sent = nil
    count = count_beside do
      Fiber.schedule { sleep(0.3) && puller = new_socket(ZMQ::PULL).connect!(place) }
      sent = pusher.send_string('hello')
    end
    expect([sent, count, puller.receive(timeout: Sockets::SOON)]).to match([5, be > 1, 'hello'])
  end

  it 'fibers of one thread talk to each other' do
    replier, requester = connected(ZMQ::REP, ZMQ::REQ, transport: :tcp)
    answers = []
    Reactor.run do
      Fiber.schedule { 20.times { replier << replier.receive.upcase } }
      Fiber.schedule { 20.times { |round| answers.concat(requester.request("a#{round}")) } }
    end
    expect(answers).to eq(Array.new(20) { |round| "A#{round}" })
  end

  it 'one fiber sends on a socket that another waits on' do
    dealer, router = connected(ZMQ::DEALER, ZMQ::ROUTER, transport: :tcp)
    echo = Thread.new { 20.times { router.send_strings(router.receive_message(timeout: Sockets::SOON)) } }
    received = []
    Reactor.run do
      Fiber.schedule { 20.times { received << dealer.receive(timeout: Sockets::SOON) } }
      Fiber.schedule { 20.times { |number| dealer.send_string(number.to_s) && sleep(0.005) } }
    end
    echo.join
    expect(received).to eq((0..19).map(&:to_s))
  end

  it 'a poll lets other fibers run' do
    puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH, transport: :tcp)
    reader, writer = IO.pipe
    poller = ZMQ::Poller.new
    [puller, reader].each { |pollable| poller.register_readable(pollable) }
    results = []
    count = count_beside do
      results << poller.poll(100)
      Fiber.schedule { sleep(0.2) && pusher.send_string('late') }
      results << poller.poll << poller.readables.dup
    end
    [reader, writer].each(&:close)
    expect([results, count]).to match([[0, 1, [puller]], be > 1])
  end

  it 'each_message ends with its timeout' do
    puller, pusher = connected(ZMQ::PULL, ZMQ::PUSH)
    seen = []
    Reactor.run do
      Fiber.schedule { 3.times { |number| pusher.send_string(number.to_s) && sleep(0.02) } }
      Fiber.schedule { puller.each_message(timeout: 0.3) { |text| seen << text } }
    end
    expect(seen).to eq(%w[0 1 2])
  end
end
