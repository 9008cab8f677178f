# frozen_string_literal: true

require "amq/pack"
require "amq/protocol/version"
require "amq/protocol/constants"
require "amq/protocol/exceptions"
require "amq/protocol/table"
require "amq/protocol/frame"
require "amq/protocol/method"
require "amq/protocol/methods/connection"
require "amq/protocol/methods/channel"
require "amq/protocol/methods/exchange"
require "amq/protocol/methods/queue"
require "amq/protocol/methods/basic"
require "amq/protocol/methods/tx"
require "amq/protocol/methods/confirm"
require "amq/protocol/channel_close_reasons"
require "amq/protocol/parser"

module AMQ
  module Protocol
    # The class of every method by its {Method.index}.
    METHODS = Method.methods.to_h { |method| [method.index, method] }.freeze

    # @return [Array<Class>] The classes of the protocol.
    def self.classes
      Protocol::Class.classes
    end

    # @return [Array<Method>] The methods of the protocol.
    def self.methods
      Protocol::Method.methods
    end
  end
end
