# In place of Bundler for Bunny's specs: Debian's packages and the checkout's `vendor` are on the load path already.
module Bundler
  def self.require(*)
    %w[rspec rspec/retry sorted_set].each { |file| TOPLEVEL_BINDING.receiver.send(:require, file) }
  end
end
