# frozen_string_literal: true

# What a {ZMQ::Poller} asks a Ruby IO for.
class IO
  # @return [Integer] the number by which the operating system knows this IO
  def posix_fileno
    fileno
  end
end
