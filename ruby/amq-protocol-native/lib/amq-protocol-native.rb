# frozen_string_literal: true

# Loads the whole codec. Required before a client, it takes the place of the `amq-protocol` gem, also when that one is
# installed and comes first in the load path.
require "amq/protocol"
require "amq/uri"
require "amq/settings"
require "amq/int_allocator"
require "amq-protocol-native/version"
