# frozen_string_literal: true

# The version of the loaded libzmq and the layouts of its C structures.
module LibZMQ
  VERSION_PARTS = begin
    parts = Array.new(3) { FFI::MemoryPointer.new(:int) }
    zmq_version(*parts)
    %i[major minor patch].zip(parts.map(&:read_int)).to_h.freeze
  end
  private_constant :VERSION_PARTS

  # @return [Hash{Symbol => Integer}] `:major`, `:minor` and `:patch` of the loaded library
  def self.version
    VERSION_PARTS
  end

  # @return [Integer] for example 40304 for 4.3.4
  def self.version_number
    (version[:major] * 10_000) + (version[:minor] * 100) + version[:patch]
  end

  # @return [String] for example "4.3.4"
  def self.version_string
    version.values.join('.')
  end

  def self.version3?
    version[:major] == 3 && version[:minor] >= 2
  end

  def self.version4?
    version[:major] == 4
  end

  # Older libraries lack functions that the rest is built on.
  raise LoadError, "libzmq #{version_string} is too old: 4.2 or later is needed" if version_number < 40_200

  # @return [Integer] bytes of a `zmq_msg_t`, the same in every libzmq since 4.1.1
  def self.size_of_zmq_msg_t
    64
  end

  # `zmq_msg_t`: opaque, as large and as aligned as libzmq wants it.
  class Message < FFI::Union
    layout :_, [:uint8, LibZMQ.size_of_zmq_msg_t], :p, :pointer
  end

  # The fields of `zmq_pollitem_t`.
  module PollItemLayout
    def self.included(base)
      base.class_eval { layout :socket, :pointer, :fd, :int, :events, :short, :revents, :short }
    end
  end

  # One `zmq_pollitem_t`.
  class PollItem < FFI::Struct
    include PollItemLayout

    def socket
      self[:socket]
    end

    def fd
      self[:fd]
    end

    def readable?
      self[:revents].anybits?(ZMQ::POLLIN)
    end

    def writable?
      self[:revents].anybits?(ZMQ::POLLOUT)
    end

    def inspect
      "socket [#{socket}], fd [#{fd}], events [#{self[:events]}], revents [#{self[:revents]}]"
    end
  end

  # The fields of a monitor's first frame, which has no padding between them.
  module EventDataLayout
    def self.included(base)
      base.class_eval do
        packed
        layout :event, :uint16, :value, :int32
      end
    end
  end

  # The first frame of a monitor's message.
  class EventData < FFI::Struct
    include EventDataLayout

    def event
      self[:event]
    end

    def value
      self[:value]
    end

    def inspect
      "event [#{event}], value [#{value}]"
    end
  end
end
