# frozen_string_literal: true

module AMQ
  module Protocol
    # Version of the `amq-protocol` gem whose interface this is.
    VERSION = "2.8.0"
  end
end
