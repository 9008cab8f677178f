# frozen_string_literal: true

RSpec.describe "the shared vectors" do
  def malformed
    [AMQ::Protocol::MalformedInputError, ArgumentError]
  end

  def expect_refused(bytes)
    yield bytes
    raise "#{bytes.inspect[0, 200]} was accepted"
  rescue *malformed
    nil
  end

  Vectors.load("frames").each do |vector|
    it "frame: #{vector['name']}" do
      bytes = Vectors.bytes(vector["bytes"])
      type, channel, size = AMQ::Protocol::Frame.decode_header(bytes)
      frame = AMQ::Protocol::Frame.new(type, bytes[7, size], channel)
      expect([frame.class.name, frame.channel, frame.payload])
        .to eq(["AMQ::Protocol::#{vector['kind'].capitalize}Frame", vector["channel"], Vectors.bytes(vector["payload"])])
      expect(frame.encode).to eq(bytes)
    end
  end

  Vectors.load("methods").each do |vector|
    kind = Vectors.ruby_class(vector["method"])
    fields = vector["fields"].transform_keys { |name| name.tr("-", "_") }

    it "method: #{vector['name']}" do
      bytes = Vectors.bytes(vector["bytes"])
      expect([kind.name, kind.index]).to eq([vector["method"], vector["class_id"] << 16 | vector["method_id"]])
      if kind.respond_to?(:decode)
        found = AMQ::Protocol::MethodFrame.new(bytes, 1).decode_payload
        wanted = fields.transform_values { |value| Vectors.field(value) }
        expect(found).to be_a(kind)
        expect(wanted.all? { |name, value| Vectors.same?(found.public_send(name), value) }).to be(true)
        (4...bytes.bytesize).each { |len| expect_refused(bytes[4...len]) { |prefix| kind.decode(prefix) } }
      end
      if kind.respond_to?(:encode) && kind != AMQ::Protocol::Basic::Publish
        catch(:not_writable) do
          arguments = fields.values.map { |value| value.is_a?(Array) ? Vectors.writable_table(value) : Vectors.field(value) }
          arguments.unshift("") if kind == AMQ::Protocol::Channel::Open
          arguments.unshift(1) unless vector["class_id"] == 10
          expect(kind.encode(*arguments).payload).to eq(Vectors.bytes(vector["encodes_as"] || vector["bytes"]))
        end
      end
    end
  end

  Vectors.load("headers").each do |vector|
    it "header: #{vector['name']}" do
      bytes = Vectors.bytes(vector["bytes"])
      frame = AMQ::Protocol::HeaderFrame.new(bytes, 1)
      wanted = vector["properties"].to_h do |name, value|
        [name.tr("-", "_").to_sym, name == "timestamp" ? Time.at(value) : Vectors.field(value)]
      end
      expect([frame.klass_id, frame.weight, frame.body_size]).to eq([vector["class_id"], 0, vector["body_size"]])
      expect(Vectors.same?(frame.properties, wanted)).to be(true)
      (0...bytes.bytesize).each do |len|
        expect_refused(bytes[0...len]) { |prefix| AMQ::Protocol::HeaderFrame.new(prefix, 1).properties }
      end
      catch(:not_writable) do
        properties = vector["properties"].to_h do |name, value|
          [name.tr("-", "_").to_sym, value.is_a?(Array) ? Vectors.writable_table(value) : Vectors.field(value)]
        end
        expect(AMQ::Protocol::Basic.encode_properties(vector["body_size"], properties)).to eq(bytes)
      end
    end
  end

  Vectors.load("tables").each do |vector|
    it "table: #{vector['name']}" do
      bytes = Vectors.bytes(vector["bytes"])
      expect(Vectors.same?(AMQ::Protocol::Table.decode(bytes), Vectors.table(vector["table"]))).to be(true)
      (0...bytes.bytesize).each { |len| expect_refused(bytes[0...len]) { |prefix| AMQ::Protocol::Table.decode(prefix) } }
      catch(:not_writable) do
        table = Vectors.writable_table(vector["table"])
        expect(AMQ::Protocol::Table.encode(table)).to eq(Vectors.bytes(vector["encodes_as"] || vector["bytes"]))
      end
    end
  end

  Vectors.load("malformed").each do |vector|
    it "malformed: #{vector['name']}" do
      bytes = Vectors.bytes(vector["bytes"])
      expect_refused(bytes) do
        case vector["what"]
        when "method" then decode_everything(AMQ::Protocol::MethodFrame.new(bytes, 1).decode_payload)
        when "header"
          header = AMQ::Protocol::HeaderFrame.new(bytes, 1)
          header.properties
          raise AMQ::Protocol::MalformedInputError if header.weight != 0
        when "table" then AMQ::Protocol::Table.decode(bytes)
        when "frame"
          parser = AMQ::Protocol::Parser.new(frame_max: vector["frame_max"] || 0)
          parser << bytes
          raise AMQ::Protocol::MalformedInputError unless parser.next_frame
        end
      rescue AMQ::Protocol::FrameTypeError, NoMethodError
        raise AMQ::Protocol::MalformedInputError
      end
    end
  end

  def decode_everything(method)
    method.to_h
  end
end
