# frozen_string_literal: true

# Random arguments: what programs pass, and what they should not.
class Values
  SHORT_LENGTHS = [0, 1, 2, 5, 9, 16, 17, 20, 23, 24, 25, 127, 128, 255].freeze
  LONG_LENGTHS = [0, 1, 5, 16, 17, 20, 23, 24, 25, 127, 128, 255, 256, 1000].freeze
  EDGES = [0, 1, -1, 127, 128, 255, 256, 32_767, 65_535, 65_536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, -(2**62),
           2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64].freeze
  LETTERS = ("a".."z").to_a.freeze

  def initialize(random)
    @random = random
  end

  def pick(list)
    list[@random.rand(list.size)]
  end

  def one_in(count)
    @random.rand(count).zero?
  end

  def rand(...)
    @random.rand(...)
  end

  def text(lengths = SHORT_LENGTHS)
    length = pick(lengths)
    case @random.rand(12)
    when 0 then @random.bytes(length)
    when 1 then ("ä" * (length / 2)).freeze
    when 2 then ("é" * (length / 2)).b
    when 3 then (pick(LETTERS) * length).b
    when 4 then (pick(LETTERS) * length + "tail")[0, length] # shares its bytes
    else (pick(LETTERS) * length).freeze
    end
  end

  # A short string argument: sometimes no String, sometimes too long.
  def short
    case @random.rand(40)
    when 0 then "x" * (256 + @random.rand(10))
    when 1 then nil
    when 2 then pick(LETTERS).to_sym
    when 3 then @random.rand(1000)
    else text
    end
  end

  def integer
    one_in(3) ? pick(EDGES) : @random.rand(1 << pick([3, 8, 16, 31, 33, 62]))
  end

  # An integer argument: sometimes none.
  def number
    case @random.rand(60)
    when 0 then nil
    when 1 then "text"
    when 2 then 2.75
    else integer
    end
  end

  def bit
    pick([true, false, nil, 0, "yes"])
  end

  def key
    one_in(6) ? text([0, 1, 2, 9, 16, 17, 23, 24, 25, 64, 65, 128, 255]) : pick(%w[a bc key x-header content-type]) + @random.rand(20).to_s
  end

  def value(depth = 0, in_array: false)
    case @random.rand(depth > 3 ? 12 : 15)
    when 0, 1, 2, 3 then text(LONG_LENGTHS)
    when 4, 5 then integer
    when 6 then pick([0.0, -0.0, 1.5, -2.25, 1e300, 1e-300, Float::INFINITY, Float::NAN, @random.rand])
    when 7 then true
    when 8 then false
    when 9 then nil
    when 10 then Time.at(@random.rand(1 << 33))
    # Lengths of arrays are wrong in the pure gem with these in them.
    when 11 then in_array ? 7 : pick([:symbol, BigDecimal(@random.rand(1 << 32))])
    when 12 then Array.new(@random.rand(5)) { value(depth + 1, in_array: true) }
    else table(depth + 1, in_array: in_array)
    end
  end

  def table(depth = 0, in_array: false)
    Array.new(@random.rand(6)) { [one_in(4) ? key.to_sym : key, value(depth, in_array: in_array)] }.to_h
  rescue EncodingError
    {}
  end

  # A table argument: sometimes none, sometimes with what cannot be written.
  def table_argument
    case @random.rand(40)
    when 0 then nil
    when 1 then { "key" => Object }
    when 2 then { "k" * 300 => 1 }
    else table
    end
  end

  PROPERTIES = %i[content_type content_encoding correlation_id reply_to expiration message_id type user_id app_id
                  cluster_id].freeze

  def properties
    found = PROPERTIES.select { one_in(3) }.to_h { |name| [name, short] }
    found[:headers] = table_argument if one_in(2)
    found[:delivery_mode] = number if one_in(2)
    found[:priority] = number if one_in(2)
    found[:timestamp] = one_in(15) ? Time.at(1) : number if one_in(3)
    found[:unknown] = pick([nil, 1]) if one_in(30)
    one_in(5) ? found.to_a.shuffle(random: @random).to_h : found
  end
end
