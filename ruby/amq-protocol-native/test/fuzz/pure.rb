# frozen_string_literal: true

require "rubygems"
require "bigdecimal"
require "date"

# Loads Debian's amq-protocol beside this gem: its files are read with another name for its module.
module Pure
  FOLDER = File.join(Gem::Specification.find_by_name("amq-protocol").gem_dir, "lib")
  FILES = %w[endianness pack protocol/constants protocol/exceptions protocol/type_constants protocol/float_32bit
             protocol/table_value_encoder protocol/table_value_decoder protocol/table protocol/frame protocol/client].freeze

  FILES.each do |file|
    path = File.join(FOLDER, "amq", "#{file}.rb")
    source = File.binread(path).force_encoding(Encoding::UTF_8)
    source = source.gsub(/^\s*require.*$/, "").gsub(/\bAMQ\b/, "PureAMQ")
    TOPLEVEL_BINDING.eval(source, path)
  end
end
