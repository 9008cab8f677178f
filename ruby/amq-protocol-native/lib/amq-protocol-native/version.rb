# frozen_string_literal: true

module AMQ
  module Protocol
    # Version of this gem. {VERSION} is that of the interface it offers.
    NATIVE_VERSION = "0.1.0"
  end
end
