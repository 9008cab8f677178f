# frozen_string_literal: true

module ZMQ
  # What each socket option holds, so that a value can be carried to libzmq and back.
  #
  # `:int` is a C int, `:int64` eight bytes, `:bytes` a string of any bytes, `:text` a string that libzmq hands back
  # with its closing zero byte, `:key` a CURVE key, which libzmq takes as 32 bytes or as 40 characters of Z85.
  module Options
    KINDS = {
      int: %w[
        RATE RECOVERY_IVL SNDBUF RCVBUF RCVMORE FD EVENTS TYPE LINGER RECONNECT_IVL BACKLOG RECONNECT_IVL_MAX SNDHWM
        RCVHWM MULTICAST_HOPS RCVTIMEO SNDTIMEO IPV4ONLY ROUTER_MANDATORY TCP_KEEPALIVE TCP_KEEPALIVE_CNT
        TCP_KEEPALIVE_IDLE TCP_KEEPALIVE_INTVL IMMEDIATE XPUB_VERBOSE ROUTER_RAW IPV6 MECHANISM PLAIN_SERVER
        CURVE_SERVER PROBE_ROUTER REQ_CORRELATE REQ_RELAXED CONFLATE ROUTER_HANDOVER TOS IPC_FILTER_PID IPC_FILTER_UID
        IPC_FILTER_GID GSSAPI_SERVER GSSAPI_PLAINTEXT HANDSHAKE_IVL XPUB_NODROP BLOCKY XPUB_MANUAL STREAM_NOTIFY
        INVERT_MATCHING HEARTBEAT_IVL HEARTBEAT_TTL HEARTBEAT_TIMEOUT XPUB_VERBOSER CONNECT_TIMEOUT TCP_MAXRT
        THREAD_SAFE MULTICAST_MAXTPDU VMCI_CONNECT_TIMEOUT USE_FD GSSAPI_PRINCIPAL_NAMETYPE
        GSSAPI_SERVICE_PRINCIPAL_NAMETYPE ZAP_ENFORCE_DOMAIN LOOPBACK_FASTPATH MULTICAST_LOOP ROUTER_NOTIFY
        XPUB_MANUAL_LAST_VALUE IN_BATCH_SIZE OUT_BATCH_SIZE WSS_TRUST_SYSTEM ONLY_FIRST_SUBSCRIBE RECONNECT_STOP
        PRIORITY BUSY_POLL XSUB_VERBOSE_UNSUBSCRIBE TOPICS_COUNT NORM_MODE NORM_UNICAST_NACK NORM_BUFFER_SIZE
        NORM_SEGMENT_SIZE NORM_BLOCK_SIZE NORM_NUM_PARITY NORM_NUM_AUTOPARITY NORM_PUSH
      ],
      int64: %w[AFFINITY MAXMSGSIZE VMCI_BUFFER_SIZE VMCI_BUFFER_MIN_SIZE VMCI_BUFFER_MAX_SIZE],
      bytes: %w[
        ROUTING_ID SUBSCRIBE UNSUBSCRIBE CONNECT_ROUTING_ID XPUB_WELCOME_MSG TCP_ACCEPT_FILTER METADATA HELLO_MSG
        DISCONNECT_MSG HICCUP_MSG WSS_KEY_PEM WSS_CERT_PEM WSS_TRUST_PEM
      ],
      text: %w[
        LAST_ENDPOINT PLAIN_USERNAME PLAIN_PASSWORD ZAP_DOMAIN GSSAPI_PRINCIPAL GSSAPI_SERVICE_PRINCIPAL SOCKS_PROXY
        BINDTODEVICE SOCKS_USERNAME SOCKS_PASSWORD WSS_HOSTNAME
      ],
      key: %w[CURVE_PUBLICKEY CURVE_SECRETKEY CURVE_SERVERKEY]
    }.freeze

    # Further names of some of them.
    ALIASES = %w[
      IDENTITY DELAY_ATTACH_ON_CONNECT FAIL_UNROUTABLE ROUTER_BEHAVIOR CONNECT_RID XPUB_VERBOSE_UNSUBSCRIBE
    ].freeze

    KIND_OF = KINDS.flat_map { |kind, names| names.map { |name| [ZMQ.const_get(name), kind] } }.to_h.freeze
    NUMBER_OF = (KINDS.values.flatten + ALIASES).to_h { |name| [name, ZMQ.const_get(name)] }.freeze
    private_constant :KINDS, :ALIASES, :NUMBER_OF

    # Bytes of the longest string option that is read in one piece.
    TEXT_BYTES_MAX = 1024
    # Bytes of a Z85 key with its closing zero byte: asked for these, libzmq gives the key as text.
    KEY_BYTES = 41

    # @return [Symbol, nil] what the option holds, nil for a number that is no option
    def self.kind_of(option)
      KIND_OF[option]
    end

    # @return [Array<Integer>] the options that hold one of `kinds`, in ascending order
    def self.of_kind(*kinds)
      KIND_OF.select { |_, kind| kinds.include?(kind) }.keys.sort.freeze
    end

    # The number of an option given as such or by name: `ZMQ::LINGER` and `:linger` are the same.
    #
    # @raise [ArgumentError] when there is no option of that name
    def self.number(option)
      return option if option.is_a?(Integer)

      NUMBER_OF.fetch(option.to_s.upcase) { raise ArgumentError, "no socket option named #{option.inspect}" }
    end
  end

  IntegerSocketOptions = Options.of_kind(:int)
  LongLongSocketOptions = Options.of_kind(:int64)
  StringSocketOptions = Options.of_kind(:bytes, :text, :key)
  SocketOptions = Options::KIND_OF.keys.sort.freeze
end
