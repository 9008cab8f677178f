# The first message, with Bunny (https://rubygems.org/gems/bunny).
require "bunny"

connection = Bunny.new("amqp://guest:guest@localhost:5672/").start
channel = connection.create_channel
queue = channel.queue("", exclusive: true)
channel.confirm_select
queue.publish("Hello from Ruby!")
channel.wait_for_confirms
_delivery, _properties, body = queue.pop
puts body
connection.close
