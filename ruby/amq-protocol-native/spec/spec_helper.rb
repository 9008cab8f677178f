# frozen_string_literal: true

require "amq-protocol-native"

Dir[File.join(__dir__, "support/*.rb")].sort.each { |file| require file }

RSpec.configure do |config|
  config.disable_monkey_patching!
  config.order = :random
  config.warnings = true
end
