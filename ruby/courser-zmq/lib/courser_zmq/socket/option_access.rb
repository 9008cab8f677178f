# frozen_string_literal: true

module ZMQ
  class Socket
    # Reading and writing a socket's options.
    module OptionAccess
      include OptionValues

      # Sets an option.
      #
      # @param name [Integer] such as {ZMQ::LINGER}
      # @param value [Integer, Boolean, String, nil] as the option wants it; nil takes a text option back
      # @param length [Integer, nil] how many bytes of a string to use, all of them by default
      # @return [Integer] 0 or -1
      def setsockopt(name, value, length = nil)
        case Options.kind_of(name) || (value.is_a?(String) ? :bytes : :int)
        when :int then write_int(name, value)
        when :int64 then Native.zmq_setsockopt(@socket, name, option_value.put_int64(0, value), 8)
        else write_bytes(name, value, length)
        end
      end

      # Reads an option into the first element of `array`.
      #
      # @param name [Integer]
      # @param array [Array] gets an Integer, a String or, for {RCVMORE}, a Boolean
      # @return [Integer] 0, or -1; then `array` is as it was
      def getsockopt(name, array)
        value = read_option(name)
        return failed if value.nil?

        array[0] = value
        0
      end

      # @return [Boolean] whether the message whose part was received last has further ones
      def more_parts?
        read_int_option(RCVMORE) == 1
      end

      # @return [String, nil] the name that peers know the socket by
      def identity
        read_option(IDENTITY)
      end

      def identity=(value)
        setsockopt(IDENTITY, value.to_s)
      end

      # An option's value, texts without their closing zero byte.
      #
      # @param name [Integer, Symbol] {ZMQ::LINGER} or `:linger`
      # @return [Integer, String, Boolean]
      # @raise [SocketError]
      def get(name)
        number = Options.number(name)
        value = read_option(number)
        raise_failure('zmq_getsockopt') if value.nil?
        Options.kind_of(number) == :text ? value.chomp("\0") : value
      end
      alias [] get

      # Sets options by name.
      #
      # @example
      #   socket.set!(linger: 0, rcvhwm: 10_000)
      # @param options [Hash{Symbol => Object}] an array sets the option once for each of its elements
      # @return [self]
      # @raise [SocketError]
      def set!(**options)
        options.each do |name, value|
          number = Options.number(name)
          (value.is_a?(Array) ? value : [value]).each do |each_value|
            raise_failure('zmq_setsockopt') if setsockopt(number, each_value) == -1
          end
        end
        self
      end

      # @param name [Integer, Symbol]
      # @raise [SocketError]
      def []=(name, value)
        raise_failure('zmq_setsockopt') if setsockopt(Options.number(name), value) == -1
      end

      # @return [String] what the socket was last bound or connected to, with the port that was chosen
      def last_endpoint
        get(LAST_ENDPOINT)
      end

      # Asks for messages that begin with one of `prefixes`; without any, for all messages.
      #
      # @return [self]
      def subscribe(*prefixes)
        set!(subscribe: prefixes.empty? ? [''] : prefixes)
      end

      # Takes subscriptions back.
      #
      # @return [self]
      def unsubscribe(*prefixes)
        set!(unsubscribe: prefixes.empty? ? [''] : prefixes)
      end
    end
  end
end
