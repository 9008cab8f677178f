# frozen_string_literal: true

module ZMQ
  # What has to be done in an `ensure`, whatever else comes meanwhile.
  #
  # @api private
  module Cleanup
    # What other threads raise has to wait. One Hash for all calls is quicker than a new one for each.
    ALL_LATER = { Object => :never }.freeze
    # How often it is tried.
    TRIES = 3

    # Runs the block, and again where that was interrupted: a handler of a signal (Ctrl-C pressed twice) may raise at
    # any time. What other threads raise waits for its end. Doing it twice has to come to the same as once.
    def self.complete(tries = TRIES, &block)
      done = false
      Thread.handle_interrupt(ALL_LATER) do
        yield
        done = true
      end
    ensure
      complete(tries - 1, &block) unless done || tries == 1
    end
  end
end
