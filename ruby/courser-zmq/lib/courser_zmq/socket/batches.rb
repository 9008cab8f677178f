# frozen_string_literal: true

module ZMQ
  class Socket
    # Many messages with one call: the fast way, because what a call costs in Ruby is more than what libzmq needs for a
    # small message. Failures raise, as those of {Raising} do.
    module Batches
      # How many messages {#receive_messages} takes at most unless told otherwise.
      BATCH_MAX = 1000

      # Receives the messages that are there; waits where there is none.
      #
      # @param limit [Integer] how many at most; it also stops once it has 1 MiB
      # @param timeout [Numeric, nil] seconds to wait for the first; nil leaves it to {RCVTIMEO}
      # @return [Array<Array<String>>] at least one message, each with its parts
      # @raise [TimeoutError, TerminatedError, SocketError]
      def receive_messages(limit = BATCH_MAX, timeout: nil)
        raise ArgumentError, "a limit of 1 or more is needed, not #{limit}" unless limit.positive?

        messages = take_messages([], limit)
        return messages unless messages.empty?

        messages << receive_message(timeout: timeout)
        take_messages(messages, limit - 1)
      end

      # Receives messages until the context is terminated or, given a timeout, none came in time. Between two calls of
      # the block no message is in hand: what the block leaves by `break` or an exception is still there for others.
      #
      # @param timeout [Numeric, nil] seconds to wait for each; nil waits for ever
      # @yieldparam parts [Array<String>] as one argument for each part
      # @return [self, Enumerator] without a block, an enumerator
      # @raise [SocketError]
      def each_message(timeout: nil, &block)
        return enum_for(:each_message, timeout: timeout) unless block

        loop do
          each_ready(&block)
          parts = message_in_time(timeout) or return self
          yield(*parts)
        end
      end

      # Sends messages one after the other, and waits where there is no room. Where one of them cannot be a
      # message, or has a closed {Message} in it, none is sent.
      #
      # @param messages [Array<String, Message, Array>] an Array is a message of several parts; a {Message} is not
      #   copied, and is empty afterwards
      # @param timeout [Numeric, nil] seconds to wait for room, for all together; nil leaves it to {SNDTIMEO}
      # @return [self]
      # @raise [TimeoutError, TerminatedError, SocketError] whose {ZeroMQError#messages_sent} tells how many have gone
      def send_messages(messages, timeout: nil)
        sent = 0
        check_messages(messages)
        deadline = timeout && Deadline.after(timeout)
        until (sent = put_messages(messages, sent)) == messages.size
          send_within(Array(messages[sent]), deadline)
          sent += 1
        end
        self
      rescue ZeroMQError => e
        raise(e.tap { e.messages_sent = sent })
      end

      private

      # @return [Array<String>, nil] nil where none came in time or the context has ended
      def message_in_time(timeout)
        receive_message(timeout: timeout)
      rescue TerminatedError, TimeoutError
        nil
      end

      def check_messages(messages)
        raise TypeError, "no implicit conversion of #{messages.class} into Array" unless messages.is_a?(Array)
        return if messages.all?(String)

        messages.each do |message|
          raise ArgumentError, 'a message has at least one part' if message == []

          parts = message.is_a?(Array) ? message : [message]
          check_parts(parts) unless parts.all?(String)
        end
      end

      def check_parts(parts)
        check_strings(parts.grep_v(Message))
        return if sendable?(parts)

        Util.fail_with(EFAULT)
        raise_failure('zmq_msg_send')
      end
    end
  end
end
