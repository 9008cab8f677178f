# frozen_string_literal: true

require 'mkmf'

abort 'no C compiler' unless try_compile('int main(void) { return 0; }')
append_cflags(%w[-O2 -std=gnu99])
create_makefile('courser_zmq/compiled_loops')
