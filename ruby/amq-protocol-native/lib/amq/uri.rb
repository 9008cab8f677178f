# frozen_string_literal: true

require "uri"

module AMQ
  # Addresses of servers: `amqp://user:password@host:port/vhost?heartbeat=10`.
  class URI
    PORTS = { "amqp" => 5672, "amqps" => 5671 }.freeze
    # Parameters that name files, and those that are switches. Both say something about TLS.
    TLS_FILES = %i[cacertfile certfile keyfile].freeze
    TLS_SWITCHES = %i[verify fail_if_no_peer_cert].freeze
    private_constant :PORTS, :TLS_FILES, :TLS_SWITCHES

    DEFAULTS = {
      heartbeat: nil,
      connection_timeout: nil,
      channel_max: nil,
      auth_mechanism: [].freeze,
      verify: false,
      fail_if_no_peer_cert: false,
      cacertfile: nil,
      certfile: nil,
      keyfile: nil
    }.freeze

    class << self
      # Takes an address apart. What it does not say is nil; without a path there is no `:vhost`, and `/` alone is the
      # vhost with the empty name: slashes in a name are written as `%2F`.
      #
      # @param connection_string [String]
      # @return [Hash{Symbol => Object}] `:scheme :user :pass :host :port :ssl :vhost`, and the parameters of {DEFAULTS}.
      # @raise [ArgumentError] When it is no address of an AMQP server.
      def parse(connection_string)
        uri = ::URI.parse(connection_string)
        unless PORTS.key?(uri.scheme)
          raise ArgumentError, "Connection URI must use amqp or amqps schema, such as amqp://broker.example.com:5672"
        end

        settings = DEFAULTS.merge(auth_mechanism: [], scheme: uri.scheme, ssl: uri.scheme == "amqps")
        add_authority(settings, uri)
        add_vhost(settings, uri)
        add_parameters(settings, uri) if uri.query
        settings
      end
      alias parse_amqp_url parse

      private

      def unescape(text)
        ::URI.decode_www_form_component(text)
      end

      def add_authority(settings, uri)
        settings[:user] = unescape(uri.user) if uri.user
        settings[:pass] = unescape(uri.password) if uri.password
        settings[:host] = uri.host if uri.host
        settings[:port] = uri.port || PORTS[uri.scheme]
      end

      def add_vhost(settings, uri)
        return unless uri.path&.start_with?("/")

        vhost = uri.path.delete_prefix("/")
        if vhost.include?("/")
          raise ArgumentError, "#{uri} has multiple-segment path; write slashes in the name of the vhost as %2F"
        end

        settings[:vhost] = unescape(vhost)
      end

      def add_parameters(settings, uri)
        given = parameters(uri.query)
        %i[heartbeat connection_timeout channel_max].each { |name| settings[name] = given[name.to_s].to_i }
        settings[:auth_mechanism] = given["auth_mechanism"]
        TLS_FILES.each { |name| settings[name] = tls_parameter(given, name, uri) }
        TLS_SWITCHES.each { |name| settings[name] = on?(tls_parameter(given, name, uri)) }
      end

      # The parameters of a query. One that comes more than once has an Array.
      def parameters(query)
        pairs = query.split(/[&;]/).map do |pair|
          name, value = pair.split("=", 2)
          [unescape(name.to_s), value && unescape(value)]
        end
        pairs.group_by(&:first).transform_values do |same|
          values = same.filter_map(&:last)
          values.one? ? values.first : values
        end
      end

      def tls_parameter(given, name, uri)
        value = given[name.to_s]
        if value && uri.scheme == "amqp"
          raise ArgumentError, "The option '#{name}' can only be used in URIs that use amqps schema"
        end

        value
      end

      def on?(value)
        value ? value != "false" : false
      end
    end
  end
end
