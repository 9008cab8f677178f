# frozen_string_literal: true

require "open3"
require "rbconfig"
require "rubygems"

RSpec.describe "installing" do
  folder = File.expand_path("..", __dir__)
  extconf = File.join(folder, "ext/amq_protocol_native/extconf.rb")

  it "is refused for a Ruby whose objects the extension does not know" do
    script = 'Object.send(:remove_const, :RUBY_VERSION); RUBY_VERSION = "4.0.0"; load ARGV.fetch(0)'
    output, status = Open3.capture2e(RbConfig.ruby, "-e", script, extconf)
    expect(status).not_to be_success
    expect(output).to include("knows Ruby up to 3.4, and this is Ruby 4.0.0")
  end

  it "is allowed by the gem for the versions that extconf.rb allows" do
    requirement = Dir.chdir(folder) { Gem::Specification.load("amq-protocol-native.gemspec") }.required_ruby_version
    newest = File.read(extconf)[/^NEWEST_RUBY = "(.*)"/, 1]
    expect(requirement).to be_satisfied_by(Gem::Version.new("#{newest}.99"))
    next_one = Gem::Version.new("#{newest}.0").bump
    expect(requirement).not_to be_satisfied_by(Gem::Version.new("#{next_one}.0.dev"))
    expect(requirement).not_to be_satisfied_by(Gem::Version.new("4.0.0"))
  end
end
