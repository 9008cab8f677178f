# frozen_string_literal: true

require "mkmf"

# The floor is to be as low as a compiler can make it.
append_cflags(%w[-O3 -fno-stack-protector])
create_makefile("floor")
