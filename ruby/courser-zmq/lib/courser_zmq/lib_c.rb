# frozen_string_literal: true

# The few functions of the C library that messages and the poller need.
module LibC
  extend FFI::Library

  library = ffi_lib(FFI::Library::LIBC).first

  attach_function :malloc, [:size_t], :pointer
  attach_function :free, [:pointer], :void
  attach_function :memcpy, %i[pointer pointer size_t], :pointer

  # The address of `free`, given to libzmq so that it releases a message's buffer without calling back into Ruby.
  Free = library.find_symbol('free')
end
