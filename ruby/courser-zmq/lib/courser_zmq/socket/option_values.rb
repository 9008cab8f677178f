# frozen_string_literal: true

module ZMQ
  class Socket
    # Carries the values of options to libzmq and back. A read gives nil, and a write -1, where libzmq refuses.
    #
    # @api private
    module OptionValues
      private

      # @return [FFI::MemoryPointer] eight bytes for a value on its way
      def option_value
        @option_value ||= FFI::MemoryPointer.new(:int64)
      end

      # @return [FFI::MemoryPointer] where libzmq finds and leaves the length of a value
      def option_size
        @option_size ||= FFI::MemoryPointer.new(:size_t)
      end

      def write_int(name, value)
        value = value ? 1 : 0 if [true, false].include?(value)
        rc = write_int_option(name, value)
        @handle&.note_linger(value) if name == LINGER && rc != -1
        rc
      end

      def write_int_option(name, value)
        Native.zmq_setsockopt(@socket, name, option_value.put_int(0, value), 4)
      end

      def write_bytes(name, value, length)
        return Native.zmq_setsockopt(@socket, name, nil, 0) if value.nil?

        length = length ? length.clamp(0, value.bytesize) : value.bytesize
        Native.zmq_setsockopt(@socket, name, value, length)
      end

      # @return [Object, nil] nil when libzmq refused
      def read_option(name)
        case Options.kind_of(name)
        when :int64 then read_int64_option(name)
        when :bytes, :text then read_bytes_option(name, Options::TEXT_BYTES_MAX)
        when :key then read_bytes_option(name, Options::KEY_BYTES)&.chomp("\0")
        else read_number(name)
        end
      end

      def read_number(name)
        value = read_int_option(name)
        return value unless value

        case name
        when RCVMORE then value == 1
        when EVENTS then kept? ? value | POLLIN : value
        # What this library set by itself is not what the program set: unset, LINGER reads as it always did.
        when LINGER then @handle.own_linger? ? value : -1
        else value
        end
      end

      def read_int_option(name)
        option_size.put_ulong(0, 4)
        option_value.get_int(0) unless Native.zmq_getsockopt(@socket, name, option_value, option_size) == -1
      end

      def read_int64_option(name)
        option_size.put_ulong(0, 8)
        option_value.get_int64(0) unless Native.zmq_getsockopt(@socket, name, option_value, option_size) == -1
      end

      def read_bytes_option(name, size)
        buffer = FFI::MemoryPointer.new(:char, size)
        option_size.put_ulong(0, size)
        return if Native.zmq_getsockopt(@socket, name, buffer, option_size) == -1

        buffer.get_bytes(0, option_size.get_ulong(0))
      end
    end
  end
end
