# frozen_string_literal: true

# Connections, channels, exchanges and queues with Bunny, and the mistakes one can make with them.
require_relative "support"

class TestConnections < BrokerTest
  def test_the_broker_says_what_it_is
    properties = connect.server_properties
    %w[product version platform copyright information cluster_name].each { |name| refute_empty properties[name] }
    %w[publisher_confirms exchange_exchange_bindings basic.nack consumer_cancel_notify connection.blocked
       consumer_priorities authentication_failure_close per_consumer_qos direct_reply_to].each do |name|
      assert_equal true, properties["capabilities"][name], name
    end
  end

  def test_a_wrong_password_is_refused
    assert_raises(Bunny::AuthenticationFailureError) do
      Bunny.new(URI.sub(/:[^:@]*@/, ":wrong@"), automatically_recover: false, log_level: Logger::FATAL).start
    end
  end

  # Bunny 3 collects what ends a connection unless it is told where to raise it; Bunny 2 raises it here by itself.
  def test_an_unknown_vhost_is_refused
    refusal = assert_raises(Bunny::NotAllowedError) { connect(vhost: "nowhere", session_error_handler: Thread.current) }
    assert_match(/vhost nowhere not found/, refusal.message)
  end

  def test_a_thousand_channels
    connection = connect
    channels = Array.new(1000) { connection.create_channel }
    queue = exclusive_queue(channels.last)
    assert_equal queue.name, channels.first.queue(queue.name, passive: true).name
  end

  def test_a_channel_number_is_free_right_after_close
    connection = connect
    100.times do
      channel = connection.create_channel(5)
      channel.prefetch(1)
      channel.close
    end
    20.times do
      channel = connection.create_channel(5)
      assert_raises(Bunny::NotFound) { channel.queue_declare("conformance.missing", passive: true) }
    end
  end

  def test_an_idle_connection_lives_by_its_heartbeats
    channel = connect(heartbeat: 1).create_channel
    sleep 4
    exclusive_queue(channel)
  end

  def test_an_exclusive_queue_is_free_once_its_connection_is_closed
    name = fresh
    10.times do
      connection = connect
      connection.create_channel.queue(name, exclusive: true)
      connection.close
    end
  end
end

class TestMistakes < BrokerTest
  def test_not_found
    name = fresh
    {
      "no queue '#{name}' in vhost '/'" => [
        ->(channel) { channel.queue_declare(name, passive: true) }, ->(channel) { channel.queue_purge(name) },
        ->(channel) { channel.queue_bind(name, "amq.direct") }
      ],
      "no exchange '#{name}' in vhost '/'" => [
        ->(channel) { channel.exchange_declare(name, "direct", passive: true) },
        ->(channel) { exclusive_queue(channel).bind(name) }
      ]
    }.each do |text, mistakes|
      mistakes.each do |mistake|
        channel = open
        assert_closes_channel(Bunny::NotFound, 404, "NOT_FOUND - #{text}") { mistake.call(channel) }
      end
    end
  end

  def test_access_refused
    channel = open
    assert_closes_channel(
      Bunny::AccessRefused, 403, "ACCESS_REFUSED - queue name 'amq.own' contains reserved prefix 'amq.*'"
    ) { channel.queue_declare("amq.own") }
  end

  def test_resource_locked
    name = exclusive_queue(open).name
    channel = open
    text = "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '#{name}' in vhost '/'. It could be " \
           "originally declared on another connection or the exclusive property value does not match that of the " \
           "original declaration."
    assert_closes_channel(Bunny::ResourceLocked, 405, text) { channel.queue_declare(name, passive: true) }
  end

  def test_precondition_failed
    name = fresh
    open.queue(name, auto_delete: true)
    channel = open
    assert_closes_channel(
      Bunny::PreconditionFailed, 406,
      "PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue '#{name}' in vhost '/': " \
      "received 'false' but current is 'true'"
    ) { channel.queue_declare(name, auto_delete: false) }
    open.queue_delete(name)
  end

  def test_the_channel_hears_of_an_unknown_delivery_tag
    channel = open
    reason = nil
    channel.on_error { |_, close| reason = close }
    channel.basic_ack(99)
    eventually { reason }
    assert_equal [406, "PRECONDITION_FAILED - unknown delivery tag 99"], [reason.reply_code, reason.reply_text]
  end
end

class TestRouting < BrokerTest
  def test_direct_topic_and_fanout
    channel = open_confirming
    { direct: %w[a.b], topic: %w[a.b a.c], fanout: %w[a.b a.c b] }.each do |type, expected|
      exchange = channel.public_send(type, fresh("x"), auto_delete: true)
      queue = exclusive_queue(channel).bind(exchange, routing_key: type == :topic ? "a.*" : "a.b")
      %w[a.b a.c b].each { |key| exchange.publish(key, routing_key: key) }
      assert channel.wait_for_confirms
      assert_equal expected, bodies(queue), type
    end
  end

  def test_headers
    channel = open_confirming
    exchange = channel.headers(fresh("x"), auto_delete: true)
    all = exclusive_queue(channel).bind(exchange, arguments: { "x-match" => "all", "os" => "linux", "cores" => 8 })
    any = exclusive_queue(channel).bind(exchange, arguments: { "x-match" => "any", "os" => "linux", "cores" => 8 })
    exchange.publish("both", headers: { "os" => "linux", "cores" => 8 })
    exchange.publish("one", headers: { "os" => "linux", "cores" => 4 })
    exchange.publish("none", headers: { "os" => "plan9" })
    assert channel.wait_for_confirms
    assert_equal %w[both], bodies(all)
    assert_equal %w[both one], bodies(any)
  end

  def test_exchanges_bind_to_exchanges
    channel = open_confirming
    source = channel.fanout(fresh("x"), auto_delete: true)
    destination = channel.fanout(fresh("x"), auto_delete: true, internal: true)
    queue = exclusive_queue(channel).bind(destination)
    destination.bind(source)
    source.publish("through")
    assert channel.wait_for_confirms
    destination.unbind(source)
    assert_equal %w[through], bodies(queue)
  end

  def test_the_server_names_queues_and_counts_messages
    channel = open_confirming
    queue = exclusive_queue(channel)
    assert_match(/\Aamq\.gen-/, queue.name)
    publish(channel, queue, "a", "b")
    assert_equal({ message_count: 2, consumer_count: 0 }, queue.status)
    assert_equal 2, channel.queue_purge(queue.name).message_count
    publish(channel, queue, "c")
    assert_equal 1, channel.queue_delete(queue.name).message_count
  end
end
