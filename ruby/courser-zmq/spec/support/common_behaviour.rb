# frozen_string_literal: true

# What a program sees of ffi-rzmq: one line for each thing that it can ask for. The same program runs with that gem and
# with this one; the lines have to be the same.

require 'ffi-rzmq'
require 'securerandom'

@context = ZMQ::Context.new

def show(name)
  value = begin
    yield
  rescue StandardError => e
    e.class.name
  end
  puts "#{name}: #{value.inspect}"
end

def failure(result)
  result == -1 ? [-1, ZMQ::Util.errno, ZMQ::Util.error_string] : result
end

def pair(first_type, second_type)
  endpoint = "inproc://#{SecureRandom.hex}"
  first = @context.socket(first_type)
  second = @context.socket(second_type)
  first.bind(endpoint)
  second.connect(endpoint)
  [first, second]
end

def closing(*sockets)
  yield(*sockets)
ensure
  sockets.each { |socket| socket.setsockopt(ZMQ::LINGER, 0) && socket.close }
end

def option(socket, name)
  array = []
  [failure(socket.getsockopt(name, array)), array]
end

TYPES = %w[PAIR PUB SUB REQ REP DEALER ROUTER PULL PUSH XPUB XSUB STREAM].freeze
TYPES.each { |type| show("name of #{type}") { ZMQ::SocketTypeNameMap[ZMQ.const_get(type)] } }

# RCVMORE comes last: with ffi-rzmq, AFFINITY and MAXMSGSIZE cannot be read after it.
READABLE = %w[
  AFFINITY MAXMSGSIZE EVENTS LINGER RCVTIMEO SNDTIMEO RECONNECT_IVL TYPE BACKLOG RECONNECT_IVL_MAX RCVHWM SNDHWM RATE
  RECOVERY_IVL SNDBUF RCVBUF IPV4ONLY TCP_KEEPALIVE TCP_KEEPALIVE_CNT TCP_KEEPALIVE_IDLE TCP_KEEPALIVE_INTVL
  MULTICAST_HOPS IMMEDIATE
  IDENTITY LAST_ENDPOINT IPV6 MECHANISM PLAIN_SERVER CURVE_SERVER ZAP_DOMAIN PLAIN_USERNAME PLAIN_PASSWORD RCVMORE
].freeze
TYPES.each do |type|
  closing(@context.socket(ZMQ.const_get(type))) do |socket|
    READABLE.each { |name| show("#{type} #{name}") { option(socket, ZMQ.const_get(name)) } }
    show("#{type} bind nonsense") { failure(socket.bind('nonsense')) }
    show("#{type} connect nowhere") { failure(socket.connect('foo://bar')) }
    show("#{type} unbind unknown") { failure(socket.unbind('tcp://127.0.0.1:1')) }
    show("#{type} send without peer") { failure(socket.send_string('a', ZMQ::DONTWAIT)) }
    show("#{type} receive nothing") { failure(socket.recv_string(String.new, ZMQ::DONTWAIT)) }
    show("#{type} subscribe") { failure(socket.setsockopt(ZMQ::SUBSCRIBE, 'a')) }
    show("#{type} negative rate") { failure(socket.setsockopt(ZMQ::RATE, -1)) }
    show("#{type} identity") { (socket.identity = 7) && socket.identity }
    show("#{type} more parts") { socket.more_parts? }
  end
end

closing(*pair(ZMQ::PAIR, ZMQ::PAIR)) do |first, second|
  text = String.new
  show('send') { first.send_string('héllo') }
  show('receive') { [second.recv_string(text), text, text.encoding] }
  show('send parts') { first.send_strings(%w[a bb ccc]) }
  show('receive parts') { [second.recv_strings(list = []), list] }
  show('send messages') { first.sendmsgs(%w[a bb].map { |part| ZMQ::Message.new(part) }) }
  show('receive messages') { [second.recvmsgs(list = []), list.map(&:copy_out_string), list.map(&:size)] }
  show('send no parts') { [first.send_strings([]), first.send_strings(nil)] }
  show('send and close') { first.send_and_close(ZMQ::Message.new('x')) }
  show('receive message') { [second.recvmsg(message = ZMQ::Message.new), message.copy_out_string, message.close] }
  show('receive nothing') { [failure(second.recvmsgs(list = [], ZMQ::DONTWAIT)), list] }
  show('send a number') { first.send_string(7) }
  show('frozen receiver') { first.send_string('a') && second.recv_string('frozen') }
  show('close twice') { [first.close, first.close, first.socket] }
  show('use when closed') { [failure(first.send_string('a')), failure(first.recv_string(String.new))] }
  show('identity when closed') { first.identity }
end

closing(*pair(ZMQ::ROUTER, ZMQ::REQ)) do |router, requester|
  show('request') { [requester.send_strings(%w[a b]), failure(requester.send_string('c'))] }
  show('envelope') do
    router.recv_multipart(body = [], envelope = [])
    [envelope.size, envelope.last.size, body.map(&:copy_out_string)]
  end
  show('unknown peer') { router.send_strings(%w[stranger a]) }
end

show('message') { [(message = ZMQ::Message.new('text')).size, message.copy_out_string, message.close, message.close] }
show('message copy') do
  first = ZMQ::Message.new('text')
  second = ZMQ::Message.new
  [second.copy(first.address), second.copy_out_string, first.size, second.move(first.pointer), first.size]
end
show('message of nothing') { ZMQ::Message.new('').copy_out_string }
show('message create') { [ZMQ::Message.create('a').class, ZMQ::Message.create(7), ZMQ::ManagedMessage.create.class] }

poller = ZMQ::Poller.new
closing(*pair(ZMQ::PAIR, ZMQ::PAIR)) do |first, second|
  show('poll nothing') { [poller.size, poller.poll(10), poller.readables] }
  show('register') { [poller.register(nil), poller.register(first, 0), poller.register(first), poller.size] }
  show('register again') { [poller.register_readable(second), poller.register_readable(second), poller.size] }
  show('poll writable') { [poller.poll(10), poller.writables.size, poller.readables.size] }
  show('poll readable') { first.send_string('a') && [poller.poll(100), poller.readables == [second]] }
  show('deregister') { [poller.deregister(second, ZMQ::POLLOUT), poller.deregister(second, ZMQ::POLLIN), poller.size] }
  show('delete') { [poller.delete(first), poller.delete(first), poller.size, poller.poll_nonblock] }
end

show('context of negative threads') { [ZMQ::Context.create(-1), ZMQ::Context.new(-1)] }
show('context') { [(made = ZMQ::Context.new(2)).io_threads, made.max_sockets, made.terminate, made.pointer] }
show('socket of null') { [ZMQ::Socket.create(FFI::Pointer.new(0), 1), ZMQ::Socket.new(FFI::Pointer.new(0), 1)] }
show('socket of no type') { [@context.socket(99), ZMQ::Socket.create(@context, 99)] }
show('device of nothing') { [ZMQ::Device.create(1, 2), ZMQ::Device.new(1, 2)] }
show('proxy kind') { [ZMQ::Proxy.superclass, ZMQ::Proxy.create(nil, nil)] }
show('result codes') { [-1, 0, 1].map { |rc| ZMQ::Util.resultcode_ok?(rc) } }
show('keys') { ZMQ::Util.curve_keypair.map(&:size) }
show('checks') { [ZMQ::Util.error_check('zmq_ctx_new', 0), ZMQ::Util.error_check('zmq_ctx_new', -1)] }
show('version') { [ZMQ.version, ZMQ::VERSION, LibZMQ.version, LibZMQ.version4?, LibZMQ.version_string] }
show('errors') { [ZMQ::ContextError, ZMQ::MessageError, ZMQ::NotSupportedError].map(&:superclass) }
show('libpath') { [ZMQ.libpath('a').end_with?('/a'), ZMQ.path('a').end_with?('/a')] }
show('IO') { $stdout.posix_fileno }
show('terminate') { [@context.terminate, @context.terminate, @context.pointer] }
