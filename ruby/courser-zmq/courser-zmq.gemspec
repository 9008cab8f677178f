# frozen_string_literal: true

require_relative 'lib/courser_zmq/version'

Gem::Specification.new do |spec|
  spec.name = 'courser-zmq'
  spec.version = ZMQ::GEM_VERSION
  spec.authors = ['The Courser authors']
  spec.summary = 'ZeroMQ for Ruby through FFI, a drop-in for ffi-rzmq'
  spec.description = 'Bindings to libzmq for MRI and JRuby: the interface of ffi-rzmq 2.0, faster and without its ' \
                     'hangs, and one with blocks, exceptions and timeouts beside it.'
  spec.license = 'MIT'
  spec.required_ruby_version = '>= 3.0'
  spec.files = Dir['lib/**/*.rb', 'ext/**/*', 'examples/*.rb', 'README.md']
  spec.extensions = ['ext/Rakefile'] # compiles what it can, and never fails
  spec.require_paths = ['lib']
  spec.add_dependency 'ffi', '~> 1.15'
  spec.add_dependency 'rake', '>= 12' # runs ext/Rakefile; every Ruby brings it
  spec.metadata['rubygems_mfa_required'] = 'true'
end
