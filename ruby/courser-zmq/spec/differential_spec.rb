# frozen_string_literal: true

# Runs programs with Debian's ruby-ffi-rzmq and with this gem, each in a process of its own.
RSpec.describe 'beside the ffi-rzmq gem', :mri do
  peer = '/usr/lib/ruby/vendor_ruby/ffi-rzmq.rb'

  before { skip "Debian's ruby-ffi-rzmq is not installed" unless File.exist?(peer) }

  # @param old_limit [Integer] seconds after which the old gem is taken to hang
  def old_and_new(code, old_limit: Programs::LIMIT)
    [[nil, old_limit], [Programs::LIB, Programs::LIMIT]].map do |lib, limit|
      result = run_ruby("require 'ffi-rzmq'\n@context = ZMQ::Context.new\n#{code}\nexit!(true)", lib: lib, limit: limit)
      result.status.success? ? result.output.strip : :failed
    rescue RuntimeError
      :hung
    end
  end

  it 'a program sees the same' do
    old, new = [nil, Programs::LIB].map do |lib|
      load_path = lib ? ['-I', lib] : []
      run(*Programs::RUBY, *load_path, "#{__dir__}/support/common_behaviour.rb").output.lines
    end
    expect(new.size).to be > 500
    expect(new - old).to eq([])
    expect(new).to eq(old)
  end

  it 'all names are there' do
    code = <<~CODE
      names = ZMQ.constants.map { |name| ZMQ.const_get(name) }.grep(Class).flat_map do |kind|
        kind.public_instance_methods(false).map { |name| "\#{kind}#\#{name}" } +
          kind.singleton_methods(false).map { |name| "\#{kind}.\#{name}" }
      end
      puts names + ZMQ.constants + LibZMQ.singleton_methods + LibC.singleton_methods + ZMQ.singleton_methods(false)
    CODE
    old, new = old_and_new(code).map { |names| names.lines.map(&:chomp) }
    own_business = %w[ZMQ::Context.close ZMQ::Socket.close ZMQ::ManagedMessage.close ZMQ::ManagedMessage.msg_size
                      ZMQ::PollItems#<< ZMQ::Util.random_port ZMQ::Util.raise_error ZMQ::Util.eagain?
                      ZMQ::Util.context_error? ZMQ::Util.message_error? require_all_libs_relative_to
                      ZMQ::PollItem#pointer ZMQ::PollItem#readable? ZMQ::PollItem#writable?]
    inherited = lambda do |name|
      kind, method = name.match(/\A(ZMQ::\w+)#(.+)\z/)&.captures
      kind && Object.const_get(kind).method_defined?(method)
    end
    expect((old - new - own_business).reject(&inherited)).to eq([])
  end

  {
    'more? of a message without further parts' =>
      ["a = @context.socket(ZMQ::PAIR); b = @context.socket(ZMQ::PAIR); a.bind('inproc://a'); b.connect('inproc://a')
        a.send_string('x'); b.recvmsg(m = ZMQ::Message.new); puts m.more?", 'true', 'false'],
    'a random port' =>
      ['puts ZMQ::Util.bind_to_random_tcp_port(@context.socket(ZMQ::PULL)).class', :failed, 'Integer'],
    'a poller inspected' =>
      ['p = ZMQ::Poller.new; p.register(@context.socket(ZMQ::PULL)); puts p.inspect.size > 10', :failed, 'true'],
    'a subscription of two bytes' =>
      ["a = @context.socket(ZMQ::PUB); b = @context.socket(ZMQ::SUB); a.bind('inproc://a'); b.connect('inproc://a')
        b.setsockopt(ZMQ::SUBSCRIBE, 'é'); a.send_string(\"\\xC3x\")
        puts b.recv_string(+'', ZMQ::DONTWAIT)", '2', '-1'],
    'the size of a closed message' =>
      ['m = ZMQ::Message.new; m.close; puts m.size', :failed, '0'],
    'nil sent' =>
      ["a = @context.socket(ZMQ::PUB); a.bind('inproc://a')
        puts((a.send_string(nil) rescue $!.class))", '0', 'TypeError'],
    'heartbeats' =>
      ['puts((@context.socket(ZMQ::PULL).setsockopt(ZMQ::HEARTBEAT_IVL, 100) rescue :refused))', 'refused', '0'],
    'the handshake interval' =>
      ['puts((@context.socket(ZMQ::PULL).setsockopt(ZMQ::HANDSHAKE_IVL, 100) rescue :refused))', 'refused', '0'],
    'events kept when another pollable comes' =>
      ['a, b = Array.new(2) { @context.socket(ZMQ::PUB) }; p = ZMQ::Poller.new; p.register_readable(a)
        p.register_writable(a); p.register_readable(b); p.poll(0); puts p.writables.size', '0', '1'],
    'AFFINITY read after RCVMORE' =>
      ['s = @context.socket(ZMQ::PULL); s.more_parts?; puts s.getsockopt(ZMQ::AFFINITY, [])', '-1', '0'],
    'a context collected while its socket lives' =>
      ["def make(depth) = depth.zero? ? ZMQ::Context.new.socket(ZMQ::PULL) : make(depth - 1)
        def forget(depth) = depth.zero? ? 0 : forget(depth - 1) + 1
        $s = make(50); forget(100); 20.times { GC.start; Array.new(1000) { 'x' * 100 } }
        puts $s.bind('inproc://a')", :hung, '0']
  }.each do |name, (code, old, new)|
    it "#{name}: here it is right" do
      limit = old == :hung ? 5 : Programs::LIMIT
      expect(old_and_new(code, old_limit: limit)).to eq([old, new])
    end
  end
end
