# frozen_string_literal: true

# libzmq as it is: one Ruby method for each C function, with the C function's name, arguments and return value. `ZMQ`
# is built on it; a program may call it where it wants the C API itself.
#
# A function that can block releases the interpreter's lock for as long as it runs; the others keep it, because giving
# it back and taking it again costs more than they do.
module LibZMQ
  extend FFI::Library

  # Where libzmq may be, in the order of trying. `COURSER_ZMQ_LIBRARY` names one file instead.
  LIBRARY_NAMES = if ENV['COURSER_ZMQ_LIBRARY']
                    [ENV['COURSER_ZMQ_LIBRARY']].freeze
                  else
                    %w[libzmq.so.5 libzmq.so libzmq.5.dylib libzmq.dylib /opt/homebrew/lib/libzmq.5.dylib
                       /usr/local/lib/libzmq.5.dylib libzmq].freeze
                  end

  HOW_TO_INSTALL = <<~TEXT
    libzmq, the ZeroMQ library, could not be loaded. Install it:
      Debian, Ubuntu   apt-get install libzmq5
      Fedora, RHEL     dnf install zeromq
      Alpine           apk add libzmq
      macOS            brew install zeromq
    or name its file in the environment variable COURSER_ZMQ_LIBRARY.
  TEXT

  begin
    # Resolved now and into the global namespace: libzmq's own dependencies are not all linked by it.
    ffi_lib_flags :now, :global
    ffi_lib LIBRARY_NAMES
  rescue LoadError => e
    raise LoadError, "#{HOW_TO_INSTALL}(#{e.message.lines.map(&:strip).reject(&:empty?).join('; ')})"
  end
end
