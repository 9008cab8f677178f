# frozen_string_literal: true

# Error codes. libzmq has numbers of its own, from HAUSNUMERO up, for the POSIX ones that a platform lacks.
module ZMQ
  HAUSNUMERO = 156_384_712
  {
    EAGAIN: nil, EINVAL: nil, ENOMEM: nil, ENODEV: nil, EFAULT: nil, EINTR: nil, EMFILE: nil, ENOENT: nil, EACCES: nil,
    EPROTO: nil, ENOTSUP: 1, EPROTONOSUPPORT: 2, ENOBUFS: 3, ENETDOWN: 4, EADDRINUSE: 5, EADDRNOTAVAIL: 6,
    ECONNREFUSED: 7, EINPROGRESS: 8, ENOTSOCK: 9, EMSGSIZE: 10, EAFNOSUPPORT: 11, ENETUNREACH: 12, ECONNABORTED: 13,
    ECONNRESET: 14, ENOTCONN: 15, ETIMEDOUT: 16, EHOSTUNREACH: 17, ENETRESET: 18
  }.each do |name, own|
    code = Errno.const_defined?(name) ? Errno.const_get(name)::Errno : HAUSNUMERO + own.to_i
    const_set(name, code)
  end
  EFSM = HAUSNUMERO + 51
  ENOCOMPATPROTO = HAUSNUMERO + 52
  ETERM = HAUSNUMERO + 53
  EMTHREAD = HAUSNUMERO + 54
end
