# frozen_string_literal: true

require "amq/protocol/methods/channel"

module AMQ
  module Protocol
    class Channel
      # Why a server closed the channel, as far as RabbitMQ's texts tell: one code stands for several mistakes.
      class Close
        PRECONDITION_FAILED = 406
        private_constant :PRECONDITION_FAILED

        # @return [Boolean] Whether a delivery was not acknowledged in time.
        def delivery_ack_timeout?
          precondition_failed?("delivery acknowledgement on channel")
        end

        # @return [Boolean] Whether a delivery was acknowledged that the channel does not have, such as a second time.
        def unknown_delivery_tag?
          precondition_failed?("unknown delivery tag")
        end

        # @return [Boolean] Whether a message was larger than the server takes.
        def message_too_large?
          precondition_failed?("larger than configured max size")
        end

        private

        def precondition_failed?(text)
          reply_code == PRECONDITION_FAILED && reply_text.include?(text)
        end
      end
    end
  end
end
