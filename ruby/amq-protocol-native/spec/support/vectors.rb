# frozen_string_literal: true

require "bigdecimal"
require "json"

# The repository's test vectors: bytes and what they mean, as Ruby values.
module Vectors
  FOLDER = File.expand_path("../../../../spec/vectors", __dir__)

  module_function

  def load(name)
    JSON.parse(File.read(File.join(FOLDER, "#{name}.json")), max_nesting: false).fetch("vectors")
  end

  def bytes(hex)
    [hex].pack("H*")
  end

  def string(value)
    (value.is_a?(Hash) ? bytes(value.fetch("hex")) : value.dup).force_encoding(Encoding::BINARY)
  end

  # A tagged value as it is read.
  def value(tagged)
    tag, content = tagged.first
    case tag
    when "S" then string(content)
    when "x" then bytes(content)
    when "F" then table(content)
    when "A" then content.map { |element| value(element) }
    when "T" then Time.at(content)
    when "f" then bytes(content).unpack1("g")
    when "d" then bytes(content).unpack1("G")
    when "D" then BigDecimal("#{content['digits']}e-#{content['scale']}")
    else content
    end
  end

  def table(entries)
    entries.to_h { |key, tagged| [string(key), value(tagged)] }
  end

  # A tagged value as it has to be for the same bytes to be written, if there is one: Ruby's integers are all `l`.
  def writable(tagged)
    tag, content = tagged.first
    case tag
    when "F" then writable_table(content)
    when "A" then content.map { |element| writable(element) }
    when "f" then value(tagged).nan? ? throw(:not_writable) : AMQ::Protocol::Float32Bit.new(value(tagged))
    when "S", "l", "T", "d", "t", "V" then value(tagged)
    when "D" then minimal_decimal(value(tagged), content)
    else throw :not_writable
    end
  end

  def writable_table(entries)
    throw :not_writable if entries.map(&:first).uniq.size < entries.size
    entries.to_h { |key, tagged| [string(key), writable(tagged)] }
  end

  # A decimal is written with as few places as it can have.
  def minimal_decimal(number, content)
    _, digits, _, exponent = number.split
    scale = number.zero? ? 0 : [digits.size - exponent, 0].max
    scale == content["scale"] ? number : throw(:not_writable)
  end

  def field(value)
    case value
    when Array then table(value)
    when Hash, String then string(value)
    else value
    end
  end

  def ruby_class(name)
    path = name.split(".").map { |part| part.split("-").map(&:capitalize).join }
    path.inject(AMQ::Protocol) { |scope, part| scope.const_get(part) }
  end

  # Whether a value that was read is the one of a vector: NaNs are compared by their bits.
  def same?(found, wanted)
    case wanted
    when Float then found.is_a?(Float) && [found].pack("G") == [wanted].pack("G")
    when Array then found.is_a?(Array) && found.size == wanted.size && found.zip(wanted).all? { |a, b| same?(a, b) }
    when Hash
      found.is_a?(Hash) && found.size == wanted.size && wanted.all? { |key, one| found.key?(key) && same?(found[key], one) }
    when String then found.is_a?(String) && found.b == wanted
    else found == wanted && found.class == wanted.class
    end
  end
end
