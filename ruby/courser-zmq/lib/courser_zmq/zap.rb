# frozen_string_literal: true

module ZMQ
  # Decides who may connect: libzmq asks it about every handshake of the servers in its context (the ZAP protocol, RFC
  # 27). No client may until a rule says so.
  #
  # @example
  #   handler = ZMQ::ZapHandler.new(context)
  #   handler.allow_plain('ann' => 'secret')
  #   handler.allow_curve(client_public_key)
  #   handler.start
  #
  # A server uses it once it has a mechanism (`PLAIN_SERVER`, `CURVE_SERVER`) or, for NULL, a `ZAP_DOMAIN`. Received
  # messages tell the peer's name by `message.gets('User-Id')`. Rules may be added while it runs, from any thread.
  class ZapHandler
    # Where libzmq looks for it.
    ENDPOINT = 'inproc://zeromq.zap.01'
    VERSION = '1.0'

    # What libzmq asks. `username` and `password` come with PLAIN, `public_key` (40 characters of Z85) with CURVE.
    Request = Struct.new(:domain, :address, :identity, :mechanism, :username, :password, :public_key)

    # @param context [Context] whose servers are to be guarded
    def initialize(context)
      @context = context
      @passwords = {}.freeze
      @keys = {}.freeze
      @addresses = nil
      @null_domains = [].freeze
      @decision = nil
    end

    # Lets users in by PLAIN.
    #
    # @param passwords [Hash{String => String}] by user name
    # @return [self]
    def allow_plain(passwords)
      @passwords = @passwords.merge(passwords.to_h { |name, password| [name.b, password.b] }).freeze
      self
    end

    # Lets the holders of keys in by CURVE.
    #
    # @param public_keys [Array<String>] each 40 characters of Z85
    # @param user_id [String, nil] what messages tell as User-Id; the key itself unless given
    # @return [self]
    def allow_curve(*public_keys, user_id: nil)
      @keys = @keys.merge(public_keys.to_h { |key| [key, user_id || key] }).freeze
      self
    end

    # Lets all clients in by NULL in the given domains.
    #
    # @param domains [Array<String>] values of `ZAP_DOMAIN`
    # @return [self]
    def allow_null(*domains)
      @null_domains = (@null_domains | domains.map(&:b)).freeze
      self
    end

    # Lets no client in from elsewhere. The other rules still have to be met.
    #
    # @param addresses [Array<String>] such as "127.0.0.1"
    # @return [self]
    def allow_addresses(*addresses)
      @addresses = ((@addresses || []) | addresses).freeze
      self
    end

    # Asks the block where no rule lets a peer in.
    #
    # @yieldparam request [Request]
    # @yieldreturn [String, Boolean, nil] the User-Id of a peer that may come in, or true; nil or false for one that may
    #   not, as is an exception
    # @return [self]
    def decide(&block)
      @decision = block
      self
    end

    # Starts answering. It has to run before servers are bound that need it.
    #
    # @return [self]
    # @raise [ZeroMQError] when the context has another handler already
    def start
      socket = @context.open(:rep, bind: ENDPOINT)
      @socket = socket
      @thread = Thread.new { answer(socket) }
      self
    end

    # Stops answering. Where there is no handler, libzmq lets in all clients that a mechanism lets in.
    #
    # @return [nil]
    def stop
      return unless @thread

      @thread.kill.join
      @thread = nil
      @socket.unbind(ENDPOINT) # at once, where closing alone would leave the place taken for a moment
      @socket.close
      nil
    end

    # @param request [Request]
    # @return [String, nil] the User-Id of a peer that may come in
    def judge(request)
      return if @addresses && !@addresses.include?(request.address)

      by_rule(request) || by_block(request)
    end

    private

    def answer(socket)
      socket.each_message { |*frames| socket.send_message(*reply_to(frames)) }
      socket.close
    end

    def reply_to(frames)
      version, request_id, domain, address, identity, mechanism, *credentials = frames
      return [VERSION, request_id.to_s, '500', 'malformed request', '', ''] if version != VERSION || mechanism.nil?

      user_id = judge(request_of(domain, address, identity, mechanism, credentials))
      status = user_id ? %w[200 OK] : %w[400 refused]
      [VERSION, request_id, *status, user_id.to_s, '']
    end

    def request_of(domain, address, identity, mechanism, credentials)
      request = Request.new(domain, address, identity, mechanism)
      case mechanism
      when 'PLAIN' then request.username, request.password = credentials
      when 'CURVE' then request.public_key = Util.z85_encode(credentials.first.to_s)
      end
      request
    end

    def by_rule(request)
      case request.mechanism
      when 'NULL' then '' if @null_domains.include?(request.domain)
      when 'PLAIN' then request.username if password_right?(request)
      when 'CURVE' then @keys[request.public_key]
      end
    end

    # Takes the same time however many bytes are right.
    def password_right?(request)
      expected = @passwords[request.username]
      given = request.password
      return false if expected.nil? || given.nil? || expected.bytesize != given.bytesize

      expected.each_byte.zip(given.each_byte).inject(0) { |sum, (a, b)| sum | (a ^ b) }.zero?
    end

    def by_block(request)
      verdict = @decision&.call(request)
      verdict == true ? '' : verdict || nil
    rescue StandardError => e
      warn "courser-zmq: a ZAP decision failed, the peer is refused: #{e.message}"
      nil
    end
  end
end
