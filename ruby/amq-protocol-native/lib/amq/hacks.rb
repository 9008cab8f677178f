# frozen_string_literal: true

require "amq/pack"
