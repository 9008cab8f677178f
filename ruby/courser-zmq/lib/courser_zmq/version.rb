# frozen_string_literal: true

module ZMQ
  # The release of ffi-rzmq whose interface this is.
  VERSION = '2.0.7'
  # The release of this gem.
  GEM_VERSION = '0.1.0'
end
