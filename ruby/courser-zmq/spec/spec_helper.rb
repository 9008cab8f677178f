# frozen_string_literal: true

$LOAD_PATH.unshift File.expand_path('../lib', __dir__)

require 'ffi-rzmq'
require 'timeout'
require_relative 'support/sockets'
require_relative 'support/programs'

RSpec.configure do |config|
  config.include Sockets
  config.include Programs
  config.order = :random
  config.fail_if_no_examples = true
  config.disable_monkey_patching!
  config.filter_run_excluding(:slow) if ENV['COURSER_FAST']
  config.filter_run_excluding(:mri) unless RUBY_ENGINE == 'ruby'
  config.around { |example| Timeout.timeout(example.metadata.fetch(:limit, Programs::LIMIT * 3)) { example.run } }
end
