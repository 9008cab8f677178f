# frozen_string_literal: true

require 'tmpdir'

RSpec.describe 'interoperation with the C API' do
  before(:all) do
    @folder = Dir.mktmpdir
    @peer = File.join(@folder, 'peer')
    built = system('cc', '-O1', '-Wall', '-Wextra', '-Werror', '-o', @peer, "#{__dir__}/support/peer.c", '-lzmq')
    raise 'the C peer could not be built; it needs cc and libzmq3-dev' unless built
  end

  after(:all) { FileUtils.remove_entry(@folder) }

  # Runs the peer bound, gives its endpoint to the block and returns what it printed.
  def with_bound_peer(type, *steps)
    output = IO.popen([@peer, ZMQ.const_get(type).to_s, 'bind', 'tcp://127.0.0.1:*', *steps]) do |io|
      yield io.gets.chomp
      io.read
    end
    expect(Process.last_status).to be_success
    output.lines.map(&:chomp)
  end

  # Runs the peer connected to `endpoint` while the block runs and returns what it printed.
  def with_connected_peer(type, endpoint, *steps)
    output = IO.popen([@peer, ZMQ.const_get(type).to_s, 'connect', endpoint, *steps]) do |io|
      yield
      io.read
    end
    expect(Process.last_status).to be_success
    output.lines.map(&:chomp)
  end

  it 'REQ here, REP there' do
    printed = with_bound_peer(:REP, 'receive', 'send=an|answer', 'receive', 'echo') do |place|
      requester = new_socket(ZMQ::REQ).connect!(place)
      expect(requester.request('a', 'question', timeout: Sockets::SOON)).to eq(%w[an answer])
      expect(requester.request('again', timeout: Sockets::SOON)).to eq(%w[again])
    end
    expect(printed).to eq(%w[a|question again])
  end

  it 'REP here, REQ there' do
    replier = new_socket(ZMQ::REP)
    printed = with_connected_peer(:REQ, replier.bind!('tcp://127.0.0.1:*'), 'send=question', 'receive') do
      expect(replier.receive_message(timeout: Sockets::SOON)).to eq(%w[question])
      replier << %w[an answer]
    end
    expect(printed).to eq(%w[an|answer])
  end

  it 'PULL here, PUSH there, and the other way round' do
    puller = new_socket(ZMQ::PULL)
    with_connected_peer(:PUSH, puller.bind!('tcp://127.0.0.1:*'), 'send=a', 'send=b|c|') do
      expect(Array.new(2) { puller.receive_message(timeout: Sockets::SOON) }).to eq([%w[a], ['b', 'c', '']])
    end
    printed = with_bound_peer(:PULL, 'receive', 'receive') do |place|
      pusher = new_socket(ZMQ::PUSH, linger: 5000).connect!(place)
      pusher << 'one' << ['two', '', 'parts']
      pusher.close
    end
    expect(printed).to eq(%w[one two||parts])
  end

  it 'SUB here, PUB there' do
    steps = ['number=17:1000', 'receive', 'send=other|x', 'send=topic.1|body']
    with_bound_peer(:XPUB, *steps) do |place|
      subscriber = new_socket(ZMQ::SUB, subscribe: 'topic').connect!(place)
      expect(subscriber.receive_message(timeout: Sockets::SOON)).to eq(%w[topic.1 body])
    end
  end

  it 'PUB here, SUB there' do
    publisher = new_socket(ZMQ::XPUB)
    steps = ["option=#{ZMQ::SUBSCRIBE}:news", 'receive']
    printed = with_connected_peer(:SUB, publisher.bind!('tcp://127.0.0.1:*'), *steps) do
      expect(publisher.receive(timeout: Sockets::SOON)).to eq("\x01news")
      publisher << %w[olds x] << %w[news y]
    end
    expect(printed).to eq(%w[news|y])
  end

  it 'ROUTER here, DEALER there' do
    router = new_socket(ZMQ::ROUTER)
    steps = ["option=#{ZMQ::IDENTITY}:dealer", 'send=|hello', 'receive']
    printed = with_connected_peer(:DEALER, router.bind!('tcp://127.0.0.1:*'), *steps) do
      router.recv_multipart(body = [], envelope = [])
      expect([envelope, body].map { |list| list.map(&:copy_out_string) }).to eq([['dealer', ''], ['hello']])
      router.sendmsgs(envelope, ZMQ::SNDMORE)
      router.send_string('world')
    end
    expect(printed).to eq(%w[|world])
  end

  it 'a zero-copy echo here' do
    replier = new_socket(ZMQ::REP)
    printed = with_connected_peer(:REQ, replier.bind!('tcp://127.0.0.1:*'), 'send=ping', 'receive') do
      message = ZMQ::Message.new
      replier.recvmsg(message)
      replier.sendmsg(message)
      message.close
    end
    expect(printed).to eq(%w[ping])
  end

  it 'PLAIN and heartbeats' do
    ZMQ::ZapHandler.new(context).allow_plain('ann' => 'secret').start
    puller = new_socket(ZMQ::PULL, plain_server: 1, heartbeat_ivl: 50)
    steps = ["option=#{ZMQ::PLAIN_USERNAME}:ann", "option=#{ZMQ::PLAIN_PASSWORD}:secret",
             "number=#{ZMQ::HEARTBEAT_IVL}:50", 'send=let in']
    with_connected_peer(:PUSH, puller.bind!('tcp://127.0.0.1:*'), *steps) do
      message = puller.receive_into(ZMQ::Message.new, timeout: Sockets::SOON)
      expect([message.copy_out_string, message.gets('User-Id')]).to eq(['let in', 'ann'])
    end
  end

  it 'CURVE' do
    server_keys, client_keys = Array.new(2) { ZMQ::Util.curve_keypair }
    puller = new_socket(ZMQ::PULL, curve_server: 1, curve_secretkey: server_keys[1])
    options = { CURVE_SERVERKEY: server_keys[0], CURVE_PUBLICKEY: client_keys[0], CURVE_SECRETKEY: client_keys[1] }
    steps = options.map { |name, value| "option=#{ZMQ.const_get(name)}:#{value}" }
    with_connected_peer(:PUSH, puller.bind!('tcp://127.0.0.1:*'), *steps, 'send=secret') do
      expect(puller.receive(timeout: Sockets::SOON)).to eq('secret')
    end
  end
end
