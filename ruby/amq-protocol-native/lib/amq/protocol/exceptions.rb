# frozen_string_literal: true

module AMQ
  module Protocol
    # What all exceptions of this library are, but those for arguments that Ruby's own classes stand for.
    class Error < StandardError
      DEFAULT_MESSAGE = "AMQP error"

      class << self
        # @private
        def inherited(subclass)
          super
          known = Error.instance_variable_get(:@known) || Error.instance_variable_set(:@known, [])
          known << subclass
        end

        # @return [Array<Class>] The exceptions that stand for a reply code.
        def subclasses_with_values
          Error.instance_variable_get(:@known).select { |subclass| subclass.const_defined?(:VALUE) }
        end

        # @param code [Integer] A reply code.
        # @return [Class] The exception for it.
        # @raise [RuntimeError] When there is none.
        def [](code)
          subclasses_with_values.find { |subclass| subclass::VALUE == code } ||
            raise("No such exception class for code #{code}")
        end
      end

      def initialize(message = self.class::DEFAULT_MESSAGE)
        super
      end
    end

    # A frame type that does not exist.
    class FrameTypeError < Error
      # @param types [Array] Those that do.
      def initialize(types)
        super("Must be one of #{types.inspect}")
      end
    end

    # Nothing came where a frame was due.
    class EmptyResponseError < Error
      DEFAULT_MESSAGE = "Empty response received from the server."
    end

    # Something else came than was due.
    class BadResponseError < Error
      def initialize(argument, expected, actual)
        super("Argument #{argument} has to be #{expected.inspect}, was #{actual.inspect}")
      end
    end

    # Bytes that are not what they should be: cut short, too long, nested without end.
    class MalformedInputError < Error
      DEFAULT_MESSAGE = "Malformed input"
    end

    # A fault of this library's own.
    class PanicError < Error
      DEFAULT_MESSAGE = "The native codec failed; please report it"
    end

    # Reply codes that end a channel.
    class SoftError < Error
    end

    # Reply codes that end the connection.
    class HardError < Error
    end
  end
end

require "amq/protocol/reply_codes"
