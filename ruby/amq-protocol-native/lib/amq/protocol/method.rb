# frozen_string_literal: true

require "amq/protocol/frame"

module AMQ
  module Protocol
    # The classes of methods: {Connection}, {Channel}, {Exchange}, {Queue}, {Basic}, {Tx}, {Confirm}.
    class Class
      @classes = []

      class << self
        # @return [Array<Class>] All of them.
        attr_reader :classes

        # @return [String] Name in the protocol.
        attr_reader :name

        # @return [Integer] Number in the protocol.
        attr_reader :method_id

        # @private
        def inherited(subclass)
          super
          @classes << subclass if equal?(Protocol::Class)
        end
      end
    end

    # What all methods have in common. An instance is a method that was read or made with `new`.
    class Method
      @methods = []

      class << self
        # @return [Array<Method>] All of them.
        attr_reader :methods

        # @return [String] Name in the protocol, with that of its class before it.
        attr_reader :name

        # @return [Integer] Number in its class.
        attr_reader :method_id

        # @return [Integer] Numbers of class and method in one.
        attr_reader :index

        # @private
        def inherited(subclass)
          super
          @methods << subclass if equal?(Protocol::Method)
        end

        # Tells the properties among what a program gives with a message from everything else.
        #
        # @param user_headers [Hash{Symbol => Object}]
        # @return [Array(Hash, Hash)] The properties, and the rest.
        def split_headers(user_headers)
          properties, rest = user_headers.partition { |name, _| Basic::PROPERTIES.include?(name) }
          [properties.to_h, rest.to_h]
        end

        # Another name of `new`.
        def instantiate(...)
          new(...)
        end
      end

      # @!method self.encode_body(body, channel, frame_size)
      #   @param body [String] Neither changed nor copied.
      #   @param frame_size [Integer] Bytes that a frame may have, header and end included.
      #   @return [Array<BodyFrame>] None for an empty body.

      # @!method to_h
      #   @return [Hash{Symbol => Object}] The attributes by name.

      def inspect
        attributes = to_h.map { |name, value| " #{name}=#{value.inspect}" }
        "#<#{self.class}#{attributes.join(',')}>"
      end

      # @private
      def marshal_dump
        to_h.values
      end

      # @private
      def marshal_load(values)
        initialize(*values)
      end

      Native.define_method(self)
    end
  end
end
