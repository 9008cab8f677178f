# frozen_string_literal: true

# Generated from spec/amqp-0-9-1.toml by `cargo run -p courser-codegen`; not to be edited.

module AMQ
  module Protocol
    # Transactions of publishes and acknowledgements on a channel.
    class Tx < Protocol::Class
      @name = "tx"
      @method_id = 90

      # Makes the channel transactional.
      #
      # Sent by clients.
      class Select < Protocol::Method
        @name = "tx.select"
        @method_id = 10
        @index = 0x005A000A

        # @!method self.encode(channel)
        # @param channel [Integer] Number of the channel.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 90, 10)
      end

      # The channel is transactional.
      #
      # Sent by servers.
      class SelectOk < Protocol::Method
        @name = "tx.select-ok"
        @method_id = 11
        @index = 0x005A000B

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [SelectOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 90, 11)
      end

      # Carries out what was collected, and begins anew.
      #
      # Sent by clients.
      class Commit < Protocol::Method
        @name = "tx.commit"
        @method_id = 20
        @index = 0x005A0014

        # @!method self.encode(channel)
        # @param channel [Integer] Number of the channel.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 90, 20)
      end

      # The transaction was carried out.
      #
      # Sent by servers.
      class CommitOk < Protocol::Method
        @name = "tx.commit-ok"
        @method_id = 21
        @index = 0x005A0015

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [CommitOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 90, 21)
      end

      # Forgets what was collected, and begins anew.
      #
      # Sent by clients.
      class Rollback < Protocol::Method
        @name = "tx.rollback"
        @method_id = 30
        @index = 0x005A001E

        # @!method self.encode(channel)
        # @param channel [Integer] Number of the channel.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 90, 30)
      end

      # The transaction was forgotten.
      #
      # Sent by servers.
      class RollbackOk < Protocol::Method
        @name = "tx.rollback-ok"
        @method_id = 31
        @index = 0x005A001F

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [RollbackOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 90, 31)
      end
    end
  end
end
