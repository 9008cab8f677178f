# frozen_string_literal: true

require_relative "lib/amq-protocol-native/version"

Gem::Specification.new do |spec|
  spec.name = "amq-protocol-native"
  spec.version = AMQ::Protocol::NATIVE_VERSION
  spec.authors = ["The Courser authors"]
  spec.summary = "AMQP 0-9-1 codec in Rust, a drop-in for amq-protocol"
  spec.description = "The interface of the amq-protocol gem, on which Bunny and others are built, over a codec in Rust: " \
                     "several times faster, with a fraction of the objects."
  spec.license = "MIT"
  # The newest is that of extconf.rb.
  spec.required_ruby_version = [">= 3.0", "< 3.5.dev"]
  spec.files = Dir.chdir(__dir__) { Dir["lib/**/*.rb", "sig/**/*.rbs", "README.md", "LICENSE"] }
  if (platform = ENV.fetch("GEM_PLATFORM", nil))
    # Precompiled: an extension for each version of Ruby lies in a folder of its own.
    extensions = Dir.chdir(__dir__) { Dir["lib/amq_protocol_native/*/*.{so,bundle}"] }
    versions = extensions.map { |file| file.split("/")[2] }.sort_by { |version| Gem::Version.new(version) }
    raise "no extension was compiled for #{platform}" if versions.empty?

    spec.platform = platform
    spec.files += extensions
    spec.required_ruby_version = [">= #{versions.first}", "< #{Gem::Version.new("#{versions.last}.0").bump}.dev"]
  else
    spec.files += Dir.chdir(__dir__) do
      Dir["ext/amq_protocol_native/{src,codec/src}/**/*.rs", "ext/amq_protocol_native/*.{rb,rs,toml,lock}",
          "ext/amq_protocol_native/codec/Cargo.toml"]
    end
    spec.extensions = ["ext/amq_protocol_native/extconf.rb"]
  end
  spec.require_paths = ["lib"]
  # What a decimal is read as; no default gem any more since Ruby 3.4.
  spec.add_dependency "bigdecimal"
  spec.metadata["rubygems_mfa_required"] = "true"
end
