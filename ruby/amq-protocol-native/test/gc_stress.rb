# frozen_string_literal: true

# Uses everything while the collector runs at every chance it gets, and compacts the heap where Ruby can: what is read
# back has to be what was written. ruby -Ilib test/gc_stress.rb [ROUNDS]

require "amq-protocol-native"
require "bigdecimal"

P = AMQ::Protocol
TABLE = {
  "text" => "value", symbol: :name, "integer" => 42, "big" => 2**62, "negative" => -(2**63), "float" => 2.5,
  "single" => P::Float32Bit.new(0.5), "decimal" => BigDecimal("12.75"), "time" => Time.at(1_600_000_000), "nil" => nil,
  "yes" => true, "no" => false, "array" => [1, "two", [3.0, { "four" => nil }]], "table" => { "in" => { "the" => "table" } },
  "long" => "x" * 3000, "utf8" => "Grüße"
}.freeze
READ = {
  "text" => "value", "symbol" => "name", "integer" => 42, "big" => 2**62, "negative" => -(2**63), "float" => 2.5,
  "single" => 0.5, "decimal" => BigDecimal("12.75"), "time" => Time.at(1_600_000_000), "nil" => nil, "yes" => true,
  "no" => false, "array" => [1, "two", [3.0, { "four" => nil }]], "table" => { "in" => { "the" => "table" } },
  "long" => "x" * 3000, "utf8" => "Grüße".b
}.freeze
PROPERTIES = { content_type: "text/plain", headers: TABLE, delivery_mode: 2, message_id: "m", timestamp: 1_600_000_000 }.freeze
# Keys that are made anew are not cached.
def fresh_keys(round)
  (1..40).to_h { |n| ["key #{round} #{n}", "value #{n}"] }
end

def check(found, wanted, what)
  raise "#{what}: #{found.inspect[0, 300]}" unless found == wanted
end

def tables(round)
  check(P::Table.decode(P::Table.encode(TABLE)), READ, "table")
  fresh = fresh_keys(round)
  check(P::Table.decode(P::Table.encode(fresh)), fresh, "table with fresh keys")
end

def deliver_bytes
  [5, "ctag1", 77, 1, 8, "exchange", 3, "key"].pack("Ca*Q>CCa*Ca*")
end

def methods
  frame = P::Frame.new(:method, [60, 60].pack("n2") + deliver_bytes, 3)
  deliver = frame.decode_payload
  check([deliver.consumer_tag, deliver.delivery_tag, deliver.redelivered, deliver.exchange, deliver.routing_key],
        ["ctag1", 77, true, "exchange", "key"], "deliver")
  check(deliver.dup.to_h, deliver.to_h, "copy")
  start = P::Connection::StartOk.encode(TABLE, "PLAIN", "\0guest\0guest", "en_US")
  check(start.encode[7..-2], start.payload, "start-ok")
  made = P::Basic::Return.new(312, "NO_ROUTE", "x" * 30, "y" * 30)
  check([made.reply_code, made.exchange, made.routing_key], [312, "x" * 30, "y" * 30], "return")
end

def publishes
  body = "b" * 5000
  frames = P::Basic::Publish.encode(1, body, PROPERTIES, "exchange", "key", false, false, 4096)
  all = frames.map(&:encode).join
  check(P::Basic::Publish.encode_to_string(1, body, PROPERTIES, "exchange", "key", false, false, 4096), all, "one string")
  check(P::Frame.encode_all(frames), all, "all frames")
  check(frames[1].properties[:headers], READ, "properties")
end

def parsing
  parser = P::Parser.new(frame_max: 0)
  content = P::HeaderFrame.encode(P::Basic.encode_properties(2000, PROPERTIES), 3)
  body = P::BodyFrame.encode("c" * 1000, 3)
  bytes = P::MethodFrame.encode([60, 60].pack("n2") + deliver_bytes, 3) + content + body + P::HeartbeatFrame.encode +
           P::Channel::CloseOk.encode(4).encode + body
  taken = []
  (0...bytes.bytesize).step(700) do |start|
    parser << bytes.byteslice(start, 700)
    parser.each_command { |*command| taken << command }
  end
  check(taken.map(&:first), [4, 3], "channels")
  check([taken[1][1].routing_key, taken[1][2][:headers], taken[1][3]], ["key", READ, "c" * 2000], "content")
end

# What fails must leave nothing behind that the collector stumbles over.
def failures
  [-> { P::Table.encode("a" => Object.new) }, -> { P::Table.encode("k" * 300 => 1) }, -> { P::Table.decode("\0\0\0\5") },
   -> { P::Basic::Ack.encode(1, "tag", false) }, -> { P::Frame.decode_header(nil) },
   -> { P::Basic::Publish.encode(1, "b", {}, "", "", false, false, 4096) }].each do |failing|
    failing.call
    raise "did not fail"
  rescue ArgumentError, RangeError, TypeError, RuntimeError, P::Error => e
    raise if e.message == "did not fail"
  end
end

rounds = Integer(ARGV.fetch(0, "2"))
bytes = Array.new(200) { |n| P::Table.encode(fresh_keys(n)) }
GC.stress = true
rounds.times do |round|
  tables(round)
  methods
  publishes
  parsing
  failures
end
GC.stress = false
GC.auto_compact = true if GC.respond_to?(:auto_compact=)
500.times do |round|
  tables(round)
  methods
  publishes
  parsing
  failures
  bytes.each_with_index { |table, n| check(P::Table.decode(table), fresh_keys(n), "cached keys") } if (round % 100).zero?
  GC.compact if GC.respond_to?(:compact) && (round % 25).zero?
end
puts "#{rounds} rounds under GC.stress, 500 with compaction: everything is as it was written"
