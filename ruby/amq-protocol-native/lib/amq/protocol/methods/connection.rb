# frozen_string_literal: true

# Generated from spec/amqp-0-9-1.toml by `cargo run -p courser-codegen`; not to be edited.

module AMQ
  module Protocol
    # Opening, tuning and closing a connection; always on channel 0.
    class Connection < Protocol::Class
      @name = "connection"
      @method_id = 10

      # Offers the server's protocol version, properties, login mechanisms and locales.
      #
      # Sent by servers.
      class Start < Protocol::Method
        @name = "connection.start"
        @method_id = 10
        @index = 0x000A000A

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Start]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] version_major
        # @return [Integer] Major number of the protocol version: 0.

        # @!attribute [r] version_minor
        # @return [Integer] Minor number of the protocol version: 9.

        # @!attribute [r] server_properties
        # @return [Hash] What a peer says of itself: product, version, capabilities.

        # @!attribute [r] mechanisms
        # @return [String] Login mechanisms, separated by spaces.

        # @!attribute [r] locales
        # @return [String] Locales for texts, separated by spaces.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 10)
      end

      # Picks a login mechanism and a locale, and begins the login.
      #
      # Sent by clients.
      class StartOk < Protocol::Method
        @name = "connection.start-ok"
        @method_id = 11
        @index = 0x000A000B

        # @!method self.encode(client_properties, mechanism, response, locale)
        # @param client_properties [Hash, nil] What a peer says of itself: product, version,
        # capabilities.
        # @param mechanism [String, #to_s] The login mechanism that the client picked.
        # @param response [String, #to_s] The mechanism's first response; its form is the
        # mechanism's own.
        # @param locale [String, #to_s] The locale that the client picked.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 11)
      end

      # Asks for one more round of the login mechanism.
      #
      # Sent by servers.
      class Secure < Protocol::Method
        @name = "connection.secure"
        @method_id = 20
        @index = 0x000A0014

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Secure]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] challenge
        # @return [String] The mechanism's challenge.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 20)
      end

      # Answers a round of the login mechanism.
      #
      # Sent by clients.
      class SecureOk < Protocol::Method
        @name = "connection.secure-ok"
        @method_id = 21
        @index = 0x000A0015

        # @!method self.encode(response)
        # @param response [String, #to_s] The mechanism's response.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 21)
      end

      # Proposes limits for the connection.
      #
      # Sent by servers.
      class Tune < Protocol::Method
        @name = "connection.tune"
        @method_id = 30
        @index = 0x000A001E

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Tune]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] channel_max
        # @return [Integer] Highest channel number; 0 is no limit.

        # @!attribute [r] frame_max
        # @return [Integer] Largest frame in bytes, header and end included; 0 is no limit.

        # @!attribute [r] heartbeat
        # @return [Integer] Interval of heartbeats in seconds; 0 is none.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 30)
      end

      # Settles the limits, none above what the server proposed.
      #
      # Sent by clients.
      class TuneOk < Protocol::Method
        @name = "connection.tune-ok"
        @method_id = 31
        @index = 0x000A001F

        # @!method self.encode(channel_max, frame_max, heartbeat)
        # @param channel_max [Integer] Highest channel number.
        # @param frame_max [Integer] Largest frame in bytes, header and end included.
        # @param heartbeat [Integer] Interval of heartbeats in seconds; 0 is none.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 31)
      end

      # Enters a virtual host.
      #
      # Sent by clients.
      class Open < Protocol::Method
        @name = "connection.open"
        @method_id = 40
        @index = 0x000A0028

        # @!method self.encode(virtual_host)
        # @param virtual_host [String, #to_s] Name of a virtual host.
        # @return [MethodFrame]

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 40)
      end

      # The connection is ready for use.
      #
      # Sent by servers.
      class OpenOk < Protocol::Method
        @name = "connection.open-ok"
        @method_id = 41
        @index = 0x000A0029

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [OpenOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] known_hosts
        # @return [String] Without a meaning; kept for old programs.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 41)
      end

      # Ends the connection and says why; the sender takes nothing but the reply from then on.
      #
      # Sent by both sides.
      class Close < Protocol::Method
        @name = "connection.close"
        @method_id = 50
        @index = 0x000A0032

        # @!method self.encode(reply_code, reply_text, class_id, method_id)
        # @param reply_code [Integer] One of the reply codes.
        # @param reply_text [String, #to_s] The reason, for people.
        # @param class_id [Integer] Class of the method that the message is about, 0 when there is
        # none.
        # @param method_id [Integer] Method that the message is about, 0 when there is none.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Close]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] reply_code
        # @return [Integer] One of the reply codes.

        # @!attribute [r] reply_text
        # @return [String] The reason, for people.

        # @!attribute [r] class_id
        # @return [Integer] Class of the method that the message is about, 0 when there is none.

        # @!attribute [r] method_id
        # @return [Integer] Method that the message is about, 0 when there is none.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 50)
      end

      # The last method on a connection.
      #
      # Sent by both sides.
      class CloseOk < Protocol::Method
        @name = "connection.close-ok"
        @method_id = 51
        @index = 0x000A0033

        # @!method self.encode()
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [CloseOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 51)
      end

      # The server reads no publishes from this connection until further notice.
      #
      # Sent by servers. An addition of RabbitMQ's.
      class Blocked < Protocol::Method
        @name = "connection.blocked"
        @method_id = 60
        @index = 0x000A003C

        # @!method self.encode(reason)
        # @param reason [String, #to_s] The resource that is short, for people.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Blocked]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] reason
        # @return [String] The resource that is short, for people.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 60)
      end

      # The server reads publishes again.
      #
      # Sent by servers. An addition of RabbitMQ's.
      class Unblocked < Protocol::Method
        @name = "connection.unblocked"
        @method_id = 61
        @index = 0x000A003D

        # @!method self.encode()
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [Unblocked]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 61)
      end

      # Replaces a secret that expires, such as a token, on a running connection.
      #
      # Sent by clients. An addition of RabbitMQ's.
      class UpdateSecret < Protocol::Method
        @name = "connection.update-secret"
        @method_id = 70
        @index = 0x000A0046

        # @!method self.encode(new_secret, reason)
        # @param new_secret [String, #to_s] The secret from now on.
        # @param reason [String, #to_s] Why it changes, for people.
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [UpdateSecret]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @!attribute [r] new_secret
        # @return [String] The secret from now on.

        # @!attribute [r] reason
        # @return [String] Why it changes, for people.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 70)
      end

      # The new secret was taken.
      #
      # Sent by servers. An addition of RabbitMQ's.
      class UpdateSecretOk < Protocol::Method
        @name = "connection.update-secret-ok"
        @method_id = 71
        @index = 0x000A0047

        # @!method self.encode()
        # @return [MethodFrame]

        # @!method self.decode(data)
        # @param data [String] What follows the numbers of class and method in the payload of a
        # frame.
        # @return [UpdateSecretOk]
        # @raise [MalformedInputError] When the bytes are not this method's.

        # @return [Boolean] #false
        def self.has_content?
          false
        end

        Native.define_method_class(self, 10, 71)
      end
    end
  end
end
