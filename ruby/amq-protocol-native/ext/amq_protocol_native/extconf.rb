# frozen_string_literal: true

# Writes the Makefile by which RubyGems builds the extension: with `rb_sys` where that gem is installed (cross builds
# need it), else with cargo alone.

# Objects are read where they lie, and where that is changes between Ruby's minor versions: a newer one than the newest that
# was tested could read anything.
NEWEST_RUBY = "3.4"

version = RUBY_VERSION.split(".").first(2)
if (version.map(&:to_i) <=> NEWEST_RUBY.split(".").map(&:to_i)).positive?
  abort "amq-protocol-native knows Ruby up to #{NEWEST_RUBY}, and this is Ruby #{RUBY_VERSION}: wait for a newer " \
        "amq-protocol-native, or use amq-protocol, which it stands in for"
end

require "mkmf"

FEATURE = "amq_protocol_native/amq_protocol_native"

begin
  require "rb_sys/mkmf"
  create_rust_makefile(FEATURE)
rescue LoadError
  unless find_executable("cargo")
    abort "amq-protocol-native is compiled with Rust, and there is no cargo: install Rust from https://rustup.rs, or a " \
          "precompiled gem"
  end

  library = case RbConfig::CONFIG["host_os"]
            when /darwin/ then "libamq_protocol_native.dylib"
            when /mingw|mswin/ then "amq_protocol_native.dll"
            else "libamq_protocol_native.so"
            end
  extension = "amq_protocol_native.#{RbConfig::CONFIG['DLEXT']}"

  File.write("Makefile", <<~MAKEFILE)
    RUBY = #{RbConfig.ruby}
    CARGO = cargo
    DESTDIR =
    sitearchdir = #{RbConfig::CONFIG['sitearchdir']}
    TARGET = #{File.expand_path('target')}
    FOLDER = $(DESTDIR)$(sitearchdir)/#{File.dirname(FEATURE)}

    all: #{extension}

    # Cargo knows what is up to date.
    .PHONY: all install clean distclean #{extension}

    #{extension}:
    \tRUBY="$(RUBY)" $(CARGO) build --release --locked --manifest-path "#{File.join(__dir__, 'Cargo.toml')}" --target-dir "$(TARGET)"
    \tcp "$(TARGET)/release/#{library}" #{extension}

    install: all
    \tmkdir -p "$(FOLDER)"
    \tcp #{extension} "$(FOLDER)/#{extension}"

    clean:
    \trm -f #{extension}

    distclean: clean
    \trm -rf "$(TARGET)" Makefile
  MAKEFILE
end
