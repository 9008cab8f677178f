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

begin
  # A precompiled gem holds one extension for each version of Ruby.
  require "amq_protocol_native/#{RUBY_VERSION[/\A\d+\.\d+/]}/amq_protocol_native"
rescue LoadError
  require "amq_protocol_native/amq_protocol_native"
end
