# frozen_string_literal: true

module ZMQ
  module Lifecycle
    # What is done about the contexts that are alive when the program ends: their messages get some time to leave.
    #
    # That comes after all `at_exit` handlers, because a handler may be what runs the program (test frameworks and web
    # servers do that) and use sockets that were made before. Ruby runs the handler that was registered last first, and
    # those of such a library have often been registered before this one.
    #
    # @api private
    module Finish
      # Milliseconds beyond what the contexts ask for.
      MARGIN_MS = 500
      # Seconds that other threads may take to end.
      OTHERS_LIMIT = 0.1

      class << self
        # @return [Boolean] whether the program is in its `at_exit` handlers, or in what comes after them
        attr_reader :near

        # @return [Boolean] whether no Ruby code of the program runs any more
        attr_reader :begun

        # The `at_exit` handler.
        def approach
          @near = true
          await_terminations
          arm unless Lifecycle.contexts.empty?
        end

        # Sees to it that {#run} is called at the very end.
        #
        # After the handlers, the main thread ends all others and waits for what they do in an `ensure`. New threads
        # cannot be made then.
        def arm
          return if JRUBY || @finisher&.alive?

          @finisher = at_the_end { run }
          finisher = @finisher
          at_the_end { limit(finisher) }
        rescue ThreadError
          nil # no more threads: then nothing is waited for
        end

        # Closes what no thread can be using, and terminates the contexts that have no other sockets.
        def run
          @begun = true
          contexts = Lifecycle.contexts
          await_other_threads
          contexts.each(&:close_at_exit)
          contexts.each(&:terminate_at_exit)
        end

        # What JRuby calls as a finalizer, which there comes after the handlers and may make threads.
        def run_within_limit
          limit_ms = Finish.limit_ms
          Thread.new { run }.join(limit_ms / 1000.0)
        end

        # @return [Numeric] how long all of it may take
        def limit_ms
          (Lifecycle.contexts.map(&:exit_limit_ms).max || 0) + MARGIN_MS
        end

        # Forgets the threads of the parent process.
        def abandon
          @finisher = nil
        end

        private

        # Contexts that are being terminated are of no use any more, so these are waited for at once.
        def await_terminations
          deadline = Deadline.after_ms(limit_ms)
          Lifecycle.contexts.map(&:terminator).compact.each { |thread| thread.join(deadline.remaining) }
        end

        def at_the_end
          thread = Thread.new do
            sleep
          ensure
            yield
          end
          thread.report_on_exception = false
          thread.name = 'courser-zmq end'
          Thread.pass until thread.stop?
          thread
        end

        def limit(finisher)
          return if finisher.join(limit_ms / 1000.0)

          # An interrupted termination is given up.
          finisher.wakeup until finisher.join(0.01)
        rescue ThreadError
          nil # it has ended just now
        end

        def await_other_threads
          deadline = Deadline.after(OTHERS_LIMIT)
          others = Lifecycle.contexts.flat_map(&:users).uniq - [Thread.main, Thread.current]
          others.each { |thread| thread.join(deadline.remaining) }
        rescue StandardError
          nil # one of them ended by an exception, which is its own
        end
      end

      # Finalizers are run at the end, too.
      LAST = Object.new
      private_constant :LAST

      if JRUBY
        ObjectSpace.define_finalizer(LAST, proc { run_within_limit })
      else
        at_exit { approach }
      end
    end
  end
end
