# Holds the vectors against amq-protocol, as a client uses it: it reads what servers send and writes what clients send.

require "json"
require "bigdecimal"
require "amq/protocol"

VECTORS = File.expand_path("../vectors", __dir__)

def load_vectors(name)
  JSON.parse(File.read(File.join(VECTORS, name)), max_nesting: false).fetch("vectors")
end

def bytes_of(hex)
  [hex].pack("H*")
end

def string(value)
  (value.is_a?(Hash) ? bytes_of(value.fetch("hex")) : value.dup).force_encoding("BINARY")
end

# Every value of a vector with its tag, at any depth.
def tagged(value, &block)
  case value
  when Hash
    value.each { |tag, content| yield tag, content; tagged(content, &block) }
  when Array
    value.each { |element| tagged(element, &block) }
  end
end

def any_value?(vector)
  [vector["table"], *vector["fields"]&.values, *vector["properties"]&.values].any? do |table|
    found = false
    tagged(table) { |tag, content| found ||= yield(tag, content) } if table.is_a?(Array)
    found
  end
end

Inexpressible = Class.new(StandardError)

# A value as amq-protocol reads it.
def read_value(value)
  tag, content = value.first
  case tag
  when "S" then string(content)
  when "x" then bytes_of(content)
  when "F" then read_table(content)
  when "A" then content.map { |element| read_value(element) }
  when "T" then Time.at(content)
  when "f" then bytes_of(content).unpack1("g")
  when "d" then bytes_of(content).unpack1("G")
  when "D" then BigDecimal(content["digits"]) * BigDecimal(10)**-content["scale"]
  else content
  end
end

def read_table(entries)
  entries.to_h { |key, value| [string(key), read_value(value)] }
end

# A value as it has to be for amq-protocol to write this tag.
def written_value(value)
  tag, content = value.first
  raise Inexpressible unless "SFATdlftV".include?(tag)

  case tag
  when "F" then written_table(content)
  when "A" then content.map { |element| written_value(element) }
  when "f" then AMQ::Protocol::Float32Bit.new(read_value(value))
  else read_value(value)
  end
end

def written_table(entries)
  entries.to_h { |key, value| [string(key), written_value(value)] }
end

def field(value, tables)
  case value
  when Array then method(tables).call(value)
  when Hash, String then string(value)
  else value
  end
end

def same?(found, wanted)
  case wanted
  when Float then found.is_a?(Float) && [found].pack("G") == [wanted].pack("G")
  when Array then found.is_a?(Array) && found.size == wanted.size && found.zip(wanted).all? { |a, b| same?(a, b) }
  when Hash
    found.is_a?(Hash) && found.size == wanted.size && wanted.all? { |key, value| found.key?(key) && same?(found[key], value) }
  when String then found.is_a?(String) && found.b == wanted
  else found == wanted
  end
end

# Whether an array holds a value of so few bytes that it can lie within the array's last four.
def short_element?(vector)
  any_value?(vector) { |tag, content| tag == "A" && content.any? { |element| "tbBsuV".include?(element.keys.first) } }
end

DIFFERENCES = [
  ["the types B, u, i and L are unknown", "read",
   ->(v) { v["name"].start_with?("L ") || any_value?(v) { |tag, _| "Bui".include?(tag) } }],
  ["integers of the types b and I are read as unsigned", "read",
   ->(v) { any_value?(v) { |tag, content| "bI".include?(tag) && content.negative? } }],
  ["values that begin in the last four bytes of an array are not read", "read", method(:short_element?)],
  ["an entry of three bytes at the end of a table is not read", "read", ->(v) { any_value?(v) { |tag, _| tag == "V" } }],
  ["only 1 is read as true", "read", ->(v) { v["name"].start_with?("true as ") }],
  ["numbers of the type f have the machine's byte order", "read", ->(v) { any_value?(v) { |tag, _| tag == "f" } }],
  ["numbers of the type f have the machine's byte order", "write", ->(v) { any_value?(v) { |tag, _| tag == "f" } }]
].freeze

class Report
  def initialize
    @counts = Hash.new(0)
    @differences = Hash.new(0)
    @failures = []
  end

  def attempt(vector, action)
    begin
      fine = yield
    rescue Inexpressible
      return @counts["inexpressible"] += 1
    rescue StandardError => e
      problem = e.message
    end
    return @counts[action] += 1 if fine

    reasons = DIFFERENCES.select { |_, kind, applies| kind == action && applies.call(vector) }
    reasons.each { |reason, kind| @differences[[reason, kind]] += 1 }
    @failures << "#{action} #{vector['name']} #{problem.to_s[0, 100]}" if reasons.empty?
  end

  def finish
    puts "amq-protocol #{AMQ::Protocol::VERSION}: #{@counts['read']} vectors read, #{@counts['write']} written, " \
         "#{@counts['inexpressible']} that it has no way to write"
    DIFFERENCES.each do |reason, kind|
      puts "  differs in #{@differences[[reason, kind]]} (#{kind}): #{reason}"
      @failures << "no longer so: #{reason}" if @differences[[reason, kind]].zero?
    end
    @failures.each { |failure| puts "  FAILED #{failure}" }
    @failures.empty?
  end
end

def check_methods(report)
  load_vectors("methods.json").each do |vector|
    kind = AMQ::Protocol::METHODS.fetch(vector["class_id"] << 16 | vector["method_id"])
    raise "#{kind} is not #{vector['method']}" unless kind.name == vector["method"]

    wanted = vector["fields"].transform_keys { |name| name.tr("-", "_") }
    if kind.respond_to?(:decode)
      report.attempt(vector, "read") do
        found = kind.decode(bytes_of(vector["bytes"])[4..])
        wanted.all? { |name, value| same?(found.public_send(name), field(value, :read_table)) }
      end
    end
    next unless kind.respond_to?(:encode) && kind.name != "basic.publish"

    report.attempt(vector, "write") do
      arguments = kind.method(:encode).parameters.map do |_, name|
        { channel: 1, out_of_band: "" }.fetch(name) { field(wanted.fetch(name.to_s), :written_table) }
      end
      kind.encode(*arguments).payload.b == bytes_of(vector["encodes_as"] || vector["bytes"])
    end
  end
end

def check_publish(report)
  load_vectors("methods.json").each do |vector|
    next unless vector["method"] == "basic.publish"

    report.attempt(vector, "write") do
      wanted = vector["fields"]
      frames = AMQ::Protocol::Basic::Publish.encode(1, "".b, { delivery_mode: 2 }, string(wanted["exchange"]),
                                                    string(wanted["routing-key"]), wanted["mandatory"],
                                                    wanted["immediate"], 4096)
      frames.first.payload.b == bytes_of(vector["encodes_as"] || vector["bytes"])
    end
  end
end

def check_headers(report)
  load_vectors("headers.json").each do |vector|
    raw = bytes_of(vector["bytes"])
    report.attempt(vector, "read") do
      frame = AMQ::Protocol::HeaderFrame.new(raw, 1)
      found = frame.properties
      wanted = vector["properties"].to_h do |name, value|
        [name.tr("-", "_").to_sym, name == "timestamp" ? Time.at(value) : field(value, :read_table)]
      end
      same?(found, wanted) && frame.body_size == vector["body_size"]
    end
    report.attempt(vector, "write") do
      properties = vector["properties"].to_h do |name, value|
        [name.tr("-", "_").to_sym, field(value, :written_table)]
      end
      AMQ::Protocol::Basic.encode_properties(vector["body_size"], properties).b == raw
    end
  end
end

def check_tables(report)
  load_vectors("tables.json").each do |vector|
    raw = bytes_of(vector["bytes"])
    report.attempt(vector, "read") { same?(AMQ::Protocol::Table.decode(raw), read_table(vector["table"])) }
    report.attempt(vector, "write") do
      AMQ::Protocol::Table.encode(written_table(vector["table"])).b == bytes_of(vector["encodes_as"] || vector["bytes"])
    end
  end
end

report = Report.new
check_methods(report)
check_publish(report)
check_headers(report)
check_tables(report)
exit(report.finish)
