# frozen_string_literal: true

RSpec.describe ZMQ::Monitor do
  let(:server) { new_socket(ZMQ::PULL) }
  let(:client) { new_socket(ZMQ::PUSH) }

  def names(monitor, *expected)
    seen = []
    monitor.each_event(timeout: Sockets::SOON) do |event|
      seen << event.name
      break if (expected - seen).empty?
    end
    seen
  end

  it 'tells of a connection, its handshake and its end' do
    watched = server.monitor
    place = server.bind!('tcp://127.0.0.1:*')
    client.connect!(place)
    expect(names(watched, :handshake_succeeded)).to eq(%i[listening accepted handshake_succeeded])
    client.close
    expect(names(watched, :disconnected)).to include(:disconnected)
    watched.close
  end

  it 'gives events with numbers, values and addresses' do
    server.monitor do |watched|
      place = server.bind!('tcp://127.0.0.1:*')
      event = watched.next_event(timeout: Sockets::SOON)
      expect(event.to_a).to match([ZMQ::EVENT_LISTENING, be_positive, place])
      expect([event.name, event.failure?, event.error]).to eq([:listening, false, nil])
      expect(event.to_s).to eq("listening #{place}")
    end
  end

  it 'tells why binding failed' do
    place = server.bind!('tcp://127.0.0.1:*')
    other = new_socket(ZMQ::PULL)
    other.monitor do |watched|
      other.bind(place)
      event = watched.each_event(timeout: Sockets::SOON).find(&:failure?)
      expect([event.name, event.failure?, event.value, event.error])
        .to eq([:bind_failed, true, ZMQ::EADDRINUSE, 'Address already in use'])
    end
  end

  it 'tells only of what it was asked for' do
    watched = server.monitor(ZMQ::EVENT_ACCEPTED)
    client.connect!(server.bind!('tcp://127.0.0.1:*'))
    expect(watched.next_event(timeout: Sockets::SOON).name).to eq(:accepted)
    expect(watched.next_event(timeout: 0.1)).to be_nil
    watched.close
  end

  it 'tells of reconnecting' do
    client.monitor do |watched|
      client.set!(reconnect_ivl: 10)
      client.connect!(dead_endpoint)
      expect(names(watched, :connect_retried)).to include(:connect_delayed, :closed, :connect_retried)
    end
  end

  it 'is closed once and says so' do
    watched = server.monitor
    expect([watched.closed?, watched.close, watched.closed?, watched.close]).to eq([false, nil, true, nil])
    expect(watched.next_event(timeout: Sockets::SOON)).to be_nil
    expect(server.monitor.tap(&:close)).to be_closed
  end

  it 'ends with the socket' do
    watched = server.monitor
    server.close
    expect(watched.next_event(timeout: Sockets::SOON).name).to eq(:monitor_stopped)
    expect(watched.next_event(timeout: Sockets::SOON)).to be_nil
    expect(watched).to be_closed
  end

  it 'gives way to the next one of the same socket, and does not end that' do
    first = server.monitor
    second = server.monitor
    expect(first.next_event(timeout: Sockets::SOON).name).to eq(:monitor_stopped)
    first.close
    third = server.monitor
    second.close
    server.bind!('tcp://127.0.0.1:*')
    expect([first.closed?, third.next_event(timeout: Sockets::SOON).name]).to eq([true, :listening])
    third.close
  end

  it 'is refused for a closed socket' do
    server.close
    expect { server.monitor }.to raise_error(ZMQ::SocketError) { |e| expect(e.error_code).to eq(ZMQ::ENOTSOCK) }
  end

  it 'may be read by another thread' do
    watched = server.monitor
    reader = Thread.new { watched.next_event(timeout: Sockets::SOON).name }
    server.bind!('tcp://127.0.0.1:*')
    expect(reader.value).to eq(:listening)
    watched.close
  end

  it 'does not keep the context from ending' do
    server.monitor
    expect(seconds { context.terminate }).to be < Sockets::SOON
  end

  it 'calls an event that it does not know unknown' do
    expect(described_class::Event.new(1 << 20, 0, '').name).to eq(:unknown)
  end
end
