# frozen_string_literal: true

require "English"
require "tmpdir"

RSpec.describe AMQ::Protocol::Error do
  it "finds the class of a reply code" do
    codes = { 311 => "ContentTooLarge", 312 => "NoRoute", 313 => "NoConsumers", 320 => "ConnectionForced", 402 => "InvalidPath",
              403 => "AccessRefused", 404 => "NotFound", 405 => "ResourceLocked", 406 => "PreconditionFailed",
              501 => "FrameError", 502 => "SyntaxError", 503 => "CommandInvalid", 504 => "ChannelError",
              505 => "UnexpectedFrame", 506 => "ResourceError", 530 => "NotAllowed", 540 => "NotImplemented", 541 => "InternalError" }
    codes.each { |code, name| expect(described_class[code]).to equal(AMQ::Protocol.const_get(name)) }
    expect(described_class.subclasses_with_values.size).to eq(18)
    expect { described_class[999] }.to raise_error(RuntimeError, /No such exception class for code 999/)
    expect(AMQ::Protocol::NotFound.superclass).to equal(AMQ::Protocol::SoftError)
    expect(AMQ::Protocol::FrameError.superclass).to equal(AMQ::Protocol::HardError)
  end

  it "has messages" do
    expect(described_class.new.message).to eq("AMQP error")
    expect(AMQ::Protocol::EmptyResponseError.new.message).to eq("Empty response received from the server.")
    expect(AMQ::Protocol::BadResponseError.new("argument", 1, 2).message).to include("argument", "1", "2")
  end
end

RSpec.describe AMQ::Pack do
  it "packs and unpacks in the order of the wire" do
    { 0 => 0, 10 => 10, 2**64 - 1 => 2**64 - 1 }.each do |number, read|
      expect(described_class.unpack_uint64_big_endian(described_class.pack_uint64_big_endian(number))).to eq([read])
    end
    expect(described_class.pack_int16_big_endian(1677)).to eq("\x06\x8d".b)
    expect(described_class.unpack_int16_big_endian("\xff\xfe".b)).to eq([-2])
    expect(AMQ::Hacks).to equal(described_class)
    expect(AMQ::Endianness.big_endian?).not_to eq(AMQ::Endianness.little_endian?)
  end
end

RSpec.describe AMQ::BitSet do
  it "sets, clears and finds bits" do
    set = described_class.new(130)
    expect(set.next_clear_bit).to eq(0)
    (0..128).each { |bit| set.set(bit) }
    expect([set.next_clear_bit, set[128], set.get(129)]).to eq([129, true, false])
    set.unset(64)
    expect(set.next_clear_bit).to eq(64)
    set.clear
    expect(set[0]).to be(false)
    [-1, 130].each { |bit| %i[get set unset].each { |name| expect { set.public_send(name, bit) }.to raise_error(IndexError) } }
  end

  it "has no clear bit when all words are full" do
    set = described_class.new(64)
    64.times { |bit| set.set(bit) }
    expect(set.next_clear_bit).to eq(-1)
    expect(set.to_s).to eq("#{'1' * 64}:")
    expect([3, 4, 7].map { |word| described_class.number_of_trailing_ones(word) }).to eq([2, 0, 3])
  end
end

RSpec.describe AMQ::IntAllocator do
  it "gives the lowest free integer, and -1 when there is none" do
    allocator = described_class.new(1, 5)
    expect(Array.new(5) { allocator.allocate }).to eq([1, 2, 3, 4, -1])
    allocator.free(2)
    allocator.release(3)
    expect([allocator.allocated?(2), allocator.allocate, allocator.allocate]).to eq([false, 2, 3])
    allocator.reset
    expect([allocator.allocate, allocator.lo, allocator.hi, allocator.number_of_bits]).to eq([1, 1, 5, 4])
    expect { described_class.new(5, 5) }.to raise_error(ArgumentError)
  end

  it "gives all of a whole word, and begins where it is told" do
    allocator = described_class.new(1, 65)
    expect(Array.new(65) { allocator.allocate }.last(2)).to eq([64, -1])
    expect(described_class.new(10, 20).allocate).to eq(10)
  end
end

RSpec.describe AMQ::URI do
  def parse(address)
    described_class.parse(address)
  end

  it "takes addresses apart" do
    expect(parse("amqp://alpha:bet%61@host:1234/a%2Fb")).to include(user: "alpha", pass: "beta", host: "host", port: 1234, vhost: "a/b", ssl: false)
    expect(parse("amqps://host")).to include(port: 5671, ssl: true, scheme: "amqps")
    expect(parse("amqp://host").key?(:vhost)).to be(false)
    expect(parse("amqp://host/")[:vhost]).to eq("")
    expect(parse("amqp://:@host")).to include(user: "", pass: "")
    expect { parse("http://host") }.to raise_error(ArgumentError, /amqp or amqps schema/)
    expect { parse("amqp://host/a/b") }.to raise_error(ArgumentError, /multiple-segment/)
  end

  it "reads parameters" do
    expect(parse("amqp://host?heartbeat=10&connection_timeout=100&channel_max=1000&auth_mechanism=plain&auth_mechanism=amqplain"))
      .to include(heartbeat: 10, connection_timeout: 100, channel_max: 1000, auth_mechanism: %w[plain amqplain])
    expect(parse("amqps://host?verify=true&fail_if_no_peer_cert=false&cacertfile=/ca.pem"))
      .to include(verify: true, fail_if_no_peer_cert: false, cacertfile: "/ca.pem", certfile: nil)
    %w[verify fail_if_no_peer_cert cacertfile certfile keyfile].each do |name|
      expect { parse("amqp://host?#{name}=x") }.to raise_error(ArgumentError, /The option '#{name}' can only be used/)
    end
    expect(parse("amqp://host")).to include(heartbeat: nil, auth_mechanism: [])
  end
end

RSpec.describe AMQ::Settings do
  it "takes the default for a login that is nil" do
    expect(described_class.configure(user: nil, pass: nil, host: "h")).to include(user: "guest", pass: "guest", host: "h")
    expect(described_class.configure(user: nil, username: "a")[:user]).to eq("a")
  end

  it "puts what is given over the defaults" do
    expect(described_class.configure(nil)).to include(host: "127.0.0.1", port: 5672, user: "guest", vhost: "/")
    expect(described_class.configure(username: "a", password: "b", host: "h")).to include(user: "a", pass: "b", host: "h", port: 5672)
    expect(described_class.configure(user: "a", username: "b")[:user]).to eq("a")
    expect(described_class.configure("amqp://x/y")).to include(host: "x", vhost: "y", frame_max: 131_072)
    expect(described_class.parse_amqp_url("amqp://x")[:host]).to eq("x")
  end
end

RSpec.describe "the files" do
  lib = File.expand_path("../lib", __dir__)

  Dir[File.join(lib, "amq/**/*.rb")].sort.each do |file|
    feature = file.delete_prefix("#{lib}/").delete_suffix(".rb")
    next if feature.match?(%r{/methods/|reply_codes|channel_close|protocol/method\z})

    it "#{feature} can be required by itself, without a warning" do
      output = IO.popen([RbConfig.ruby, "-w", "-I", lib, "-e", "require #{feature.dump}", err: %i[child out]], &:read)
      expect([output, $CHILD_STATUS&.success?]).to eq(["", true])
    end
  end

  it "constants are there" do
    expect([AMQ::Protocol::PREAMBLE, AMQ::Protocol::DEFAULT_PORT, AMQ::Protocol::TLS_PORT, AMQ::Protocol::SSL_PORT])
      .to eq(["AMQP\0\0\x09\x01", 5672, 5671, 5671])
    expect([AMQ::Protocol::PROTOCOL_VERSION, AMQ::Protocol::EMPTY_STRING, AMQ::Protocol::VERSION]).to eq(["0.9.1", "", "2.8.0"])
    expect([AMQ::Protocol::PREAMBLE, AMQ::Protocol::TypeConstants::TYPE_STRING].map(&:encoding)).to all(eq(Encoding::BINARY))
    expect(AMQ::Settings::AMQPS).to eq("amqps")
  end

  it "formats for pack are there, and are what they are called" do
    expect([-2].pack(AMQ::Pack::INT16_BE)).to eq("\xff\xfe".b)
    expect([258].pack(AMQ::Pack::UINT16_BE)).to eq("\x01\x02".b)
    expect([[-2].pack(AMQ::Pack::INT64_BE), [1].pack(AMQ::Pack::UINT64_BE)]).to eq(["\xff".b * 7 + "\xfe".b, "\0".b * 7 + "\x01".b])
    decoder = AMQ::Protocol::TableValueDecoder
    formats = [decoder::PACK_INT16_BE, decoder::PACK_INT64_BE, decoder::PACK_UINT32_BE, decoder::PACK_UINT64_BE, decoder::PACK_FLOAT64]
    expect([1].product(formats).map { |number, format| [number].pack(format).bytesize }).to eq([2, 8, 4, 8, 8])
    expect([AMQ::Protocol::Frame::PACK_UINT64_BE, AMQ::Protocol::Table::PACK_UINT32_BE]).to eq(%w[Q> N])
  end
end

RSpec.describe "Ractors" do
  it "encode and decode at the same time" do
    script = <<~RUBY
      require "amq-protocol-native"
      Warning[:experimental] = false
      ractors = 4.times.map do |n|
        Ractor.new(n) do |n|
          2000.times do |i|
            table = (1..20).to_h { |k| ["key \#{k} \#{i % 50}", k + n] }
            raise "table" unless AMQ::Protocol::Table.decode(AMQ::Protocol::Table.encode(table)) == table
            frames = AMQ::Protocol::Basic::Publish.encode(n, "body", { priority: 1 }, "e", "k", false, false, 4096)
            header = AMQ::Protocol::Frame.new(:headers, frames[1].payload, n)
            raise "header" unless header.properties == { priority: 1 }
            ack = AMQ::Protocol::Basic::Ack.encode(n, i, true)
            raise "ack" unless ack.method_class.decode(ack.payload[4..]).delivery_tag == i
          end
          AMQ::Protocol::METHODS.size
        end
      end
      print ractors.map(&:take).sum
    RUBY
    output = IO.popen([RbConfig.ruby, "-I", File.expand_path("../lib", __dir__), "-e", script], err: %i[child out], &:read)
    expect(output).to eq("256")
  end
end

RSpec.describe "the patch of Bunny" do
  it "leaves a Bunny alone that it does not know, and says so" do
    program = <<~RUBY
      module Bunny
        VERSION = "99.0"
        class Session; end
        class Channel; end
        class Transport; end
        class ReaderLoop; end
      end
      $LOADED_FEATURES << "bunny.rb"
      def require(name) = name == "bunny" ? true : super
      require "amq-protocol-native/bunny"
      puts Bunny::Transport.ancestors.first
    RUBY
    lib = File.expand_path("../lib", __dir__)
    output = IO.popen([RbConfig.ruby, "-I", lib, "-e", program, err: %i[child out]], &:read)
    expect(output).to match(/does not know Bunny::Session#send_frameset, .* of this Bunny 99\.0/).and end_with("Bunny::Transport\n")
  end

  it "knows a method by its code, and none that another gem has changed" do
    program = <<~RUBY
      module Bunny; end
      require "amq-protocol-native/bunny/probe"
      { "plain" => "def call(a)\n  a + 1\nend", "told" => "def call(a)\n  # Adds.\n\n  a  +  1\nend # call",
        "other" => "def call(a)\n  a + 2\nend" }.each do |name, code|
        file = File.join(ARGV[0], "\#{name}.rb")
        File.write(file, "module Bunny\n  class \#{name.capitalize}\n\#{code.gsub(/^/, '    ')}\n    def next = 3\n  end\nend\n")
        load file
      end
      Bunny::Changed = Class.new(Bunny::Plain) { prepend(Module.new { def call(a) = super }) }
      Bunny::Evaluated = Class.new { class_eval("def call(a)\n  a + 1\nend") }
      probe = AMQ::Protocol::Bunny::Probe
      digest = probe.send(:digest, Bunny::Plain, "call")
      names = %w[Plain Told Other Changed Evaluated].map { |name| "\#{name}#call" } + ["Plain#missing", "Missing#call"]
      puts probe.unknown(names.to_h { |name| [name, [digest]] })
    RUBY
    lib = File.expand_path("../lib", __dir__)
    output = Dir.mktmpdir { |folder| IO.popen([RbConfig.ruby, "-I", lib, "-e", program, folder, err: %i[child out]], &:read) }
    expect(output.split).to eq(%w[Other Changed Evaluated].map { |name| "Bunny::#{name}#call" } + %w[Bunny::Plain#missing Bunny::Missing#call])
  end
end
