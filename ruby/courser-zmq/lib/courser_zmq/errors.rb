# frozen_string_literal: true

# What is raised.
module ZMQ
  # Errors of what works in the main Ractor only. They are raised even by methods that give nil for others.
  RACTOR_ERRORS = defined?(::Ractor) ? [::Ractor::Error].freeze : [].freeze

  # @raise [Ractor::UnsafeError] outside of the main Ractor
  # @api private
  def self.expect_main_ractor(what)
    return if !defined?(::Ractor) || ::Ractor.current == ::Ractor.main

    raise ::Ractor::UnsafeError, "a #{what} works in the main Ractor only, as FFI and libzmq's handles are not " \
                                 'shared: use threads, or a process for each'
  end

  # What every error of this library is. It carries the C call that failed and what libzmq said.
  class ZeroMQError < StandardError
    # @return [String] the function that failed, such as "zmq_bind"
    attr_reader :source
    # @return [Integer] what it returned
    attr_reader :result_code
    # @return [Integer] libzmq's error number, such as {ZMQ::EADDRINUSE}
    attr_reader :error_code
    # @return [String]
    attr_reader :message
    # @return [Integer, nil] how many messages of a batch had gone ({Socket::Batches#send_messages})
    attr_accessor :messages_sent

    def initialize(source, result_code, error_code, message)
      @source = source
      @result_code = result_code
      @error_code = error_code
      @message = "msg [#{message}], error code [#{error_code}], rc [#{result_code}]"
      super(@message)
    end

    # The context was terminated.
    def eterm?
      error_code == ETERM
    end

    # An argument was not acceptable.
    def einval?
      error_code == EINVAL
    end
  end

  # The loaded libzmq was built without what was asked for.
  class NotSupportedError < ZeroMQError
  end

  # A context or a socket could not be made.
  class ContextError < ZeroMQError
  end

  # A message could not be made or used.
  class MessageError < ZeroMQError
    # There was not enough memory.
    def enomem?
      error_code == ENOMEM
    end
  end

  # An operation on a socket failed; raised by the methods that raise, never by those that return a code.
  class SocketError < ZeroMQError
    # The operation would have had to wait.
    def eagain?
      error_code == EAGAIN
    end

    # The socket's pattern does not allow the operation now, such as a second request before the reply.
    def efsm?
      error_code == EFSM
    end
  end

  # Nothing could be sent or received within the time given.
  class TimeoutError < SocketError
  end

  # The socket's context was terminated while it was in use: time to close the socket and leave.
  class TerminatedError < SocketError
  end
end
