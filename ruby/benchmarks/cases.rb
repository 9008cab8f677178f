# frozen_string_literal: true

# What is measured: code by name, as a program would write it. `goal` is how many times faster than the pure gem it is to
# be, `objects` how many objects it may allocate; both only where there is a goal.
#
# Everything the code names is prepared in SETUP, which both gems run.
module Cases
  Case = Struct.new(:name, :code, :goal, :objects, :native_only, :group, keyword_init: true)

  SETUP = <<~'RUBY'
    P = AMQ::Protocol
    BINARY = Encoding::BINARY
    HEADER_BYTES = [1, 1, 100].pack("CnN")
    TABLE_3 = { "key" => "value", "number" => 42, "flag" => true }
    TABLE_NESTED = {
      "product" => "courser", "version" => "1.0",
      "capabilities" => { "publisher_confirms" => true, "basic.nack" => true, "consumer_cancel_notify" => true },
      "hosts" => ["a.example", "b.example", 3, 2.5], "since" => Time.at(1_600_000_000)
    }
    TABLE_50 = (1..50).to_h { |n| ["header-#{n}", "value number #{n}"] }
    TABLE_3_BYTES = P::Table.encode(TABLE_3)
    TABLE_NESTED_BYTES = P::Table.encode(TABLE_NESTED)
    TABLE_50_BYTES = P::Table.encode(TABLE_50)
    SMALL_PROPERTIES = { delivery_mode: 2, content_type: "application/octet-stream", priority: 0 }
    PROPERTIES = {
      content_type: "application/json", headers: { "x-request" => "abc", "x-retry" => 3, "x-flag" => true },
      delivery_mode: 2, priority: 0, correlation_id: "5f2b7a", reply_to: "replies", message_id: "m-1"
    }
    PROPERTIES_BYTES = P::Basic.encode_properties(1024, PROPERTIES)[12..].b
    BODY = "x".b * 1024
    EXCHANGE = "exchange"
    ROUTING_KEY = "routing.key"
    NAME = "some.name"
    DELIVER_BYTES = [6, "ctag-1", 12_345, 0, 8, "exchange", 11, "routing.key"].pack("Ca*Q>CCa*Ca*")
    DELIVER_FRAME = [60, 60].pack("n2") + DELIVER_BYTES
    HEADER_SMALL = P::Basic.encode_properties(1024, SMALL_PROPERTIES).b
    HEADER_LARGE = P::Basic.encode_properties(1024, PROPERTIES).b
    FRAME_HEADERS = [[1, 1, DELIVER_FRAME.bytesize], [2, 1, HEADER_SMALL.bytesize], [3, 1, BODY.bytesize]].map do |fields|
      fields.pack("CnN")
    end
    PACKED = [DELIVER_FRAME, HEADER_SMALL, HEADER_LARGE, BODY].map(&:freeze)

    # A delivery as Bunny reads one, from strings that were read from a socket.
    def deliver(header_payload)
      type, channel, = P::Frame.decode_header(FRAME_HEADERS[0])
      method = P::Frame.new(type, DELIVER_FRAME, channel)
      return unless !method.final? || method.method_class.has_content?

      type, channel, = P::Frame.decode_header(FRAME_HEADERS[1])
      header = P::Frame.new(type, header_payload, channel)
      content = +""
      if header.body_size > 0
        type, channel, = P::Frame.decode_header(FRAME_HEADERS[2])
        body = P::Frame.new(type, BODY, channel)
        content << body.decode_payload
        content.bytesize >= header.body_size
      end
      decoded = method.decode_payload
      header.decode_payload
      decoded.consumer_tag
    end
  RUBY

  PUBLISH = 'P::Basic::Publish.encode(1, BODY, %s, EXCHANGE, ROUTING_KEY, false, false, 131_072)'

  HOT = [
    ["Frame.decode_header", "P::Frame.decode_header(HEADER_BYTES)", 3, 1],
    ["HeartbeatFrame.encode", "P::HeartbeatFrame.encode", 15, 1],
    ["Table.encode, 3 keys", "P::Table.encode(TABLE_3)", 20, 1],
    ["Table.encode, nested", "P::Table.encode(TABLE_NESTED)", 40, 1],
    ["Table.encode, 50 keys", "P::Table.encode(TABLE_50)", 50, 1],
    ["Table.decode, 3 keys", "P::Table.decode(TABLE_3_BYTES)", 8, 2],
    ["Table.decode, nested", "P::Table.decode(TABLE_NESTED_BYTES)", 12, nil],
    ["Table.decode, 50 keys", "P::Table.decode(TABLE_50_BYTES)", 7, 51],
    ["Basic::Ack.encode", "P::Basic::Ack.encode(1, 12_345, false)", 5, 2],
    ["Queue::Declare.encode", 'P::Queue::Declare.encode(1, NAME, false, true, false, false, false, nil)', 8, 3],
    ["Basic::Deliver.decode, lazy", "P::Basic::Deliver.decode(DELIVER_BYTES)", 6, 1],
    ["Basic::Deliver.decode, all 5 attributes read",
     "d = P::Basic::Deliver.decode(DELIVER_BYTES); d.consumer_tag; d.delivery_tag; d.redelivered; d.exchange; " \
     "d.routing_key", 2.5, 4],
    ["encode_properties, 6 + headers", "P::Basic.encode_properties(1024, PROPERTIES)", 35, 1],
    ["decode_properties, 6 + headers", "P::Basic.decode_properties(PROPERTIES_BYTES)", 7, nil],
    ["Publish.encode, 1 KB, small properties", format(PUBLISH, "SMALL_PROPERTIES"), 15, 6],
    ["Publish.encode, 1 KB, 6 + headers", format(PUBLISH, "PROPERTIES"), 25, 6],
    ["Bunny's publish path", "#{format(PUBLISH, 'PROPERTIES')}.reduce(+'') { |all, frame| all << frame.encode }", 5.5,
     12],
    ["Bunny's delivery path, small properties", "deliver(HEADER_SMALL)", 5, 11],
    ["Bunny's delivery path, 6 + headers", "deliver(HEADER_LARGE)", 6, 16]
  ].map { |name, code, goal, objects| Case.new(name: name, code: code, goal: goal, objects: objects, group: "hot") }

  NATIVE = [
    Case.new(name: "the publish path as one string",
             code: format(PUBLISH, "PROPERTIES").sub("Publish.encode", "Publish.encode_to_string"),
             goal: 40, objects: 1, native_only: true, group: "hot")
  ].freeze

  # What bench/ruby/floor does in place of a row.
  FLOOR = [
    ["Table.encode, 3 keys", "P::Floor.table(TABLE_3)"],
    ["Table.encode, nested", "P::Floor.table(TABLE_NESTED)"],
    ["Table.encode, 50 keys", "P::Floor.table(TABLE_50)"],
    ["the publish path as one string", NATIVE[0].code.sub("P::Basic::Publish.encode_to_string", "P::Floor.publish")]
  ].map { |name, code| Case.new(name: name, code: code, group: "floor") }

  # Arguments of encode by the name of the parameter, for every method.
  ARGUMENTS = {
    "channel" => "1", "delivery_tag" => "12_345", "reply_code" => "200", "class_id" => "60", "method_id" => "40",
    "channel_max" => "2047", "frame_max" => "131_072", "heartbeat" => "60", "prefetch_size" => "0",
    "prefetch_count" => "100", "arguments" => "TABLE_3", "client_properties" => "TABLE_NESTED"
  }.freeze
  BITS = %w[passive durable exclusive auto_delete internal nowait if_unused if_empty no_local no_ack global multiple
            requeue active].freeze

  def self.argument(name)
    ARGUMENTS.fetch(name) { BITS.include?(name) ? "true" : "NAME" }
  end
end
