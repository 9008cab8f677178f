# frozen_string_literal: true

module ZMQ
  # The loops around libzmq's calls in C (`ext/courser_zmq/compiled_loops.c`), where they were compiled when the gem was
  # installed: on MRI, with a C compiler. Without them everything works, only slower ({Socket::InterpretedLoops}).
  # `COURSER_ZMQ_COMPILED=no` leaves them out; `required` makes it an error when they are missing.
  module CompiledLoops
    FUNCTIONS = %w[zmq_msg_init zmq_msg_close zmq_msg_recv zmq_msg_data zmq_msg_more zmq_msg_size zmq_msg_send zmq_send]
                .freeze

    # @return [Boolean]
    def self.available?
      respond_to?(:setup)
    end

    # @api private
    def self.load
      return unless RUBY_ENGINE == 'ruby' && ENV['COURSER_ZMQ_COMPILED'] != 'no'

      require "courser_zmq/compiled_loops.#{RbConfig::CONFIG['DLEXT']}"
      library = LibZMQ.ffi_libraries.first
      setup(*FUNCTIONS.map { |name| library.find_function(name).address })
    rescue LoadError
      raise if ENV['COURSER_ZMQ_COMPILED'] == 'required' # otherwise: not compiled, or for another Ruby
    end
    private_class_method :load
    load
  end
end
