# frozen_string_literal: true

module ZMQ
  class Socket
    # The path of messages over {CompiledLoops}. Each method tries without waiting; where that found nothing, met an
    # error or got something else than strings, the method that it stands before goes on.
    #
    # @api private
    module Compiled
      # @see Sending#send_string
      def send_string(string, flags = 0)
        CompiledLoops.put(@native, string, flags) || super
      end

      # @see Receiving#recv_string
      def recv_string(string, flags = 0)
        (@eager && CompiledLoops.take_into(@native, string)) || super
      end

      # @see Receiving#recv_strings
      def recv_strings(list, flag = 0)
        return super unless @eager && (rc = CompiledLoops.take_parts(@native, parts = []))

        list.concat(parts)
        rc
      end

      # @see Raising#receive
      def receive(timeout: nil)
        (@eager && CompiledLoops.take(@native)) || super
      end

      # @see Raising#receive_message
      def receive_message(timeout: nil)
        @eager && CompiledLoops.take_parts(@native, parts = []) ? parts : super
      end

      private

      def take_messages(messages, limit)
        @kept ? messages : CompiledLoops.take_messages(@native, messages, limit)
      end

      def each_ready(&block)
        CompiledLoops.each_ready(self, &block)
      end

      def put_messages(messages, index)
        CompiledLoops.put_messages(self, messages, index)
      end

      def put_parts(parts, flags)
        parts = parts.map { |part| part.is_a?(String) ? part : part.address } unless parts.all?(String)
        rc = CompiledLoops.put_parts(@native, parts, flags)
        rc.negative? ? Util.fail_with(-rc) : rc
      end
    end
  end
end
