# frozen_string_literal: true

# The numbers of zmq.h for sockets, messages, contexts and polls, under the names that the header gives them and the
# ones they had in earlier releases.
module ZMQ
  # Socket types.
  PAIR = 0
  PUB = 1
  SUB = 2
  REQ = 3
  REP = 4
  DEALER = 5
  ROUTER = 6
  PULL = 7
  PUSH = 8
  XPUB = 9
  XSUB = 10
  STREAM = 11
  XREQ = DEALER
  XREP = ROUTER
  # Draft types: a libzmq built without its draft API refuses them.
  SERVER = 12
  CLIENT = 13
  RADIO = 14
  DISH = 15
  GATHER = 16
  SCATTER = 17
  DGRAM = 18
  PEER = 19
  CHANNEL = 20

  SocketTypeNameMap = %i[
    PAIR PUB SUB REQ REP DEALER ROUTER PULL PUSH XPUB XSUB STREAM SERVER CLIENT RADIO DISH GATHER SCATTER DGRAM PEER
    CHANNEL
  ].to_h { |name| [const_get(name), name.to_s.freeze] }.freeze

  # Values of options.
  NULL = 0
  PLAIN = 1
  CURVE = 2
  GSSAPI = 3
  GSSAPI_NT_HOSTBASED = 0
  GSSAPI_NT_USER_NAME = 1
  GSSAPI_NT_KRB5_PRINCIPAL = 2
  NOTIFY_CONNECT = 1
  NOTIFY_DISCONNECT = 2
  RECONNECT_STOP_CONN_REFUSED = 1
  RECONNECT_STOP_HANDSHAKE_FAILED = 2
  NORM_FIXED = 0
  NORM_CC = 1
  NORM_CCL = 2
  NORM_CCE = 3
  NORM_CCE_ECNONLY = 4
  RECONNECT_STOP_AFTER_DISCONNECT = LibZMQ.version_number < 40_305 ? 3 : 4

  # Flags of a send or receive.
  DONTWAIT = 1
  NOBLOCK = DONTWAIT
  SNDMORE = 2
  SNDLABEL = 4

  # Properties of a message.
  MORE = 1
  SRCFD = 2
  SHARED = 3
  MSG_PROPERTY_ROUTING_ID = 'Routing-Id'
  MSG_PROPERTY_SOCKET_TYPE = 'Socket-Type'
  MSG_PROPERTY_USER_ID = 'User-Id'
  MSG_PROPERTY_PEER_ADDRESS = 'Peer-Address'

  # Options of a context.
  IO_THREADS = 1
  MAX_SOCKETS = 2
  SOCKET_LIMIT = 3
  THREAD_PRIORITY = 3
  THREAD_SCHED_POLICY = 4
  MAX_MSGSZ = 5
  MSG_T_SIZE = 6
  THREAD_AFFINITY_CPU_ADD = 7
  THREAD_AFFINITY_CPU_REMOVE = 8
  THREAD_NAME_PREFIX = 9
  ZERO_COPY_RECV = 10
  IO_THREADS_DFLT = 1
  MAX_SOCKETS_DFLT = 1023

  # Events of a poll.
  POLL = 1
  POLLIN = 1
  POLLOUT = 2
  POLLERR = 4
  POLLPRI = 8

  # Kinds of device, from the time when there were several.
  STREAMER = 1
  FORWARDER = 2
  QUEUE = 3
end
