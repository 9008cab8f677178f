# frozen_string_literal: true

# Measures one gem in this process: ruby measure.rb pure|native|floor [SECONDS] [PATTERN], results as JSON on stdout. `floor`
# is the extension in the variable FLOOR, which does only what no encoder can do without.
#
# Both are loaded as a program would load them; which one is loaded is checked. A figure is the CPU time of a call, the
# collector's work included, less that of the loop around it: the least of several rounds. Objects are counted apart.

require "json"

gem_name, seconds, pattern = ARGV
abort "usage: measure.rb pure|native|floor [SECONDS] [PATTERN]" unless %w[pure native floor].include?(gem_name)
seconds = (seconds || 0.25).to_f

if gem_name != "pure"
  $LOAD_PATH.unshift(File.expand_path("../amq-protocol-native/lib", __dir__))
  require "amq-protocol-native"
else
  # A folder that has another release than the one that is installed.
  $LOAD_PATH.unshift(File.expand_path(ENV["PURE_LIB"])) if ENV["PURE_LIB"]
  require "bigdecimal"
  require "amq/protocol"
end
is_native = AMQ::Protocol.const_defined?(:NATIVE_VERSION)
abort "the #{gem_name} gem was asked for, the other one is loaded" unless is_native == (gem_name != "pure")

require_relative "cases"
eval(Cases::SETUP) # rubocop:disable Security/Eval

if gem_name == "floor"
  require ENV.fetch("FLOOR")
  P.const_set(:Floor, Floor)
end

# The parameters of every method's encode, and bytes for every decode. The native gem takes them from the pure one's
# names, which are kept in a file beside this one: a native method has no parameter names.
def method_cases
  list = JSON.parse(File.read(File.join(__dir__, "methods.json")))
  list.flat_map do |name, directions|
    path = "P::#{directions['class']}"
    cases = []
    if directions["encode"] && name != "basic.publish"
      arguments = directions["encode"].map { |parameter| Cases.argument(parameter) }
      cases << Cases::Case.new(name: "#{name} encode", code: "#{path}.encode(#{arguments.join(', ')})", group: "encode")
    end
    if directions["bytes"]
      bytes = "[#{directions['bytes'].dump}].pack('H*')"
      constant = "BYTES_#{name.upcase.tr('.-', '__')}"
      Object.const_set(constant, eval(bytes)) # rubocop:disable Security/Eval
      cases << Cases::Case.new(name: "#{name} decode", code: "#{path}.decode(#{constant})", group: "decode")
    end
    cases
  end
end

def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
end

def loop_over(code)
  # The work is written into the loop: a block would cost as much as some of what is measured.
  eval("lambda { |n| i = 0; while i < n; #{code}; i += 1; end }") # rubocop:disable Security/Eval
end

def calls_in(body, nanoseconds)
  n = 16
  loop do
    start = cpu
    body.call(n)
    took = cpu - start
    return [(n * nanoseconds / took.to_f).ceil, 1].max if took > nanoseconds / 20

    n *= 4
  end
end

def least(body, seconds, rounds = 5)
  n = calls_in(body, seconds * 1e9 / rounds)
  (1..rounds).map do
    GC.start
    start = cpu
    body.call(n)
    (cpu - start).to_f / n
  end.min
end

def objects(body)
  body.call(100)
  GC.disable
  before = GC.stat(:total_allocated_objects)
  body.call(1000)
  ((GC.stat(:total_allocated_objects) - before) / 1000.0).round(2)
ensure
  GC.enable
end

cases = case gem_name
        when "floor" then Cases::FLOOR
        when "native" then Cases::HOT + Cases::NATIVE + method_cases
        else Cases::HOT + method_cases
        end
cases = cases.select { |one| one.name.match?(pattern) } if pattern
empty = least(loop_over("nil"), seconds)
results = cases.to_h do |one|
  body = loop_over(one.code)
  [one.name, { ns: (least(body, seconds) - empty).round(1), objects: objects(body) }]
end
jit = (defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?) || (defined?(RubyVM::MJIT) && RubyVM::MJIT.enabled?) || false
puts JSON.generate(
  gem: gem_name, version: is_native ? AMQ::Protocol::NATIVE_VERSION : AMQ::Protocol::VERSION,
  ruby: RUBY_DESCRIPTION, jit: jit, loop_ns: empty.round(2), results: results
)
