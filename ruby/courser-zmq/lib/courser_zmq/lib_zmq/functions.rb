# frozen_string_literal: true

# libzmq's functions.
module LibZMQ
  # name => [arguments, result]
  FUNCTIONS = {
    zmq_version: [%i[pointer pointer pointer], :void],
    zmq_errno: [[], :int],
    zmq_strerror: [%i[int], :pointer],
    zmq_has: [%i[string], :int],

    zmq_ctx_new: [[], :pointer],
    zmq_ctx_set: [%i[pointer int int], :int],
    zmq_ctx_get: [%i[pointer int], :int],
    zmq_ctx_shutdown: [%i[pointer], :int],
    zmq_init: [%i[int], :pointer],

    zmq_msg_init: [%i[pointer], :int],
    zmq_msg_init_size: [%i[pointer size_t], :int],
    zmq_msg_init_data: [%i[pointer pointer size_t pointer pointer], :int],
    zmq_msg_close: [%i[pointer], :int],
    zmq_msg_data: [%i[pointer], :pointer],
    zmq_msg_size: [%i[pointer], :size_t],
    zmq_msg_copy: [%i[pointer pointer], :int],
    zmq_msg_move: [%i[pointer pointer], :int],
    zmq_msg_more: [%i[pointer], :int],
    zmq_msg_get: [%i[pointer int], :int],
    zmq_msg_set: [%i[pointer int int], :int],
    zmq_msg_gets: [%i[pointer string], :string],

    zmq_socket: [%i[pointer int], :pointer],
    zmq_close: [%i[pointer], :int],
    zmq_setsockopt: [%i[pointer int pointer size_t], :int],
    zmq_getsockopt: [%i[pointer int pointer pointer], :int],
    zmq_bind: [%i[pointer string], :int],
    zmq_connect: [%i[pointer string], :int],
    zmq_unbind: [%i[pointer string], :int],
    zmq_disconnect: [%i[pointer string], :int],
    zmq_socket_monitor: [%i[pointer string int], :int],

    zmq_z85_encode: [%i[pointer pointer size_t], :string],
    zmq_z85_decode: [%i[pointer string], :pointer],
    zmq_curve_keypair: [%i[pointer pointer], :int],
    zmq_curve_public: [%i[pointer pointer], :int],

    zmq_atomic_counter_new: [[], :pointer],
    zmq_atomic_counter_set: [%i[pointer int], :void],
    zmq_atomic_counter_inc: [%i[pointer], :int],
    zmq_atomic_counter_dec: [%i[pointer], :int],
    zmq_atomic_counter_value: [%i[pointer], :int],
    zmq_atomic_counter_destroy: [%i[pointer], :void],

    zmq_stopwatch_start: [[], :pointer],
    zmq_stopwatch_intermediate: [%i[pointer], :ulong],
    zmq_stopwatch_stop: [%i[pointer], :ulong]
  }.freeze

  # The functions that may wait for a peer, for another thread or for time.
  BLOCKING_FUNCTIONS = {
    zmq_ctx_term: [%i[pointer], :int],
    zmq_ctx_destroy: [%i[pointer], :int],
    zmq_term: [%i[pointer], :int],
    zmq_msg_send: [%i[pointer pointer int], :int],
    zmq_msg_recv: [%i[pointer pointer int], :int],
    zmq_sendmsg: [%i[pointer pointer int], :int],
    zmq_recvmsg: [%i[pointer pointer int], :int],
    zmq_send: [%i[pointer pointer size_t int], :int],
    zmq_recv: [%i[pointer pointer size_t int], :int],
    zmq_poll: [%i[pointer int long], :int],
    zmq_poller_wait_all: [%i[pointer pointer int long], :int],
    zmq_proxy: [%i[pointer pointer pointer], :int],
    zmq_proxy_steerable: [%i[pointer pointer pointer pointer], :int],
    zmq_sleep: [%i[int], :void]
  }.freeze

  # Functions of libzmq's draft API: attached where the library was built with it.
  DRAFT_FUNCTIONS = {
    zmq_poller_new: [[], :pointer],
    zmq_poller_destroy: [%i[pointer], :int],
    zmq_poller_add: [%i[pointer pointer pointer short], :int],
    zmq_poller_modify: [%i[pointer pointer short], :int],
    zmq_poller_remove: [%i[pointer pointer], :int],
    zmq_poller_fd: [%i[pointer pointer], :int],
    zmq_msg_routing_id: [%i[pointer], :uint32],
    zmq_msg_set_routing_id: [%i[pointer uint32], :int],
    zmq_msg_group: [%i[pointer], :string],
    zmq_msg_set_group: [%i[pointer string], :int],
    zmq_join: [%i[pointer string], :int],
    zmq_leave: [%i[pointer string], :int]
  }.freeze

  # Attaches each function that this libzmq has; one that it lacks stays undefined (`LibZMQ.respond_to?` tells).
  def self.attach_all(functions, **options)
    functions.each do |name, (arguments, result)|
      attach_function name, arguments, result, **options
    rescue FFI::NotFoundError
      next
    end
  end
  private_class_method :attach_all

  attach_all FUNCTIONS
  attach_all BLOCKING_FUNCTIONS, blocking: true
  attach_all DRAFT_FUNCTIONS
  attach_function :send_const, :zmq_send_const, %i[pointer pointer size_t int], :int, blocking: true

  # Sends a buffer that stays where it is and unchanged until the program ends; libzmq does not copy it.
  def self.zmq_send_const(socket, buffer, size, flags = 0)
    send_const(socket, buffer, size, flags)
  end

  # Ends a context: waits until its sockets are closed and their messages sent or dropped.
  #
  # @return [Integer] 0, or -1 when a signal interrupted the wait (`zmq_errno` is EINTR) and it has to be called again
  def self.terminate_context(context)
    zmq_ctx_term(context)
  end
end
