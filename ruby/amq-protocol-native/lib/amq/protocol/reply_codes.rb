# frozen_string_literal: true

# Generated from spec/amqp-0-9-1.toml by `cargo run -p courser-codegen`; not to be edited.

module AMQ
  module Protocol
    # The content is larger than the receiver takes at this time.
    class ContentTooLarge < SoftError
      VALUE = 311
    end

    # A mandatory message reached no queue; comes with basic.return.
    class NoRoute < SoftError
      VALUE = 312
    end

    # An immediate message could not be delivered at once; comes with basic.return.
    class NoConsumers < SoftError
      VALUE = 313
    end

    # An operator or a shutdown closed the connection.
    class ConnectionForced < HardError
      VALUE = 320
    end

    # The virtual host is unknown.
    class InvalidPath < HardError
      VALUE = 402
    end

    # The user may not do this.
    class AccessRefused < SoftError
      VALUE = 403
    end

    # The named queue or exchange does not exist.
    class NotFound < SoftError
      VALUE = 404
    end

    # The resource belongs to another connection.
    class ResourceLocked < SoftError
      VALUE = 405
    end

    # What was asked for does not fit what there is.
    class PreconditionFailed < SoftError
      VALUE = 406
    end

    # A frame cannot be decoded.
    class FrameError < HardError
      VALUE = 501
    end

    # A frame holds values that are not allowed.
    class SyntaxError < HardError
      VALUE = 502
    end

    # A method is unknown or not allowed in this state.
    class CommandInvalid < HardError
      VALUE = 503
    end

    # The channel is not open, or was opened before.
    class ChannelError < HardError
      VALUE = 504
    end

    # A frame came where another kind was due.
    class UnexpectedFrame < HardError
      VALUE = 505
    end

    # The server has not enough resources left.
    class ResourceError < HardError
      VALUE = 506
    end

    # The request breaks a rule of the server.
    class NotAllowed < HardError
      VALUE = 530
    end

    # The server does not do this.
    class NotImplemented < HardError
      VALUE = 540
    end

    # The server failed by its own fault.
    class InternalError < HardError
      VALUE = 541
    end
  end
end
