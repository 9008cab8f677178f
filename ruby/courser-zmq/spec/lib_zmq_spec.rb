# frozen_string_literal: true

RSpec.describe LibZMQ do
  functions = %i[
    zmq_version zmq_errno zmq_strerror zmq_init zmq_term zmq_ctx_new zmq_ctx_destroy zmq_ctx_set zmq_ctx_get
    zmq_ctx_term zmq_ctx_shutdown zmq_msg_init zmq_msg_init_size zmq_msg_init_data zmq_msg_close zmq_msg_data
    zmq_msg_size zmq_msg_copy zmq_msg_move zmq_msg_send zmq_msg_recv zmq_msg_more zmq_msg_get zmq_msg_set zmq_socket
    zmq_setsockopt zmq_getsockopt zmq_bind zmq_connect zmq_close zmq_unbind zmq_disconnect zmq_recvmsg zmq_recv
    zmq_sendmsg zmq_send zmq_send_const zmq_proxy zmq_poll zmq_socket_monitor zmq_z85_encode zmq_z85_decode
    zmq_curve_keypair terminate_context zmq_has zmq_proxy_steerable zmq_msg_gets zmq_curve_public
  ]

  functions.each do |name|
    it("has #{name}") { expect(described_class).to respond_to(name) }
  end

  it 'has the functions of the draft API where libzmq has them' do
    expect(described_class.respond_to?(:zmq_poller_new)).to eq(ZMQ::Util.has?('draft'))
  end

  it 'tells its version' do
    version = described_class.version
    expect(version.keys).to eq(%i[major minor patch])
    expect(described_class.version_string).to eq(version.values.join('.'))
    expect(described_class.version_number).to be >= 40_200
    expect([described_class.version3?, described_class.version4?]).to eq([false, true])
  end

  it 'has structures of the right size' do
    expect([LibZMQ::Message.size, LibZMQ::PollItem.size, LibZMQ::EventData.size]).to eq([64, 16, 6])
    expect([described_class.size_of_zmq_msg_t, ZMQ::Message.msg_size]).to eq([64, 64])
  end

  it 'reads what a monitor sends' do
    data = LibZMQ::EventData.new(FFI::MemoryPointer.new(6).put_bytes(0, [4, -5].pack('Sl')))
    expect([data.event, data.value, data.inspect]).to eq([4, -5, 'event [4], value [-5]'])
  end

  it 'sends and receives without the classes above it' do
    raw = described_class.zmq_ctx_new
    first, second = Array.new(2) { described_class.zmq_socket(raw, ZMQ::PAIR) }
    described_class.zmq_bind(first, 'inproc://raw')
    described_class.zmq_connect(second, 'inproc://raw')
    expect(described_class.zmq_send(first, 'hello', 5, 0)).to eq(5)
    buffer = FFI::MemoryPointer.new(10)
    expect([described_class.zmq_recv(second, buffer, 10, 0), buffer.read_string]).to eq([5, 'hello'])
    [first, second].each { |socket| described_class.zmq_close(socket) }
    expect(described_class.terminate_context(raw)).to eq(0)
  end

  it 'sends constant memory with and without flags' do
    first, second = connected(ZMQ::PAIR, ZMQ::PAIR)
    memory = FFI::MemoryPointer.from_string('constant')
    expect(described_class.zmq_send_const(first.socket, memory, 8, ZMQ::SNDMORE)).to eq(8)
    expect(described_class.zmq_send_const(first.socket, memory, 5)).to eq(5)
    expect(second.receive_message(timeout: Sockets::SOON)).to eq(%w[constant const])
  end

  it 'lets sockets be made in a context of its own' do
    raw = described_class.zmq_ctx_new
    socket = ZMQ::Socket.new(raw, ZMQ::PULL)
    expect([socket.close, described_class.zmq_ctx_term(raw)]).to eq([0, 0])
  end

  it 'says which Rubies it needs where the Ruby is older' do
    older = "Object.send(:remove_const, :RUBY_VERSION); RUBY_VERSION = '2.6.8'; "
    %w[courser-zmq ffi-rzmq].each do |name|
      result = run_ruby("#{older} require '#{name}'")
      expect(result.errors).to include('LoadError', 'needs Ruby 3.0 or newer, or JRuby 9.4 or newer', 'Ruby 2.6.8')
    end
  end

  it 'says how to install libzmq where there is none' do
    result = run_ruby("ENV['COURSER_ZMQ_LIBRARY'] = 'libnowhere.so'; require 'courser-zmq'")
    expect(result.status).not_to be_success
    expect(result.errors).to include('LoadError', 'apt-get install libzmq5', 'brew install zeromq', 'libnowhere')
  end

  it 'is loaded by each of its names' do
    program = '%w[ffi-rzmq ffi-rzmq-core courser-zmq].each { |name| require name }; print ZMQ::VERSION'
    result = run_ruby(program)
    expect([result.output, result.errors.lines.grep_v(/warning: (sun.misc|A terminally|Please|A restricted)/)[0]])
      .to eq(['2.0.7', nil])
  end
end
