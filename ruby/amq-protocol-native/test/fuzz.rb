# frozen_string_literal: true

# Random arguments and bytes through this gem and through Debian's amq-protocol, in one process: the same bytes, the same
# values, the same exceptions. Differences that are known have a rule and are counted; any other ends the run with status 1.
#
#   ruby -Ilib test/fuzz.rb [SECONDS] [SEED] [CASES]       ends after so many seconds, or so many cases

require "amq-protocol-native"
require "json"
require_relative "fuzz/pure"
require_relative "fuzz/values"

# Runs cases and compares.
class Fuzz
  NATIVE = AMQ::Protocol
  PURE = PureAMQ::Protocol
  METHODS = JSON.parse(File.read(File.expand_path("../../benchmarks/methods.json", __dir__)))
  SHORTS = %w[reply_code class_id method_id channel_max heartbeat prefetch_count].freeze
  LONGS = %w[frame_max message_count consumer_count prefetch_size].freeze
  BYTES = %w[version_major version_minor].freeze
  LONG_STRINGS = %w[mechanisms locales challenge channel_id new_secret response].freeze
  TABLES = %w[server_properties client_properties arguments].freeze
  BITS = %w[passive durable exclusive auto_delete internal nowait if_unused if_empty no_local no_ack global multiple
            requeue active redelivered mandatory immediate].freeze

  # What an exception or a value looks like from outside.
  Raised = Struct.new(:kind)

  def initialize(seed)
    @values = Values.new(Random.new(seed))
    @known = Hash.new(0)
    @cases = 0
    @encoders = METHODS.select { |_, method| method["encode"] && method["class"] != "Basic::Publish" }.values
    @decoders = METHODS.select { |_, method| method["bytes"] }.values
  end

  attr_reader :cases, :known

  KINDS = %i[table table value_type method method method properties properties publish publish decoded decoded frame
             broken].freeze

  def run_case
    @cases += 1
    __send__(@values.pick(KINDS))
  end

  private

  def result
    yield
  rescue StandardError, NotImplementedError => e
    Raised.new(e.class.name.sub("PureAMQ", "AMQ"))
  end

  # Both results are the same, or a rule says why not.
  def compare(what, input, native, pure)
    return if same?(native, pure)

    rule = known_difference(input, native, pure)
    return @known[rule] += 1 if rule

    raise "#{what} differs\ninput:  #{input.inspect}\nnative: #{native.inspect}\npure:   #{pure.inspect}"
  end

  def same?(one, other)
    case one
    when Float then other.is_a?(Float) && [one].pack("G") == [other].pack("G")
    when String then other.is_a?(String) && one.b == other.b
    when Array then other.is_a?(Array) && one.size == other.size && one.zip(other).all? { |a, b| same?(a, b) }
    when Hash
      other.is_a?(Hash) && one.size == other.size &&
        one.zip(other).all? { |(key, value), (k, v)| same?(key, k) && same?(value, v) }
    else one == other
    end
  end

  def known_difference(input, native, pure)
    return "the pure gem fails on UTF-8 beside lengths of 128 bytes and more" if pure == Raised.new("Encoding::CompatibilityError")
    return "the pure gem fails on a frozen body of a frame or more" if pure == Raised.new("FrozenError")
    return "of several wrong arguments another one is reported" if native.is_a?(Raised) && wrong_arguments(input) > 1
    return "integers beyond 64 bits raise, which the pure gem cuts" if native == Raised.new("RangeError") && beyond_64_bits?(input)
    return "small values at the end of a table or an array are lost in the pure gem" if small_end?(input) && !native.is_a?(Raised)

    nil
  end

  def beyond_64_bits?(value)
    case value
    when Hash then value.values.any? { |one| beyond_64_bits?(one) }
    when Array then value.any? { |one| beyond_64_bits?(one) }
    else value.is_a?(Integer) && !value.between?(-(2**63), 2**63 - 1)
    end
  end

  # A table that can be written.
  def fitting_table
    table = @values.table
    table = @values.table while beyond_64_bits?(table)
    table
  end

  # How many arguments cannot be written.
  def wrong_arguments(input)
    case input
    when Hash then input.sum { |name, value| wrong_property?(name, value) ? 1 : 0 }
    when Array then input.sum { |one| one.is_a?(Hash) ? wrong_arguments(one) : (wrong_short?(one) ? 1 : 0) }
    else 0
    end
  end

  def wrong_property?(name, value)
    case name
    when :headers then value.is_a?(Hash) && value.any? { |key, one| wrong_short?(key) || one == Object }
    when :delivery_mode, :priority, :timestamp then !value.is_a?(Numeric)
    when :unknown then !value.nil?
    else wrong_short?(value)
    end
  end

  def wrong_short?(value)
    value.is_a?(String) && value.bytesize > 255
  end

  # Whether some table or array ends with so few bytes that the pure gem overlooks them.
  def small_end?(value)
    case value
    when Hash
      key, last = value.to_a.last
      (key && small?(last) && key.to_s.bytesize + 2 + (last.nil? ? 0 : 1) < 4) || value.values.any? { |one| small_end?(one) }
    when Array then (!value.empty? && small?(value.last)) || value.any? { |one| small_end?(one) }
    else false
    end
  end

  def small?(value)
    value.nil? || value == true || value == false
  end

  # ---- cases

  def table
    table = @values.table_argument
    native = result { NATIVE::Table.encode(table) }
    compare("Table.encode", table, native, result { PURE::Table.encode(table) })
    return unless native.is_a?(String)

    compare("Table.decode", table, result { NATIVE::Table.decode(native) }, result { PURE::Table.decode(native) })
  end

  def value_type
    value = @values.value
    compare("TableValueEncoder.encode", value, result { NATIVE::TableValueEncoder.encode(value) },
            result { PURE::TableValueEncoder.encode(value) })
  end

  def argument(name)
    case name
    when "channel" then @values.rand(65_536)
    when *SHORTS, *LONGS, "delivery_tag" then @values.number
    when *TABLES then @values.table_argument
    when *BITS then @values.bit
    when *LONG_STRINGS then @values.text(Values::LONG_LENGTHS)
    else @values.short
    end
  end

  def constant(protocol, path)
    path.split("::").inject(protocol) { |scope, name| scope.const_get(name) }
  end

  def frame_of(frame)
    [frame.class.name.sub("PureAMQ", "AMQ"), frame.channel, frame.payload, frame.encode]
  end

  def method
    method = @values.pick(@encoders)
    arguments = method["encode"].map { |name| argument(name) }
    compare("#{method['class']}.encode", arguments,
            result { frame_of(constant(NATIVE, method["class"]).encode(*arguments)) },
            result { frame_of(constant(PURE, method["class"]).encode(*arguments)) })
  end

  def properties
    properties = @values.properties
    size = @values.rand(1 << 40)
    native = result { NATIVE::Basic.encode_properties(size, properties) }
    compare("Basic.encode_properties", properties, native, result { PURE::Basic.encode_properties(size, properties) })
    return unless native.is_a?(String) && native.byteslice(12, 2) != "\0\0"

    compare("HeaderFrame", properties, result { header_of(NATIVE, native) }, result { header_of(PURE, native) })
  end

  def header_of(protocol, payload)
    frame = protocol::Frame.new(:headers, payload, 1)
    [frame.klass_id, frame.weight, frame.body_size, frame.properties]
  end

  def publish
    frame_size = @values.pick([9, 10, 64, 4096, 131_072])
    body = @values.text([0, 1, 2, 3, frame_size - 9, frame_size - 8, frame_size - 7, 3 * (frame_size - 8)].select { |n| n < 20_000 })
    properties = @values.properties.reject { |name, _| name == :unknown }
    arguments = [@values.short, @values.short, @values.bit, @values.bit, frame_size]
    compare("Publish.encode", [body, properties, arguments], publish_by(NATIVE, body, properties, arguments),
            publish_by(PURE, body.dup, properties, arguments))
    all = result { NATIVE::Basic::Publish.encode(3, body, properties, *arguments).map(&:encode).join }
    one = result { NATIVE::Basic::Publish.encode_to_string(3, body, properties, *arguments) }
    raise "encode_to_string differs: #{[body, properties, arguments].inspect}" unless same?(all, one)
  end

  def publish_by(protocol, body, properties, arguments)
    result { protocol::Basic::Publish.encode(3, body, properties, *arguments).map { |frame| frame_of(frame) } }
  end

  def field(name)
    case name
    when *SHORTS then [@values.rand(1 << 16)].pack("n")
    when *LONGS then [@values.rand(1 << 32)].pack("N")
    when *BYTES then [@values.rand(256)].pack("C")
    when "delivery_tag" then [@values.rand(1 << 64)].pack("Q>")
    when *LONG_STRINGS then @values.text(Values::LONG_LENGTHS).b.then { |text| [text.bytesize].pack("N") + text }
    when *TABLES then NATIVE::Table.encode(@table = fitting_table)
    else @values.text.b.then { |text| [text.bytesize].pack("C") + text }
    end
  end

  def decoded
    method = @values.pick(@decoders)
    native_class, pure_class = constant(NATIVE, method["class"]), constant(PURE, method["class"])
    names = pure_class.instance_method(:initialize).parameters.map { |_, name| name.to_s }
    @table = nil
    bytes = names.slice_when { |a, b| !(BITS.include?(a) && BITS.include?(b)) }.map do |group|
      BITS.include?(group.first) ? [@values.rand(256)].pack("C") : field(group.first)
    end.join
    read = ->(one) { names.map { |name| one.public_send(name) } }
    compare("#{method['class']}.decode", @table, result { read.call(native_class.decode(bytes)) },
            result { read.call(pure_class.decode(bytes)) })
    broken_method(native_class, bytes)
  end

  # Bytes that are cut or changed: an exception or a value, and nothing worse.
  def broken_method(kind, bytes)
    return unless @values.one_in(4) && !bytes.empty?

    kind.decode(bytes.byteslice(0, @values.rand(bytes.bytesize))).to_h
  rescue NATIVE::MalformedInputError, ArgumentError
    nil
  end

  def frame
    type = @values.pick([:method, :headers, :body, :heartbeat, 1, 2, 3, 8, 0, 4, nil, :other])
    payload, channel = @values.pick([nil, "", @values.text]), @values.pick([0, 1, 65_535, 65_536, -1, nil, "1"])
    compare("Frame.encode", [type, payload, channel], result { NATIVE::Frame.encode(type, payload, channel) },
            result { PURE::Frame.encode(type, payload, channel) })
    header = [@values.rand(256), @values.rand(65_536), @values.rand(1 << 32)].pack("CnN")
    compare("Frame.decode_header", header, result { NATIVE::Frame.decode_header(header) },
            result { PURE::Frame.decode_header(header) })
  end

  def broken
    bytes = NATIVE::Table.encode(fitting_table)
    bytes.setbyte(@values.rand(bytes.bytesize), @values.rand(256))
    bytes = bytes.byteslice(0, @values.rand(bytes.bytesize + 1)) if @values.one_in(2)
    [-> { NATIVE::Table.decode(bytes) }, -> { NATIVE::Basic.decode_properties(bytes) },
     -> { NATIVE::MethodFrame.new(bytes, 1).decode_payload&.to_h },
     -> { NATIVE::Parser.new.feed(bytes).each_command.to_a }].each do |reading|
      reading.call
    rescue NATIVE::Error, ArgumentError, NoMethodError
      nil
    end
  end
end

seconds = Float(ARGV.fetch(0, "60"))
seed = Integer(ARGV.fetch(1, Random.new_seed % 1_000_000))
limit = Integer(ARGV.fetch(2, "1000000000"))
fuzz = Fuzz.new(seed)
deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
begin
  while fuzz.cases < limit && Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
    100.times { fuzz.run_case }
  end
rescue RuntimeError => e
  abort "seed #{seed}, case #{fuzz.cases}: #{e.message}"
end
fuzz.known.sort.each { |rule, count| puts "#{count} times: #{rule}" }
puts "#{fuzz.cases} cases with seed #{seed}: no other difference"
