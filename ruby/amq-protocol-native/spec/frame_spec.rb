# frozen_string_literal: true

RSpec.describe AMQ::Protocol::Frame do
  let(:types) { { method: 1, headers: 2, body: 3, heartbeat: 8 } }

  it "encodes a frame of every type, named or numbered" do
    types.each do |name, number|
      frame = [number, 3, 2].pack("CnN") + "ab\xCE".b
      expect(described_class.encode(name, "ab", 3)).to eq(frame)
      expect(described_class.encode(number, "ab", 3)).to eq(frame)
      expect(described_class.encode_to_array(name, "ab", 3)).to eq([frame[0, 7], "ab", "\xCE".b])
      expect(described_class.find_type(name)).to eq(number)
    end
  end

  it "refuses types that do not exist" do
    [nil, :header, "method", 0, 4, 256, 1.0].each do |type|
      expect { described_class.encode(type, "", 0) }.to raise_error(AMQ::Protocol::FrameTypeError, /:method, :headers, :body/)
      expect { described_class.new(type) }.to raise_error(AMQ::Protocol::FrameTypeError)
    end
  end

  it "refuses bad channels and nil as a payload" do
    [-1, 65_536, nil, "1", 1.0, 2**70].each do |channel|
      expect { described_class.encode(:body, "", channel) }.to raise_error(RuntimeError, /^Channel has to be 0 or an integer/)
      frame = AMQ::Protocol::BodyFrame.new("", channel)
      expect(frame.channel).to eq(channel)
      expect { frame.encode }.to raise_error(RuntimeError, /^Channel has to be/)
    end
    expect { described_class.encode(:method, nil, 0) }.to raise_error(RuntimeError, "Payload can't be nil")
  end

  it "leaves frozen frames and methods as they are" do
    frame = AMQ::Protocol::BodyFrame.new("payload", 1).freeze
    expect { frame.channel = 2 }.to raise_error(FrozenError)
    expect { frame.__send__(:initialize, "other", 2) }.to raise_error(FrozenError)
    expect([frame.payload, frame.channel]).to eq(["payload", 1])
    method = AMQ::Protocol::Basic::Ack.new(1, true).freeze
    expect { method.__send__(:initialize, 2, false) }.to raise_error(FrozenError)
    expect([method.delivery_tag, method.dup.delivery_tag, frame.dup.channel]).to eq([1, 1, 1])
  end

  it "makes frames of the class that the type names" do
    { method: "MethodFrame", headers: "HeaderFrame", body: "BodyFrame", heartbeat: "HeartbeatFrame" }.each do |type, name|
      frame = described_class.new(type, "payload", 7)
      expect(frame).to be_instance_of(AMQ::Protocol.const_get(name))
      expect(frame).to be_a(AMQ::Protocol::FrameSubclass)
      expect([frame.payload, frame.channel, frame.size]).to eq(["payload", 7, 7])
      expect(frame.encode).to eq(described_class.encode(type, "payload", 7))
      expect(frame.encode_to_array.join).to eq(frame.encode)
      expect(AMQ::Protocol.const_get(name).id).to eq(types.fetch(type))
    end
    expect { described_class.new(:body, "payload") }.to raise_error(ArgumentError)
  end

  it "decodes headers" do
    expect(described_class.decode_header("\x02\x00\x03\x00\x00\x01\x00")).to eq([:headers, 3, 256])
    expect(described_class.decode_header("\x08\xff\xff\xff\xff\xff\xff".b)).to eq([:heartbeat, 65_535, 2**32 - 1])
    [nil, ""].each { |none| expect { described_class.decode_header(none) }.to raise_error(AMQ::Protocol::EmptyResponseError) }
    expect { described_class.decode_header("\x09\0\0\0\0\0\0") }.to raise_error(AMQ::Protocol::FrameTypeError)
    expect { described_class.decode_header("\x01\0\0") }.to raise_error(AMQ::Protocol::MalformedInputError)
  end

  it "leaves decode to adapters, which are subclasses" do
    expect { described_class.decode("x") }.to raise_error(NotImplementedError)
    adapter = Class.new(described_class) { def self.decode(bytes) = new(:body, bytes, 1) }
    expect(adapter.decode("x")).to be_instance_of(AMQ::Protocol::BodyFrame)
    expect(AMQ::Protocol::BodyFrame).not_to respond_to(:decode)
  end

  it "labels payloads as binary, and copies only when it has to" do
    binary = "a".b
    expect(described_class.encoded_payload(binary)).to equal(binary)
    expect(described_class.encoded_payload("ä")).to eq("ä".b)
  end

  it "encodes several frames into one String" do
    frames = [AMQ::Protocol::Basic::Ack.encode(1, 2, true), AMQ::Protocol::BodyFrame.new("ä" * 100, 2)]
    expect(described_class.encode_all(frames)).to eq(frames.map(&:encode).join)
    expect(described_class.encode_all([])).to eq("")
    [[1], [AMQ::Protocol::BodyFrame.new(nil, 1)], nil].each do |wrong|
      expect { described_class.encode_all(wrong) }.to raise_error(StandardError)
    end
  end

  it "subclasses of frames keep their type" do
    subclass = Class.new(AMQ::Protocol::BodyFrame) { def initialize(text) = super(text * 2, 9) }
    expect(subclass.new("ab").encode).to eq(described_class.encode(:body, "abab", 9))
  end

  it "lets frames be copied, marshalled and shown" do
    frame = AMQ::Protocol::Basic::Ack.encode(1, 2, true)
    [frame.dup, frame.clone, Marshal.load(Marshal.dump(frame))].each { |copy| expect(copy.encode).to eq(frame.encode) }
    expect(frame.inspect).to include("MethodFrame", "channel=1")
  end
end

RSpec.describe AMQ::Protocol::MethodFrame do
  it "knows its method" do
    ack = described_class.new(AMQ::Protocol::Basic::Ack.encode(1, 2, true).payload, 1)
    expect([ack.method_class, ack.final?]).to eq([AMQ::Protocol::Basic::Ack, true])
    expect(ack.decode_payload.delivery_tag).to eq(2)
    publish = AMQ::Protocol::Basic::Publish.encode(1, "x", { priority: 1 }, "", "q", false, false, 4096).first
    expect([publish.method_class, publish.final?]).to eq([AMQ::Protocol::Basic::Publish, false])
    expect { publish.decode_payload }.to raise_error(NoMethodError)
  end

  it "says what is wrong with others" do
    unknown = described_class.new("\x00\x01\x00\x02", 1)
    expect(unknown.method_class).to be_nil
    expect { unknown.final? }.to raise_error(AMQ::Protocol::MalformedInputError)
    expect { described_class.new(nil, 1).decode_payload }.to raise_error(TypeError)
  end
end

RSpec.describe AMQ::Protocol::HeaderFrame do
  it "reads its fields, and the properties once" do
    frame = described_class.new(AMQ::Protocol::Basic.encode_properties(10, delivery_mode: 2, type: "t"), nil)
    expect([frame.body_size, frame.weight, frame.klass_id, frame.final?]).to eq([10, 0, 60, false])
    expect(frame.properties).to eq(delivery_mode: 2, type: "t")
    expect(frame.decode_payload).to equal(frame.properties)
  end
end

RSpec.describe AMQ::Protocol::HeartbeatFrame do
  it "encodes, to a new String each time" do
    expect(described_class.encode).to eq("\x08\0\0\0\0\0\0\xCE".b)
    expect(described_class.encode).not_to equal(described_class.encode)
    expect(described_class.encode).not_to be_frozen
    expect(described_class.new("", 0).final?).to be(true)
  end
end
