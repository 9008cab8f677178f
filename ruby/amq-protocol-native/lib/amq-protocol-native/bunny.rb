# frozen_string_literal: true

require "amq-protocol-native"
require "bunny"
require "amq-protocol-native/bunny/probe"

module AMQ
  module Protocol
    # Makes Bunny use what the interface of `amq-protocol` has no room for: publishes are encoded into one String, and
    # what arrives is read as it comes and taken apart by a {Parser}. Bunny's own interface stays as it is.
    #
    #   require "amq-protocol-native/bunny"
    module Bunny
      # Bytes that are read at once, at most.
      READ_SIZE = 64 * 1024

      # Frames of a content in one String.
      module Session
        # @private
        def send_frameset(frames, channel)
          channel.synchronize do
            raise ::Bunny::ConnectionClosedError, frames unless open?

            @transport.write(Frame.encode_all(frames))
            signal_activity!
          end
        end

        # @private
        def send_encoded(data, channel)
          channel.synchronize do
            raise ::Bunny::ConnectionClosedError, data unless open?

            @transport.write(data)
            signal_activity!
          end
        end
      end

      # Publishes without frame objects.
      module Channel
        # Like Bunny's own: the same options, the same defaults, the same account of what is not confirmed yet.
        def basic_publish(payload, exchange, routing_key, opts = {})
          raise_if_no_longer_open!
          if routing_key && routing_key.size > ::Bunny::Channel::SHORTSTR_LIMIT
            raise ArgumentError, "routing key cannot be longer than #{::Bunny::Channel::SHORTSTR_LIMIT} characters"
          end

          exchange = exchange.name if exchange.respond_to?(:name)
          opts[:delivery_mode] ||= opts.fetch(:persistent, true) ? 2 : 1
          opts[:content_type] ||= ::Bunny::Channel::DEFAULT_CONTENT_TYPE
          opts[:priority] ||= 0
          count_unconfirmed
          data = Basic::Publish.encode_to_string(@id, payload, opts, exchange, routing_key, opts[:mandatory], false,
                                                 @connection.frame_max)
          @connection.send_encoded(data, self)
          self
        end

        private

        def count_unconfirmed
          return unless @next_publish_seq_no.positive?

          @unconfirmed_set_mutex.synchronize do
            @unconfirmed_set.add(@next_publish_seq_no)
            @next_publish_seq_no += 1
          end
        end
      end

      # Reads as much as there is.
      module Transport
        # @private
        def initialize_socket
          @parser = nil
          super
        end

        # The next method with what belongs to it; waits for it.
        #
        # @private
        def next_command
          @parser ||= Parser.new(frame_max: @session.frame_max || 0)
          loop do
            command = @parser.next_command
            return command if command

            @parser.feed(read_available)
          end
        end

        private

        def read_available
          @available ||= String.new(capacity: READ_SIZE)
          loop do
            case @socket.read_nonblock(READ_SIZE, @available, exception: false)
            when String then return @available
            when :wait_readable then wait_for(readable: true)
            when :wait_writable then wait_for(readable: false)
            else raise EmptyResponseError
            end
          end
        rescue SystemCallError, Timeout::Error, ::Bunny::ConnectionError, IOError => e
          lost(e)
        end

        def wait_for(readable:)
          sockets = [@socket]
          return if readable ? IO.select(sockets, nil, nil, @read_timeout) : IO.select(nil, sockets, nil, @read_timeout)

          raise Timeout::Error, "nothing came for #{@read_timeout} s"
        end

        # What Bunny does when reading fails.
        def lost(error)
          @logger.error "Got an exception when receiving data: #{error.message} (#{error.class.name})"
          close
          @status = :not_connected
          raise error if @session.automatically_recover?

          @session_error_handler.raise(
            ::Bunny::NetworkFailure.new("detected a network failure: #{error.message}", error)
          )
          raise EmptyResponseError
        end
      end

      # Hands on whole commands.
      module ReaderLoop
        # @private
        def run_once
          channel, method, properties, body = @transport.next_command
          if body
            @session.handle_frameset(channel, [method, properties, body])
          else
            @session.handle_frame(channel, method)
          end
        end
      end

      # Changes what is known of the Bunny that is loaded: see {Probe}.
      #
      # @private
      def self.patch
        unknown = Probe.unknown(Probe::FRAMES)
        unless unknown.empty?
          return warn("amq-protocol-native/bunny does not know #{unknown.join(', ')} of this Bunny #{::Bunny::VERSION}: Bunny " \
                      "stays as it is, on the native codec")
        end

        ::Bunny::Session.prepend(Session)
        ::Bunny::Channel.prepend(Channel) if Probe.unknown(Probe::PUBLISHES).empty?
        ::Bunny::Transport.prepend(Transport)
        ::Bunny::ReaderLoop.prepend(ReaderLoop)
      end

      patch
    end
  end
end
