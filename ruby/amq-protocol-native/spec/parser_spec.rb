# frozen_string_literal: true

RSpec.describe AMQ::Protocol::Parser do
  let(:parser) { described_class.new }

  def deliver(channel, key)
    bytes = [60, 60, 1, "c", 5, 0, 0, key.bytesize, key].pack("nnCa*Q>CCCa*")
    AMQ::Protocol::MethodFrame.encode(bytes, channel)
  end

  def header(channel, size, **properties)
    AMQ::Protocol::HeaderFrame.encode(AMQ::Protocol::Basic.encode_properties(size, properties), channel)
  end

  def body(channel, text)
    AMQ::Protocol::BodyFrame.encode(text, channel)
  end

  it "gives frames, however the bytes come" do
    frames = [deliver(1, "a"), header(1, 3), body(1, "abc"), AMQ::Protocol::HeartbeatFrame.encode]
    frames.join.each_char { |byte| parser << byte }
    expect(parser.each_frame.map(&:encode)).to eq(frames)
    expect([parser.next_frame, parser.pending_size]).to eq([nil, 0])
  end

  it "gives commands with their contents" do
    parser.feed(AMQ::Protocol::Channel::CloseOk.encode(2).encode + deliver(1, "key") + header(1, 5, type: "t"))
    expect(parser.next_command.then { |channel, method, *rest| [channel, method.class, rest] })
      .to eq([2, AMQ::Protocol::Channel::CloseOk, [nil, nil]])
    expect(parser.next_command).to be_nil
    parser.feed(body(1, "ab") + AMQ::Protocol::HeartbeatFrame.encode + body(1, "c\xff\x00".b))
    channel, method, properties, content = parser.next_command
    expect([channel, method.routing_key, properties, content]).to eq([1, "key", { type: "t" }, "abc\xff\x00".b])
  end

  it "gives a content without a body at once" do
    parser.feed(deliver(1, "k") + header(1, 0, priority: 1))
    expect(parser.next_command.drop(2)).to eq([{ priority: 1 }, ""])
  end

  it "takes contents of several channels apart" do
    parser.feed([deliver(1, "one"), deliver(2, "two"), header(2, 2), header(1, 4), body(1, "on"), deliver(3, "three"),
                 body(2, "tw"), AMQ::Protocol::Channel::CloseOk.encode(9).encode, body(1, "e!"), header(3, 0)].join)
    found = parser.each_command.map { |channel, method, _, text| [channel, method.to_h[:routing_key], text] }
    expect(found).to eq([[2, "two", "tw"], [9, nil, nil], [1, "one", "one!"], [3, "three", ""]])
  end

  it "labels bodies of ASCII as UTF-8, others as binary" do
    parser.feed(deliver(1, "a") + header(1, 3) + body(1, "abc") + deliver(1, "b") + header(1, 2) + body(1, "ä"))
    expect(parser.each_command.map { |*, text| text.encoding }).to eq([Encoding::UTF_8, Encoding::BINARY])
  end

  it "refuses frames that are none, too large, or out of order" do
    {
      "\x09\0\0\0\0\0\0\xCE" => AMQ::Protocol::FrameTypeError, "\x08\0\0\0\0\0\0\xCD" => AMQ::Protocol::MalformedInputError,
      "\x03\0\1\0\2\0\0" => AMQ::Protocol::MalformedInputError, body(1, "x") => AMQ::Protocol::MalformedInputError,
      header(1, 1) => AMQ::Protocol::MalformedInputError, deliver(1, "a") + deliver(1, "b") => AMQ::Protocol::MalformedInputError,
      deliver(1, "a") + header(1, 1) + body(1, "xy") => AMQ::Protocol::MalformedInputError,
      AMQ::Protocol::MethodFrame.encode("\0\1\0\1", 1) => AMQ::Protocol::MalformedInputError
    }.each do |bytes, error|
      expect { described_class.new.feed(bytes).each_command.to_a }.to raise_error(error)
    end
  end

  it "refuses methods that only clients send" do
    publish = AMQ::Protocol::Basic::Publish.encode(1, "x", { priority: 1 }, "e", "k", false, false, 4096)
    expect { described_class.new.feed(publish.first.encode).next_command }.to raise_error(AMQ::Protocol::MalformedInputError, /only clients/)
  end

  it "cannot be copied" do
    parser.feed(body(1, "x"))
    expect { parser.dup }.to raise_error(TypeError, "cannot copy AMQ::Protocol::Parser")
    expect { parser.clone }.to raise_error(TypeError)
    expect(parser.next_frame.payload).to eq("x")
  end

  it "has limits" do
    expect { described_class.new(body_max: 10).feed(deliver(1, "a") + header(1, 11)).next_command }
      .to raise_error(AMQ::Protocol::MalformedInputError, /body_max/)
    expect { described_class.new(frame_max: 100).feed(body(1, "x" * 93)).next_frame }
      .to raise_error(AMQ::Protocol::MalformedInputError, /frame_max/)
  end
end
