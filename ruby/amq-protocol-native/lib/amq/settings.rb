# frozen_string_literal: true

require "amq/protocol/constants"
require "amq/uri"

module AMQ
  # Settings of a connection: what a program says, over what holds otherwise.
  module Settings
    # The scheme of addresses with TLS.
    AMQPS = "amqps"

    # @return [Hash{Symbol => Object}] What holds where nothing else is set.
    def self.default
      @default ||= {
        # The server.
        host: "127.0.0.1",
        port: AMQ::Protocol::DEFAULT_PORT,
        auth_mechanism: [],

        # The login.
        user: "guest",
        pass: "guest",
        vhost: "/",

        # Limits: frame size in bytes, heartbeat in seconds, timeout in milliseconds. nil leaves it to the server.
        frame_max: 128 * 1024,
        heartbeat: nil,
        connection_timeout: nil,
        channel_max: nil,

        # TLS.
        ssl: false,
        verify: false,
        fail_if_no_peer_cert: false,
        cacertfile: nil,
        certfile: nil,
        keyfile: nil
      }
    end

    # @param settings [Hash, String, nil] Settings by name, or an address ({AMQ::URI}). `:username` and `:password` are
    #   other names of `:user` and `:pass`.
    # @return [Hash{Symbol => Object}] These settings, and the defaults for all others.
    def self.configure(settings = nil)
      case settings
      when Hash then default.merge(with_short_names(settings))
      when String then default.merge(parse_amqp_url(settings))
      when nil then default
      end
    end

    # @see AMQ::URI.parse
    def self.parse_amqp_url(connection_string)
      AMQ::URI.parse(connection_string)
    end

    # @private
    def self.with_short_names(settings)
      long_names = { username: :user, password: :pass }
      short = settings.reject { |name, value| long_names.key?(name) || (value.nil? && long_names.value?(name)) }
      long_names.each { |long, name| short[name] ||= settings[long] if settings[long] }
      short
    end
    private_class_method :with_short_names
  end
end
