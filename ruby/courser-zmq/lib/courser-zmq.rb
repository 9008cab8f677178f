# frozen_string_literal: true

require 'ffi'

# ZeroMQ for Ruby, on the system's libzmq through FFI. It has the whole interface of the ffi-rzmq gem, and one with blocks,
# exceptions and timeouts beside it.
module ZMQ
end

require 'courser_zmq/lib_c'
require 'courser_zmq/lib_zmq'
require 'courser_zmq/constants'
require 'courser_zmq/lib_zmq_types'
require 'courser_zmq/version'
require 'courser_zmq/paths'
require 'courser_zmq/options'
require 'courser_zmq/errors'
require 'courser_zmq/util'
require 'courser_zmq/native'
require 'courser_zmq/message'
require 'courser_zmq/deadline'
require 'courser_zmq/lifecycle'
require 'courser_zmq/handles'
require 'courser_zmq/socket/option_access'
require 'courser_zmq/socket/waiting'
require 'courser_zmq/socket/waiting_in_libzmq'
require 'courser_zmq/socket/waiting_on_jvm'
require 'courser_zmq/socket/sending'
require 'courser_zmq/socket/receiving'
require 'courser_zmq/socket/raising'
require 'courser_zmq/socket'
require 'courser_zmq/context'
require 'courser_zmq/io_extensions'
require 'courser_zmq/poll_item'
require 'courser_zmq/poll_items'
require 'courser_zmq/poller'
require 'courser_zmq/proxy'
require 'courser_zmq/steerable_proxy'
require 'courser_zmq/monitor'
require 'courser_zmq/zap'
