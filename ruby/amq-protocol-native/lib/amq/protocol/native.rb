# frozen_string_literal: true

require "amq/protocol/constants"
require "amq/protocol/exceptions"
require "amq/protocol/float_32bit"

module AMQ
  module Protocol
    # The extension. What the classes of this library do is defined through it as they are loaded.
    #
    # @private
    module Native
    end
  end
end

# A precompiled gem holds one extension for each version of Ruby, in a folder of its own.
precompiled = "amq_protocol_native/#{RUBY_VERSION[/\A\d+\.\d+/]}"
if Dir.exist?(File.expand_path("../../#{precompiled}", __dir__))
  require "#{precompiled}/amq_protocol_native"
else
  require "amq_protocol_native/amq_protocol_native"
end
