# frozen_string_literal: true

# Messages with Bunny: confirms, returns, acknowledgements, bodies, properties and headers.
require_relative "support"

class TestPublishing < BrokerTest
  def test_confirms
    channel = open_confirming
    queue = exclusive_queue(channel)
    publish(channel, queue, *Array.new(1000, &:to_s))
    assert_empty channel.unconfirmed_set
    assert_empty channel.nacked_set
    assert_equal Array.new(1000, &:to_s), bodies(queue)
  end

  def test_a_mandatory_message_comes_back_before_its_confirm
    channel = open_confirming
    returned = []
    exchange = channel.direct("amq.direct", durable: true)
    exchange.on_return { |info, properties, body| returned << [info.reply_code, info.reply_text, properties, body] }
    exchange.publish("body", routing_key: "nowhere", mandatory: true, message_id: "7")
    assert channel.wait_for_confirms
    eventually { returned.any? }
    code, text, properties, body = returned.first
    assert_equal [312, "NO_ROUTE", "7", "body"], [code, text, properties[:message_id], body]
  end

  [0, 1, 4088, 131_064, 131_065, 1_000_000, 10 * 1024 * 1024].each do |size|
    define_method("test_a_body_of_#{size}_bytes") do
      channel = open_confirming
      queue = exclusive_queue(channel)
      body = (Array(0..250).pack("C*") * (size / 251 + 1))[0, size]
      publish(channel, queue, body)
      assert body == queue.pop[2].b, "another body came back"
    end
  end

  def test_bodies_at_the_least_frame_size
    channel = connect(frame_max: 4096).create_channel.tap(&:confirm_select)
    queue = exclusive_queue(channel)
    publish(channel, queue, "x" * 50_000)
    assert_equal 50_000, queue.pop[2].bytesize
  end

  def test_properties
    channel = open_confirming
    queue = exclusive_queue(channel)
    properties = {
      content_type: "application/json", content_encoding: "gzip", headers: { "k" => "v" }, delivery_mode: 2,
      priority: 5, correlation_id: "c-1", reply_to: "answers", expiration: "60000", message_id: "m-1",
      timestamp: 1_609_459_200, type: "created", user_id: "guest", app_id: "conformance"
    }
    publish(channel, queue, "{}", **properties)
    expected = properties.merge(timestamp: Time.at(properties[:timestamp])) # Bunny takes a number, and gives a Time
    assert_equal expected, queue.pop[1].to_hash
  end

  def test_headers_of_every_type
    channel = open_confirming
    queue = exclusive_queue(channel)
    headers = {
      "true" => true, "false" => false, "nil" => nil, "small" => 7, "negative" => -(2**31), "long" => 2**40,
      "least" => -(2**63), "float" => Math::PI, "text" => "plain", "bytes" => "\xFF\x00\xFE".b, "empty" => "",
      "time" => Time.at(1_609_459_200),
      "array" => [1, "two", [true, { "deep" => -1 }]], "empty array" => [],
      "table" => { "a" => 1, "b" => { "c" => "deep" } }, "empty table" => {}
    }
    publish(channel, queue, "", headers: headers)
    assert_equal headers, queue.pop[1][:headers]
  end
end

class TestConsuming < BrokerTest
  # Subscribes with manual acknowledgement; gives the messages as they come, [delivery info, body].
  def subscribe(queue, **options)
    inbox = Queue.new
    consumer = queue.subscribe(manual_ack: true, **options) { |info, _, body| inbox << [info, body] }
    [inbox, consumer]
  end

  def take(inbox, count)
    Array.new(count) { Timeout.timeout(PATIENCE_S) { inbox.pop } }
  end

  def test_prefetch_and_an_ack_of_many
    channel = open_confirming
    queue = exclusive_queue(channel)
    publish(channel, queue, *%w[a b c d e])
    channel.prefetch(2)
    inbox, = subscribe(queue)
    messages = take(inbox, 2)
    sleep 0.2
    assert_empty inbox
    channel.ack(messages.last[0].delivery_tag, true)
    assert_equal(%w[c d], take(inbox, 2).map(&:last))
  end

  def test_what_is_given_back_keeps_its_place
    channel = open_confirming
    queue = exclusive_queue(channel)
    publish(channel, queue, *%w[a b c d])
    tags = Array.new(3) { queue.pop(manual_ack: true)[0].delivery_tag }
    channel.reject(tags[1], true)
    channel.nack(tags[2], false, true)
    channel.nack(tags[0], false, true)
    assert queue.pop(manual_ack: true).first.redelivered?
    channel.basic_recover(true)
    assert_equal %w[a b c d], bodies(queue)
  end

  def test_closing_the_channel_gives_back
    connection = connect
    name = fresh
    first = connection.create_channel.tap(&:confirm_select)
    queue = first.queue(name, exclusive: true)
    publish(first, queue, "a", "b")
    inbox, = subscribe(queue)
    take(inbox, 2)
    first.close
    again = connection.create_channel.queue(name, exclusive: true)
    info, _, body = again.pop
    assert_equal ["a", true], [body, info.redelivered?]
    assert_equal %w[b], bodies(again)
  end

  def test_a_consumer_is_told_that_its_queue_is_gone
    cancelled = false
    channel = open
    queue = channel.queue(fresh)
    consumer = Bunny::Consumer.new(channel, queue)
    consumer.on_cancellation { cancelled = true }
    queue.subscribe_with(consumer)
    open.queue_delete(queue.name)
    eventually { cancelled }
  end

  def test_an_auto_delete_queue_goes_with_its_last_consumer
    connection = connect
    queue = connection.create_channel.queue(fresh, auto_delete: true)
    _, consumer = subscribe(queue)
    assert connection.queue_exists?(queue.name)
    consumer.cancel
    refute connection.queue_exists?(queue.name)
  end

  def test_consumers_take_turns
    channel = open_confirming
    queue = exclusive_queue(channel)
    inboxes = Array.new(2) { subscribe(queue).first }
    publish(channel, queue, *Array.new(10, &:to_s))
    inboxes.each { |inbox| take(inbox, 5) }
    sleep 0.1
    assert(inboxes.all?(&:empty?))
  end

  def test_an_exclusive_consumer
    channel = open
    queue = channel.queue(fresh, auto_delete: true)
    subscribe(queue, exclusive: true)
    other = open
    assert_closes_channel(
      Bunny::AccessRefused, 403, "ACCESS_REFUSED - queue '#{queue.name}' in vhost '/' in exclusive use"
    ) { other.basic_consume(queue.name) }
  end
end
