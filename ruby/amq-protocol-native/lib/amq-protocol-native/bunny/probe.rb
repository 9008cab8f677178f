# frozen_string_literal: true

require "digest"

module AMQ
  module Protocol
    module Bunny
      # Whether the methods that are replaced are, in the Bunny that is loaded, those that the replacements were made for and
      # tried with: by the text of each, without comments and white space. A version says less, as a method may be of another
      # gem that changes Bunny, too.
      #
      # @private
      module Probe
        # What stands in for frames sent and read, and texts of that.
        FRAMES = {
          "Session#send_frameset" => %w[f81d06bf9b4e4462 f22fdc4b55e609f8], # up to 2.23, from 2.24 on
          "Transport#read_next_frame" => %w[7fc3984f8325067d 68f8e5d614930f27], # up to 2.24, from 3.0 on
          "Transport#read_fully" => %w[4067e342f6bbad07],
          "ReaderLoop#run_once" => %w[d58d304f33df29f3 d49e2cbef5fef9cd] # up to 2.23, from 2.24 on
        }.freeze
        # The same of publishes: later ones wait for confirms.
        PUBLISHES = { "Channel#basic_publish" => %w[3bbea78887f34298] }.freeze # up to 2.24

        # @return [Array<String>] the methods that are not known
        def self.unknown(known)
          known.filter_map do |name, digests|
            kind, method = name.split("#")
            "Bunny::#{name}" unless ::Bunny.const_defined?(kind) && digests.include?(digest(::Bunny.const_get(kind), method))
          end
        end

        # @return [String, nil] of the text of a method; nil where there is none
        def self.digest(kind, method)
          file, line = kind.instance_method(method).source_location
          Digest::SHA256.hexdigest(text(File.readlines(file, encoding: "UTF-8").drop(line - 1)))[0, 16]
        rescue NameError, TypeError, SystemCallError, ArgumentError
          nil
        end

        # The text up to the `end` below the first line, as long as the sources are indented.
        def self.text(lines)
          indent = lines.first[/\A\s*/]
          last = lines.index { |line| line.match?(/\A#{indent}end\b/) } || lines.size
          code = lines[..last].map { |line| line.sub(/\A\s*#.*/m, "").sub(/\bend\s+#.*/, "end").gsub(/\s+/, " ").strip }
          code.reject(&:empty?).join("\n")
        end
        private_class_method :digest, :text
      end
    end
  end
end
