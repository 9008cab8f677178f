# frozen_string_literal: true

# What the Bunny tests share. COURSER_TEST_URI says where the broker is.
require "bunny"
require "minitest/autorun"
require "securerandom"
require "timeout"

# A test with connections of its own, which are closed behind it. Nothing may take longer than PATIENCE_S.
class BrokerTest < Minitest::Test
  URI = ENV.fetch("COURSER_TEST_URI", "amqp://guest:guest@127.0.0.1:5672/%2F")
  PATIENCE_S = 30

  def run
    Timeout.timeout(2 * PATIENCE_S) { super }
  end

  def setup
    @connections = []
  end

  def teardown
    @connections.each { |connection| connection.close if connection.open? }
  end

  # A name that no other test and no earlier run has used.
  def fresh(kind = "q")
    "conformance.#{kind}.#{SecureRandom.hex(8)}"
  end

  def connect(**options)
    connection = Bunny.new(URI, automatically_recover: false, recover_from_connection_close: false,
                                continuation_timeout: PATIENCE_S * 1000, log_level: Logger::FATAL, **options)
    @connections << connection
    connection.start
  end

  # A channel on a connection of its own.
  def open
    connect.create_channel
  end

  # Such a channel in confirm mode.
  def open_confirming
    open.tap(&:confirm_select)
  end

  def exclusive_queue(channel)
    channel.queue("", exclusive: true)
  end

  # Publishes to a queue and waits until all is there. The channel is in confirm mode.
  def publish(channel, queue, *bodies, **options)
    bodies.each { |body| channel.default_exchange.publish(body, routing_key: queue.name, **options) }
    assert channel.wait_for_confirms
  end

  # Takes everything out of a queue.
  def bodies(queue)
    taken = []
    loop do
      delivery, _, body = queue.pop
      return taken unless delivery

      taken << body
    end
  end

  # Waits for a condition that another thread brings about.
  def eventually(timeout_s: PATIENCE_S)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + timeout_s
    until yield
      flunk "not within #{timeout_s} s" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.02
    end
  end

  # The block fails with this kind of error, code and text.
  def assert_closes_channel(kind, code, text, &block)
    close = assert_raises(kind, &block).channel_close
    assert_equal [code, text], [close.reply_code, close.reply_text]
  end
end
