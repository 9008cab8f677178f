# frozen_string_literal: true

require "bigdecimal"

RSpec.describe AMQ::Protocol::Table do
  def round_trip(value)
    described_class.decode(described_class.encode("key" => value))["key"]
  end

  def nested(depth)
    depth.zero? ? {} : { "in" => nested(depth - 1) }
  end

  it "keeps values of every type, also at the end of a table" do
    [1, -1, 2**62, -(2**63), 2**63 - 1, 2.5, -0.0, true, false, nil, "text", "", [], {}, [1, true], [nil],
     Time.at(1_600_000_000), BigDecimal("1.5"), BigDecimal("0.005"), BigDecimal("1E3"), BigDecimal("0"),
     [1, [2, [3, nil]], { "a" => nil }]].each { |value| expect(round_trip(value)).to eq(value) }
  end

  it "writes Symbols as strings, and keys by their to_s" do
    expect(round_trip(:symbol)).to eq("symbol")
    expect(described_class.decode(described_class.encode(a: 1, 2 => 3, nil => 4))).to eq("a" => 1, "2" => 3, "" => 4)
  end

  it "writes 32-bit floats in the order of the wire, also in arrays" do
    expect(described_class.encode("f" => AMQ::Protocol::Float32Bit.new(1.0))[-4..]).to eq("\x3f\x80\x00\x00".b)
    expect(round_trip([AMQ::Protocol::Float32Bit.new(0.5), :symbol, BigDecimal("2.25")])).to eq([0.5, "symbol", BigDecimal("2.25")])
  end

  it "takes nil and what converts to a Hash" do
    expect([described_class.encode(nil), described_class.encode({})]).to all(eq("\0\0\0\0"))
    expect(described_class.encode([["a", 1]])).to eq(described_class.encode("a" => 1))
  end

  it "refuses what to_h makes no Hash of" do
    [5, nil, [], "text"].each do |result|
      impostor = Object.new.tap { |object| object.define_singleton_method(:to_h) { result } }
      expect { described_class.encode(impostor) }.to raise_error(TypeError, "to_h has to give a Hash")
      expect { AMQ::Protocol::Basic.encode_properties(1, impostor) }.to raise_error(TypeError, "to_h has to give a Hash")
      expect { AMQ::Protocol::Basic::Publish.encode(1, "x", impostor, "e", "k", false, false, 4096) }.to raise_error(TypeError)
      expect { AMQ::Protocol::Basic::Publish.encode(1, "x", { headers: impostor }, "e", "k", false, false, 4096) }.to raise_error(TypeError)
    end
  end

  it "reads one String in many threads, decimals too, and leaves it unlocked" do
    encoded = described_class.encode((1..20).to_h { |i| ["k#{i}", BigDecimal("1.5")] })
    [encoded.dup, encoded.dup.freeze].each do |string|
      threads = Array.new(8) { Thread.new { Array.new(300) { described_class.decode(string).size }.sum } }
      expect(threads.map(&:value)).to all(eq(6000))
    end
    described_class.decode(encoded)
    expect((encoded << "more").bytesize).to be > 4
  end

  it "refuses integers beyond 64 bits, with their sign" do
    [2**63, 2**64 - 1, 2**64, 2**64 + 5, 2**200, -(2**63) - 1, -(2**64), -(2**64) + 5, -(2**200)].each do |value|
      [value, [value], { "in" => value }].each { |one| expect { round_trip(one) }.to raise_error(RangeError, /64 bits/) }
    end
    expect { round_trip(Time.at(2**70)) }.to raise_error(RangeError)
    [2**62, 2**63 - 1, -(2**62) - 1, -(2**63)].each { |value| expect(round_trip([value])).to eq([value]) }
  end

  it "gives new binary Strings that can be changed" do
    encoded = described_class.encode("ä" => "ö" * 200)
    expect([encoded.encoding, encoded.frozen?]).to eq([Encoding::BINARY, false])
    expect(described_class.decode(encoded)).to eq("ä".b => ("ö" * 200).b)
  end

  it "takes UTF-8, binary, frozen and shared Strings" do
    long = "0123456789" * 20
    [long[100..], long.b.freeze, "ä" * 100, ("ä" * 100).b, long.encode("UTF-16LE")].each do |string|
      expect(round_trip(string)).to eq(string.b)
    end
  end

  it "writes keys and values of every length, wherever in a growing table they lie" do
    values = [1, true, false, nil, "", "v" * 15, "v" * 16, "v" * 17, "v" * 23, "v" * 24, "v" * 25, "v" * 40, :name, 2.5]
    [0, 1, 15, 16, 17, 22, 23, 24, 25, 30, 31, 32, 33, 255].each do |len|
      # From a few entries to more than what is put together on the stack, and some more than that.
      [1, 5, 150, 500].each do |count|
        entries = Array.new(count) { |n| [format("%0#{len}d", n)[0, len], values[n % values.size]] }
        pairs = entries.map { |key, value| [key, value.is_a?(Symbol) ? value.to_s : value] }
        expect(described_class.decode(described_class.encode(entries.to_h))).to eq(pairs.to_h)
      end
    end
    2000.upto(2060) { |len| expect(round_trip(["x" * len, "y", 1, true])).to eq(["x" * len, "y", 1, true]) }
  end

  it "writes String subclasses and Strings with methods of their own by their bytes" do
    text = Class.new(String) { def to_s = raise("asked") }
    own = +"own"
    def own.to_s = raise("asked")
    def own.bytesize = 1000
    expect(described_class.decode(described_class.encode("key" => text.new("short"), text.new("k") => text.new("long" * 20))))
      .to eq("key" => "short", "k" => "long" * 20)
    expect(round_trip(own)).to eq("own")
  end

  it "gives Strings the encoding of what they were read from" do
    bytes = "\x00\x00\x00\x08\x01kS\x00\x00\x00\x01v"
    found = described_class.decode(bytes.dup.force_encoding(Encoding::UTF_8))
    expect([found.keys.first.encoding, found.values.first.encoding]).to all(eq(Encoding::UTF_8))
    found = described_class.decode(bytes.b)
    expect([found.keys.first.encoding, found.values.first.encoding]).to all(eq(Encoding::BINARY))
  end

  it "freezes keys, not values" do
    found = described_class.decode(described_class.encode("key" => "value"))
    expect([found.keys.first.frozen?, found.values.first.frozen?]).to eq([true, false])
  end

  it "reads signed integers as signed" do
    expect(described_class.decode("\x00\x00\x00\x0b\x01kI\xff\xff\xff\xfe\x01bb\xff".b)).to eq("k" => -2, "b" => -1)
  end

  it "lets the last of equal keys win" do
    expect(described_class.decode("\x00\x00\x00\x08\x01at\x00\x01at\x01".b)).to eq("a" => true)
  end

  it "reads more entries than it hands on at once" do
    table = (1..1000).to_h { |n| ["key #{n}", [n] * 100] }
    expect(described_class.decode(described_class.encode(table))).to eq(table)
  end

  it "refuses keys of more than 255 bytes" do
    expect { described_class.encode("k" * 256 => 1) }.to raise_error(RangeError)
    expect(described_class.encode("k" * 255 => 1).bytesize).to eq(4 + 256 + 9)
  end

  it "refuses what cannot be written" do
    [Object.new, 1..2, BigDecimal("1E10"), BigDecimal("NaN"), BigDecimal("-Infinity"), 1r].each do |value|
      expect { described_class.encode("key" => value) }.to raise_error(ArgumentError)
    end
    expect { described_class.encode("key" => Object) }.to raise_error(ArgumentError, /Unsupported value Object of type Class/)
  end

  it "ends tables that nest too deep, or hold themselves" do
    expect(described_class.decode(described_class.encode(nested(63)))).to eq(nested(63))
    expect { described_class.encode(nested(64)) }.to raise_error(ArgumentError, /nested/)
    endless = []
    endless << endless
    expect { described_class.encode("key" => endless) }.to raise_error(ArgumentError, /nested/)
    deep = 70.times.inject("".b) { |inner, _| "\x01kF".b + [inner.bytesize].pack("N") + inner }
    expect { described_class.decode([deep.bytesize].pack("N") + deep) }.to raise_error(AMQ::Protocol::MalformedInputError)
  end

  it "says where the input is wrong, counted from its beginning" do
    expect { described_class.decode("\x00\x00\x00\x03\x01kQ") }.to raise_error(ArgumentError, "unknown field type 'Q' at offset 6")
    nested = "\x00\x00\x00\x0A\x01kF\x00\x00\x00\x03\x01kQ"
    expect { described_class.decode(nested) }.to raise_error(ArgumentError, /at offset 13$/)
    list = "\x00\x00\x00\x0B\x01kA\x00\x00\x00\x04b\x01lx"
    expect { described_class.decode(list) }.to raise_error(AMQ::Protocol::MalformedInputError, /at offset 14$/)
    expect { AMQ::Protocol::TableValueDecoder.decode_hash("..\x00\x00\x00\x03\x01kQ", 2) }.to raise_error(ArgumentError, /at offset 8$/)
  end

  it "refuses unknown types and what is cut short" do
    expect { described_class.decode("\x00\x00\x00\x03\x01kQ") }.to raise_error(ArgumentError, /unknown field type/)
    ["", "\0", "\x00\x00\x00\x05\x01k", "\xff\xff\xff\xff"].each do |bytes|
      expect { described_class.decode(bytes) }.to raise_error(AMQ::Protocol::MalformedInputError)
    end
    expect { described_class.decode(nil) }.to raise_error(TypeError)
  end

  it "survives a to_s that changes the table, raises, or encodes another one" do
    table = {}
    raising = Object.new.tap { |key| key.define_singleton_method(:to_s) { raise KeyError } }
    nesting = Object.new.tap { |key| key.define_singleton_method(:to_s) { AMQ::Protocol::Table.encode("a" => 1).unpack1("H*") } }
    deleting = Object.new.tap { |key| key.define_singleton_method(:to_s) { table.clear && "deleting" } }
    expect { described_class.encode(raising => 1) }.to raise_error(KeyError)
    expect(described_class.decode(described_class.encode(nesting => 1)).keys.first).to start_with("0000000b")
    table.update(deleting => 1, "b" => 2)
    expect(described_class.decode(described_class.encode(table))).to include("deleting" => 1)
  end

  it "tells lengths" do
    expect(described_class.length("\x00\x00\x01\x02rest")).to eq(258)
    expect(described_class.hash_size("key" => 1, "a" => "b")).to eq(described_class.encode("key" => 1, "a" => "b").bytesize - 4)
    expect(described_class.decode_table_key("..\x03keyrest", 2)).to eq(["key", 6])
  end
end

RSpec.describe AMQ::Protocol::TableValueEncoder do
  it "knows the size of what it encodes" do
    [1, "text", :symbol, 2.5, nil, true, [1, nil, :symbol], { "a" => [] }, Time.at(0), BigDecimal("1.5")].each do |value|
      expect(described_class.field_value_size(value)).to eq(described_class.encode(value).bytesize)
    end
    expect(described_class.array_size([1, nil])).to eq(10)
  end
end

RSpec.describe AMQ::Protocol::TableValueDecoder do
  {
    decode_string: ["..\x00\x00\x00\x02ab..", "ab", 8], decode_integer: ["..\xff\xff\xff\xff", -1, 6],
    decode_long: ["..#{"\xff".b * 8}", -1, 10], decode_short: ["..\x80\x00", -32_768, 4], decode_byte: ["..\xc0", 192, 3],
    decode_boolean: ["..\x01", true, 3], decode_time: ["..#{"\0" * 7}\x05", Time.at(5), 10],
    decode_32bit_float: ["..\x3f\x80\x00\x00", 1.0, 6], decode_64bit_float: ["..\x3f\xf0#{"\0" * 6}", 1.0, 10],
    decode_big_decimal: ["..\x01\x00\x00\x00\x0f", BigDecimal("1.5"), 7],
    decode_hash: ["..\x00\x00\x00\x04\x01at\x01", { "a" => true }, 10],
    decode_array: ["..\x00\x00\x00\x01V", [nil], 7], decode_value_type: ["..S", "S", 3]
  }.each do |name, (bytes, value, offset)|
    it "#{name} reads at an offset" do
      expect(described_class.public_send(name, bytes.b, 2)).to eq([value, offset])
      expect { described_class.public_send(name, bytes.b, 200) }.to raise_error(AMQ::Protocol::MalformedInputError)
      expect { described_class.public_send(name, bytes.b, -1) }.to raise_error(ArgumentError)
    end
  end
end
