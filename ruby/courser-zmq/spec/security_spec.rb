# frozen_string_literal: true

RSpec.describe ZMQ::ZapHandler do
  let(:handler) { described_class.new(context) }

  after { handler.stop }

  # Whether a client with these options gets a message through to a server with those.
  def admitted?(server_options, client_options)
    server = new_socket(ZMQ::PULL, **server_options)
    client = new_socket(ZMQ::PUSH, **client_options)
    return false unless handshake?(server, client)

    client.send_message('hello', timeout: Sockets::SOON)
    @received = server.receive_into(ZMQ::Message.new, timeout: Sockets::SOON)
    true
  end

  def handshake?(server, client)
    server.monitor do |watched|
      client.connect!(server.bind!('tcp://127.0.0.1:*'))
      watched.each_event(timeout: Sockets::SOON) do |event|
        return true if event.name == :handshake_succeeded
        return false if event.failure?
      end
    end
    false
  end

  def plain(name, password)
    { plain_username: name, plain_password: password }
  end

  describe 'PLAIN' do
    it 'lets in who knows the password' do
      handler.allow_plain('ann' => 'secret', 'bob' => 'other').start
      expect(admitted?({ plain_server: 1 }, plain('ann', 'secret'))).to be(true)
      expect(@received.gets('User-Id')).to eq('ann')
      [%w[ann wrong], %w[ann other], %w[ann secre], %w[eve secret], %w[ann secrets]].each do |name, password|
        expect(admitted?({ plain_server: 1 }, plain(name, password))).to be(false)
      end
    end

    it 'takes rules while it runs' do
      handler.start
      expect(admitted?({ plain_server: 1 }, plain('ann', 'secret'))).to be(false)
      handler.allow_plain('ann' => 'secret')
      expect(admitted?({ plain_server: 1 }, plain('ann', 'secret'))).to be(true)
    end

    it 'tells the client of a refusal' do
      handler.start
      server = new_socket(ZMQ::PULL, plain_server: 1)
      client = new_socket(ZMQ::PUSH, **plain('ann', 'wrong'))
      client.monitor(ZMQ::EVENT_HANDSHAKE_FAILED_AUTH) do |watched|
        client.connect!(server.bind!('tcp://127.0.0.1:*'))
        event = watched.next_event(timeout: Sockets::SOON)
        expect([event.name, event.value]).to eq([:handshake_failed_auth, 400])
      end
    end
  end

  describe 'CURVE' do
    let(:server_keys) { ZMQ::Util.curve_keypair }
    let(:client_keys) { ZMQ::Util.curve_keypair }
    let(:server_options) { { curve_server: 1, curve_secretkey: server_keys[1] } }

    def curve(keys, server_key = server_keys[0])
      { curve_serverkey: server_key, curve_publickey: keys[0], curve_secretkey: keys[1] }
    end

    it 'encrypts without a handler' do
      expect(admitted?(server_options, curve(client_keys))).to be(true)
      expect(admitted?(server_options, curve(client_keys, client_keys[0]))).to be(false)
    end

    it 'lets in who holds an allowed key' do
      handler.allow_curve(client_keys[0]).start
      expect(admitted?(server_options, curve(client_keys))).to be(true)
      expect(@received.gets('User-Id')).to eq(client_keys[0])
      expect(admitted?(server_options, curve(ZMQ::Util.curve_keypair))).to be(false)
      expect(admitted?(server_options, {})).to be(false)
    end

    it 'gives a key the name that it belongs to' do
      handler.allow_curve(client_keys[0], user_id: 'ann').start
      admitted?(server_options, curve(client_keys))
      expect(@received.gets('User-Id')).to eq('ann')
    end
  end

  describe 'NULL' do
    it 'lets in by domain' do
      handler.allow_null('open').start
      expect(admitted?({ zap_domain: 'open' }, {})).to be(true)
      expect(admitted?({ zap_domain: 'closed' }, {})).to be(false)
    end

    it 'knows domains of any characters' do
      handler.allow_null('größe').start
      expect(admitted?({ zap_domain: 'größe' }, {})).to be(true)
    end
  end

  describe 'addresses' do
    it 'are let in only when they are listed' do
      handler.allow_null('open').allow_addresses('10.0.0.1').start
      expect(admitted?({ zap_domain: 'open' }, {})).to be(false)
      handler.allow_addresses('127.0.0.1')
      expect(admitted?({ zap_domain: 'open' }, {})).to be(true)
    end
  end

  describe '#decide' do
    it 'asks the block where no rule lets in' do
      seen = nil
      handler.decide { |request| (seen = request).username == 'ann' && 'Ann' }.start
      expect(admitted?({ plain_server: 1, zap_domain: 'here' }, plain('ann', 'secret'))).to be(true)
      expect(@received.gets('User-Id')).to eq('Ann')
      expect(seen.to_h).to include(domain: 'here', address: '127.0.0.1', mechanism: 'PLAIN', password: 'secret')
      expect(admitted?({ plain_server: 1 }, plain('eve', 'secret'))).to be(false)
    end

    it 'lets in for true and refuses when the block fails' do
      handler.decide { |request| request.username == 'ann' || raise('no') }.start
      expect(admitted?({ plain_server: 1 }, plain('ann', 'x'))).to be(true)
      expect { expect(admitted?({ plain_server: 1 }, plain('eve', 'x'))).to be(false) }.to output(/decision/).to_stderr
    end
  end

  it 'answers what is no request with an error' do
    handler.allow_null('open').start
    asker = new_socket(ZMQ::REQ).connect!(described_class::ENDPOINT)
    [['nonsense'], %w[2.0 1 open 127.0.0.1 x NULL], %w[1.0 1]].each do |frames|
      expect(asker.request(*frames, timeout: Sockets::SOON)).to include('500')
    end
    request = ['1.0', '7', 'open', '127.0.0.1', '']
    expect(asker.request(*request, 'NULL', timeout: Sockets::SOON)).to eq(['1.0', '7', '200', 'OK', '', ''])
    expect(asker.request(*request, 'CURVE', 'short', timeout: Sockets::SOON)[2]).to eq('400')
  end

  it 'is the only one of its context' do
    handler.start
    expect { described_class.new(context).start }.to raise_error(ZMQ::SocketError)
  end

  it 'can be stopped and started again, and stops with the context' do
    handler.start
    expect([handler.stop, handler.stop]).to eq([nil, nil])
    handler.start
    expect(context.terminate).to eq(0)
  end
end
