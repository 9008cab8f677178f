# frozen_string_literal: true

RSpec.describe AMQ::Protocol::Basic do
  let(:all) do
    { content_type: "text/plain", content_encoding: "gzip", headers: { "k" => [1, nil] }, delivery_mode: 2, priority: 9,
      correlation_id: "c", reply_to: "r", expiration: "1000", message_id: "m", timestamp: Time.at(123), type: "t",
      user_id: "u", app_id: "a", cluster_id: "" }
  end

  it "keeps all properties, in whatever order they come" do
    given = all.merge(timestamp: 123)
    bytes = described_class.encode_properties(5, given)
    expect(bytes[0, 14]).to eq("\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\xff\xfc".b)
    expect(described_class.decode_properties(bytes[12..])).to eq(all)
    expect(described_class.encode_properties(5, given.to_a.reverse.to_h)).to eq(bytes)
    expect(described_class.decode_properties(bytes[12..]).keys).to eq(described_class::PROPERTIES)
  end

  it "leaves nil out, takes names as Strings, and refuses others" do
    expect(described_class.encode_properties(0, type: nil)[12..]).to eq("\0\0")
    expect(described_class.encode_properties(0, "type" => "t", unknown: nil)[12..]).to eq("\x00\x20\x01t")
    expect { described_class.encode_properties(0, unknown: 1) }.to raise_error(NoMethodError, /encode_unknown/)
    [:größe, "größe", "gr\xF6".b].each do |key|
      expect { described_class.encode_properties(0, key => 1) }.to raise_error(NoMethodError, /encode_gr/)
    end
    expect { described_class.encode_properties(0, timestamp: Time.now) }.to raise_error(TypeError)
    expect { described_class.encode_properties(0, type: "x" * 256) }.to raise_error(RangeError)
    expect { described_class.encode_properties(0, timestamp: 2**64) }.to raise_error(RangeError)
  end

  it "encodes each property by itself" do
    described_class::PROPERTIES.each_with_index do |name, index|
      value = { headers: {}, delivery_mode: 1, priority: 1, timestamp: 1 }.fetch(name, "v")
      found = described_class.public_send("encode_#{name}", value)
      expect(found[0, 2]).to eq([index, 0x8000 >> index])
      expect(found[2]).to eq(described_class.encode_properties(0, name => value)[14..])
      expect(described_class::DECODE_PROPERTIES[found[1]]).to eq(name)
    end
  end

  it "refuses properties that are cut short, go on, or have unknown flags" do
    bytes = described_class.encode_properties(5, all.merge(timestamp: 1))[12..]
    ["", "\x80", bytes[0..-2], "#{bytes}x", "\x00\x01"].each do |wrong|
      expect { described_class.decode_properties(wrong) }.to raise_error(AMQ::Protocol::MalformedInputError)
    end
  end

  it "reads times beyond 64 signed bits" do
    expect(described_class.decode_properties("\x00\x40#{"\xff".b * 8}".b)).to eq(timestamp: Time.at(2**64 - 1))
  end
end

RSpec.describe AMQ::Protocol::Basic::Publish do
  def publish(body, properties, frame_size = 131_072, channel: 1)
    [channel, body, properties, "exchange", "key", true, false, frame_size]
  end

  it "encodes method, header and body" do
    frames = described_class.encode(*publish("Hello", { priority: 0, other: 1 }))
    expect(frames.map(&:class)).to eq([AMQ::Protocol::MethodFrame, AMQ::Protocol::HeaderFrame, AMQ::Protocol::BodyFrame])
    expect(frames.map(&:channel)).to eq([1, 1, 1])
    expect(frames[0].payload).to eq("\x00\x3c\x00\x28\x00\x00\x08exchange\x03key\x01")
    expect(frames[1].properties).to eq(priority: 0)
    expect(frames[2].payload).to eq("Hello")
  end

  it "encodes to one String what it encodes to frames" do
    ["", "x", "ä" * 10, "y" * 91, "y" * 92, "y" * 93, ("z" * 5000).freeze].each do |body|
      [{ priority: 1 }, { headers: { "large" => "v" * 5000 } }].each do |properties|
        arguments = publish(body, properties, 100)
        expect(described_class.encode_to_string(*arguments)).to eq(described_class.encode(*arguments).map(&:encode).join)
      end
    end
    expect(described_class.encode_to_string(*publish("x", { priority: 1 }))).not_to be_frozen
  end

  it "wants properties, a body and a channel" do
    %i[encode encode_to_string].each do |name|
      [{}, { other: 1 }, nil].each do |none|
        expect { described_class.public_send(name, *publish("x", none)) }.to raise_error(RuntimeError, /Properties can not be empty/)
      end
      expect { described_class.public_send(name, *publish(nil, { priority: 1 })) }.to raise_error(TypeError)
      expect { described_class.public_send(name, 1, "x") }.to raise_error(ArgumentError, /given 2, expected 8/)
      expect { described_class.public_send(name, *publish("x", { priority: 1 }, 8)) }.to raise_error(ArgumentError)
    end
    expect { described_class.encode_to_string(*publish("x", { priority: 1 }, channel: nil)) }.to raise_error(RuntimeError)
  end
end
