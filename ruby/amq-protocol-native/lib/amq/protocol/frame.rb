# frozen_string_literal: true

require "amq/protocol/native"

module AMQ
  module Protocol
    # Frames: seven bytes of type, channel and size, a payload, and an end marker.
    #
    # `Frame.new` makes a frame of the class that the type names; adapters make subclasses of this class that define
    # `decode` for their kind of input.
    class Frame
      TYPES = { method: 1, headers: 2, body: 3, heartbeat: 8 }.freeze
      TYPES_REVERSE = TYPES.invert.freeze
      TYPES_OPTIONS = TYPES.keys.freeze
      CHANNEL_RANGE = (0..65_535).freeze
      FINAL_OCTET = "\xCE".b.freeze
      PACK_UINT64_BE = "Q>"

      class << self
        alias __new__ new unless method_defined?(:__new__)

        # Reads a frame: to be defined by those who know where from.
        #
        # @raise [NotImplementedError]
        def decode(*)
          raise NotImplementedError, "#{self}.decode depends on the input: define it in a subclass, or use " \
                                     "AMQ::Protocol::Parser"
        end
      end

      # @!method self.new(type, payload, channel)
      #   @param type [Symbol, Integer] One of {TYPES}.
      #   @return [FrameSubclass]
      #   @raise [FrameTypeError]

      # @!method self.encode(type, payload, channel)
      #   @param type [Symbol, Integer] One of {TYPES}.
      #   @param payload [String]
      #   @param channel [Integer] 0 to 65535.
      #   @return [String] A whole frame, binary.
      #   @raise [FrameTypeError]
      #   @raise [RuntimeError] When the channel is out of range or the payload nil.

      # @!method self.encode_to_array(type, payload, channel)
      #   @return [Array(String, String, String)] Header, payload and end marker.

      # @!method self.encoded_payload(payload)
      #   @return [String] The payload labelled as binary: itself if it is, else a copy.

      # @!method self.find_type(type)
      #   @return [Integer]
      #   @raise [FrameTypeError]

      # @!method self.decode_header(header)
      #   @param header [String] The first seven bytes of a frame.
      #   @return [Array(Symbol, Integer, Integer)] Type, channel and size of the payload.
      #   @raise [EmptyResponseError] When there is nothing.
      #   @raise [FrameTypeError]

      # @!method self.encode_all(frames)
      #   An addition to the interface of `amq-protocol`.
      #   @param frames [Array<FrameSubclass>]
      #   @return [String] The frames one behind the other, in one String.

      # @!method final?
      #   @return [Boolean] Whether no other frame belongs to this one.
    end

    # What all kinds of frame have in common.
    class FrameSubclass < Frame
      class << self
        # Makes a frame of this class.
        alias new __new__
        undef_method :decode

        # @return [Integer] Number of the frame type.
        attr_reader :id
      end

      # @!attribute [r] payload
      #   @return [String]
      # @!attribute [rw] channel
      #   @return [Integer]

      # @!method size
      #   @return [Integer] Bytes of the payload.

      # @!method encode
      #   @return [String] The whole frame, binary.
      #   @raise [RuntimeError] When the channel is out of range.

      # @!method encode_to_array
      #   @return [Array(String, String, String)] Header, payload and end marker.

      def inspect
        "#<#{self.class} channel=#{channel.inspect} payload=#{payload.inspect}>"
      end

      # @private
      def marshal_dump
        [payload, channel]
      end

      # @private
      def marshal_load(values)
        initialize(*values)
      end
    end

    # A frame with a method.
    class MethodFrame < FrameSubclass
      @id = 1

      # @!method self.encode(payload, channel)
      #   @return [String]

      # @!method method_class
      #   @return [Class, nil] The class of the method, nil if it is unknown.

      # @!method decode_payload
      #   @return [Method] The method; its attributes are read when they are asked for.
    end

    # A frame with a content header.
    class HeaderFrame < FrameSubclass
      @id = 2

      # @!method self.encode(payload, channel)
      #   @return [String]

      # @!method body_size
      #   @return [Integer] Bytes of the body, in all its frames together.
      # @!method weight
      #   @return [Integer] 0.
      # @!method klass_id
      #   @return [Integer] Number of the class that the content belongs to.
      # @!method properties
      #   @return [Hash{Symbol => Object}] The properties, decoded once.
      # @!method decode_payload
      #   @return [Hash{Symbol => Object}] The properties.
    end

    # A frame with a piece of a body.
    class BodyFrame < FrameSubclass
      @id = 3

      # @!method self.encode(payload, channel)
      #   @return [String]

      # @!method decode_payload
      #   @return [String] The piece.
    end

    # A sign of life.
    class HeartbeatFrame < FrameSubclass
      @id = 8

      # @!method self.encode
      #   @return [String] A heartbeat on channel 0.
    end

    Native.define_frames(Frame, FrameSubclass, MethodFrame, HeaderFrame, BodyFrame, HeartbeatFrame)

    Frame::CLASSES = {
      Frame::TYPES[:method] => MethodFrame,
      Frame::TYPES[:headers] => HeaderFrame,
      Frame::TYPES[:body] => BodyFrame,
      Frame::TYPES[:heartbeat] => HeartbeatFrame
    }.freeze
  end
end
