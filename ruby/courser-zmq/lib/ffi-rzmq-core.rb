# frozen_string_literal: true

# The name under which programs know this interface.
require 'courser-zmq'
