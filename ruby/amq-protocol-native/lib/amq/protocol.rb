# frozen_string_literal: true

require "amq/protocol/version"
require "amq/protocol/client"
