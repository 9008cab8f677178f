# frozen_string_literal: true

RSpec.describe AMQ::Protocol::Method do
  let(:deliver_bytes) { [5, "ctag1", 77, 1, 8, "exchange", 3, "key"].pack("Ca*Q>CCa*Ca*") }
  let(:deliver) { AMQ::Protocol::Basic::Deliver.decode(deliver_bytes) }

  it "has 7 classes with 64 methods, 39 to encode and 40 to decode" do
    expect(AMQ::Protocol.classes.map(&:name)).to eq(%w[connection channel exchange queue basic tx confirm])
    expect(AMQ::Protocol.classes.map(&:method_id)).to eq([10, 20, 40, 50, 60, 90, 85])
    methods = AMQ::Protocol.methods
    expect([methods.size, methods.count { |m| m.respond_to?(:encode) }, methods.count { |m| m.respond_to?(:decode) }])
      .to eq([64, 39, 40])
    expect(AMQ::Protocol::METHODS.values).to match_array(methods)
    expect(AMQ::Protocol::METHODS[60 << 16 | 60]).to equal(AMQ::Protocol::Basic::Deliver)
    with_content = methods.select(&:has_content?).map(&:name)
    expect(with_content).to eq(%w[basic.publish basic.return basic.deliver basic.get-ok])
  end

  it "has classes that are Ruby classes" do
    expect(AMQ::Protocol::Basic::Deliver.ancestors).to include(described_class)
    expect(AMQ::Protocol::Basic.ancestors).to include(AMQ::Protocol::Class)
    expect(AMQ::Protocol::Basic::Deliver.name).to eq("basic.deliver")
    expect(AMQ::Protocol::Basic::Deliver === deliver).to be(true)
  end

  it "reads attributes once, when they are asked for" do
    expect(deliver.consumer_tag).to equal(deliver.consumer_tag)
    expect(deliver.to_h).to eq(consumer_tag: "ctag1", delivery_tag: 77, redelivered: true, exchange: "exchange", routing_key: "key")
  end

  it "does not see what becomes of the String it was read from" do
    bytes = deliver_bytes
    found = AMQ::Protocol::Basic::Deliver.decode(bytes)
    bytes.replace("x" * bytes.bytesize)
    expect(found.routing_key).to eq("key")
  end

  it "is made with new and instantiate, too" do
    [AMQ::Protocol::Basic::Deliver.new("c", 1, false, "e", "k"), AMQ::Protocol::Basic::Deliver.instantiate("c", 1, false, "e", "k")]
      .each { |made| expect([made.consumer_tag, made.delivery_tag, made.routing_key]).to eq(["c", 1, "k"]) }
    expect { AMQ::Protocol::Basic::Deliver.new("c") }.to raise_error(ArgumentError, /given 1, expected 5/)
    expect(AMQ::Protocol::Basic::Deliver.allocate.routing_key).to be_nil
  end

  it "honours an attr_writer of a class that was reopened, as Bunny does" do
    klass = Class.new(AMQ::Protocol::Basic::GetOk) { attr_writer :delivery_tag }
    found = klass.decode([9, 0, 0, 1, "k", 3].pack("Q>CCCa*N"))
    found.delivery_tag = :versioned
    expect([found.delivery_tag, found.routing_key, found.message_count]).to eq([:versioned, "k", 3])
  end

  it "calls the initialize of a subclass" do
    klass = Class.new(AMQ::Protocol::Basic::Ack) do
      attr_reader :seen

      def initialize(*attributes)
        super
        @seen = attributes
      end
    end
    expect(klass.decode([5, 1].pack("Q>C")).seen).to eq([5, true])
  end

  it "can be copied, marshalled and shown" do
    [deliver.dup, deliver.clone, Marshal.load(Marshal.dump(deliver))].each { |copy| expect(copy.to_h).to eq(deliver.to_h) }
    expect(deliver.inspect).to start_with('#<AMQ::Protocol::Basic::Deliver consumer_tag="ctag1", delivery_tag=77')
  end

  it "takes integers of every size, and only what converts to one" do
    payload = ->(tag) { AMQ::Protocol::Basic::Ack.encode(1, tag, false).payload[4, 8].unpack1("Q>") }
    expect([0, 255, 2**62, 2**64 - 1, -1, 2.9].map(&payload)).to eq([0, 255, 2**62, 2**64 - 1, 2**64 - 1, 2])
    [nil, "5", Time.at(0), :tag, true].each { |wrong| expect { payload.call(wrong) }.to raise_error(TypeError) }
    [2**64, 2**200, -(2**63) - 1].each { |large| expect { payload.call(large) }.to raise_error(RangeError) }
  end

  it "takes anything for a short string that fits" do
    payload = ->(name) { AMQ::Protocol::Basic::Get.encode(1, name, true).payload[6..-2] }
    expect([nil, :name, 12, "ä", "x" * 255].map(&payload)).to eq(["\0", "\4name", "\00212", "\2ä".b, "\xff".b + "x" * 255])
    expect { payload.call("x" * 256) }.to raise_error(RangeError)
    expect { AMQ::Protocol::Basic::Get.encode(1, "q") }.to raise_error(ArgumentError, /given 2, expected 3/)
  end

  it "takes the channel as it is, and checks it when the frame is encoded" do
    frame = AMQ::Protocol::Basic::Ack.encode(70_000, 1, false)
    expect(frame.channel).to eq(70_000)
    expect { frame.encode }.to raise_error(RuntimeError)
    expect(AMQ::Protocol::Connection::CloseOk.encode.channel).to eq(0)
  end

  it "refuses bytes that are not the method's" do
    ["", deliver_bytes[0..-2], "#{deliver_bytes}x"].each do |bytes|
      expect { AMQ::Protocol::Basic::Deliver.decode(bytes) }.to raise_error(AMQ::Protocol::MalformedInputError)
    end
    expect { AMQ::Protocol::Basic::Deliver.decode(nil) }.to raise_error(TypeError)
    start = AMQ::Protocol::Connection::Start.decode("\x00\x09\x00\x00\x00\x03\x01kQ\x00\x00\x00\x00\x00\x00\x00\x00")
    expect { start.server_properties }.to raise_error(ArgumentError)
  end

  it "splits headers from properties" do
    expect(described_class.split_headers(priority: 1, "priority" => 2, other: 3)).to eq([{ priority: 1 }, { "priority" => 2, other: 3 }])
  end

  it "tells why a channel was closed" do
    close = ->(code, text) { AMQ::Protocol::Channel::Close.new(code, text, 0, 0) }
    expect(close.call(406, "PRECONDITION_FAILED - unknown delivery tag 9").unknown_delivery_tag?).to be(true)
    expect(close.call(406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out").delivery_ack_timeout?).to be(true)
    expect(close.call(406, "message size 9 is larger than configured max size 8").message_too_large?).to be(true)
    expect(close.call(404, "unknown delivery tag").unknown_delivery_tag?).to be(false)
  end
end

RSpec.describe AMQ::Protocol::Method, ".encode_body" do
  it "cuts at the frame size, less eight bytes" do
    sizes = ->(length, frame_size) { described_class.encode_body("x" * length, 1, frame_size).map(&:size) }
    expect([sizes[0, 100], sizes[1, 100], sizes[92, 100], sizes[93, 100], sizes[200, 100]])
      .to eq([[], [1], [92], [92, 1], [92, 92, 16]])
    expect { described_class.encode_body("x", 1, 8) }.to raise_error(ArgumentError)
    expect(described_class.encode_body("", 1, 8)).to eq([])
  end

  it "neither changes nor copies the body" do
    body = "ä" * 100
    frames = described_class.encode_body(body.freeze, 1, 100)
    expect([body.encoding, frames.map(&:payload).join]).to eq([Encoding::UTF_8, body.b])
    expect(frames.map { |frame| frame.payload.encoding }).to all(eq(Encoding::BINARY))
    expect(described_class.encode_body(body, 1, 4096).first.payload).to equal(body)
  end
end

RSpec.describe "Instances of methods" do
  def delivery(text)
    [text.bytesize, text, 77, 1, text.bytesize, text, text.bytesize, text].pack("Ca*Q>CCa*Ca*")
  end

  it "keep their attributes when they are short or long, and objects of other threads are freed" do
    [5, 30, 40, 255].each do |len|
      text = "x" * len
      made = Queue.new
      maker = Thread.new { 2_000.times { made << AMQ::Protocol::Basic::Deliver.decode(delivery(text)) } }
      2_000.times do |n|
        found = made.pop
        expect([found.consumer_tag, found.delivery_tag, found.redelivered, found.exchange, found.routing_key])
          .to eq([text, 77, true, text, text])
        GC.start if (n % 500).zero?
      end
      maker.join
    end
  end

  it "have readers that take no argument" do
    expect(AMQ::Protocol::Basic::Deliver.instance_method(:exchange).arity).to eq(0)
  end
end
