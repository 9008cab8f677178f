# frozen_string_literal: true

# Calls everything many times and watches the memory of the process: it must not grow.
#
#   ruby -Ilib test/leak.rb [CALLS]
#
# CALLS is 10,000,000 unless given. Ends with status 1 when the memory grew by more than GROWTH_MAX_KB after the first
# fifth, during which caches and the collector settle.

require "amq-protocol-native"
require "bigdecimal"

GROWTH_MAX_KB = 8_192
P = AMQ::Protocol

TABLE = { "text" => "value", "number" => 42, "array" => [1, "two", { "three" => 3.0 }], "decimal" => BigDecimal("1.5") }.freeze
LARGE = (1..200).to_h { |n| ["key #{n}", "value #{n}"] }.freeze
TABLE_BYTES = P::Table.encode(TABLE)
PROPERTIES = { content_type: "text/plain", headers: { "key" => 1 }, delivery_mode: 2, timestamp: 5 }.freeze
BODY = ("b" * 300).freeze
DELIVER = [5, "ctag1", 77, 1, 8, "exchange", 3, "key"].pack("Ca*Q>CCa*Ca*").freeze
CONTENT = P::MethodFrame.encode([60, 60].pack("n2") + DELIVER, 3) +
          P::HeaderFrame.encode(P::Basic.encode_properties(300, PROPERTIES), 3) + P::BodyFrame.encode(BODY, 3)

def failing
  yield
rescue ArgumentError, TypeError, RangeError, P::Error
  nil
end

class Reopened < P::Basic::Deliver
  attr_writer :delivery_tag
end

WORK = [
  -> { P::Table.encode(TABLE) },
  -> { P::Table.encode(LARGE) },
  -> { P::Table.decode(TABLE_BYTES) },
  -> { P::Basic::Publish.encode(1, BODY, PROPERTIES, "exchange", "key", false, false, 100).each(&:encode) },
  -> { P::Basic::Publish.encode_to_string(1, BODY, PROPERTIES, "exchange", "key", false, false, 100) },
  -> { P::Basic::Deliver.decode(DELIVER).to_h },
  -> { Reopened.decode(DELIVER).tap { |one| one.delivery_tag = Object.new }.delivery_tag },
  -> { P::HeaderFrame.new(P::Basic.encode_properties(5, PROPERTIES), 1).properties },
  -> { P::Parser.new.feed(CONTENT).next_command },
  -> { P::Parser.new.feed(CONTENT.byteslice(0, 120)).next_command },
  -> { failing { P::Table.encode("key" => LARGE.merge("wrong" => Object)) } },
  -> { failing { P::Table.decode(TABLE_BYTES.byteslice(0, 20)) } },
  -> { failing { P::Basic::Ack.encode(1, "tag", false) } },
  -> { failing { P::Frame.decode_header("\x09") } },
  -> { P::Table.decode(P::Table.encode("key #{rand(1_000_000)}" => rand)) }
].freeze

def resident_kb
  GC.start
  File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i
end

calls = Integer(ARGV.fetch(0, "10000000"))
rounds = calls / WORK.size
parts = (0..5).map do |part|
  (rounds / 5).times { WORK.each(&:call) } unless part.zero?
  resident_kb
end
growth = parts.last - parts[1]
puts "resident after each fifth, KB: #{parts.drop(1).join(' ')}"
abort "grew by #{growth} KB" if growth > GROWTH_MAX_KB
puts "#{calls} calls: #{growth} KB more than after the first fifth"
