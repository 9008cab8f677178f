# frozen_string_literal: true

# This file and those that require it can be read by older Rubies, so that they say this; the others can't.
if RUBY_VERSION.to_i < 3
  ruby = RUBY_ENGINE == 'jruby' ? "JRuby #{JRUBY_VERSION} (Ruby #{RUBY_VERSION})" : "Ruby #{RUBY_VERSION}"
  raise LoadError, "courser-zmq needs Ruby 3.0 or newer, or JRuby 9.4 or newer, and this is #{ruby}"
end

require 'ffi'

# ZeroMQ for Ruby, on the system's libzmq through FFI. It has the whole interface of the ffi-rzmq gem, and one with
# blocks, exceptions and timeouts beside it.
module ZMQ
end

require 'courser_zmq/lib_c'
require 'courser_zmq/lib_zmq/loading'
require 'courser_zmq/lib_zmq/functions'
require 'courser_zmq/lib_zmq/types'
require 'courser_zmq/constants/sockets'
require 'courser_zmq/constants/options'
require 'courser_zmq/constants/events'
require 'courser_zmq/constants/errors'
require 'courser_zmq/version'
require 'courser_zmq/paths'
require 'courser_zmq/options'
require 'courser_zmq/errors'
require 'courser_zmq/util'
require 'courser_zmq/native'
require 'courser_zmq/compiled_loops'
require 'courser_zmq/deadline'
require 'courser_zmq/cleanup'
require 'courser_zmq/lifecycle'
require 'courser_zmq/finish'
require 'courser_zmq/held_on_jvm'
require 'courser_zmq/message/content'
require 'courser_zmq/message'
require 'courser_zmq/handles'
require 'courser_zmq/socket/option_values'
require 'courser_zmq/socket/option_access'
require 'courser_zmq/socket/waiting'
require 'courser_zmq/socket/closing'
require 'courser_zmq/socket/waiting_in_libzmq'
require 'courser_zmq/socket/waiting_on_jvm'
require 'courser_zmq/socket/sending'
require 'courser_zmq/socket/fetching'
require 'courser_zmq/socket/receiving'
require 'courser_zmq/socket/raising'
require 'courser_zmq/socket/batches'
require 'courser_zmq/socket/interpreted_loops'
require 'courser_zmq/socket/compiled'
require 'courser_zmq/socket'
require 'courser_zmq/context'
require 'courser_zmq/io_extensions'
require 'courser_zmq/poll_item'
require 'courser_zmq/poll_items'
require 'courser_zmq/poller/waiting'
require 'courser_zmq/poller'
require 'courser_zmq/proxy'
require 'courser_zmq/steerable_proxy'
require 'courser_zmq/monitor'
require 'courser_zmq/zap'
