# frozen_string_literal: true

# Where this library is.
module ZMQ
  LIBPATH = "#{File.expand_path('..', __dir__)}#{File::SEPARATOR}".freeze
  PATH = "#{File.dirname(LIBPATH)}#{File::SEPARATOR}".freeze

  class << self
    # @return [String] the release of ffi-rzmq whose interface this is
    def version
      VERSION
    end

    # @return [String] the folder of this library, joined with `args`; with a block, what the block returned, run with
    #   that folder in front of the load path
    def libpath(*args, &block)
      path_below(LIBPATH, args, &block)
    end

    # @return [String] the folder above {libpath}, joined with `args`; with a block as there
    def path(*args, &block)
      path_below(PATH, args, &block)
    end

    private

    def path_below(base, parts)
      path = parts.empty? ? base : File.join(base, parts.flatten)
      return path unless block_given?

      begin
        $LOAD_PATH.unshift(base)
        yield
      ensure
        $LOAD_PATH.shift
      end
    end
  end
end
