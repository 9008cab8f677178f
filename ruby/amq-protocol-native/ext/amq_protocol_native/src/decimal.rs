//! BigDecimal, which is a library of its own: it is there when a program has loaded it, or when one is to be read.

use courser_codec::Decimal;

use crate::ruby::api::{self, Value};
use crate::ruby::error::{Raise, Result};
use crate::ruby::layout;
use crate::ruby::value::{binary, call, class_named, intern, low_64_bits};

/// `BigDecimal`, if it is loaded.
pub(crate) fn class() -> Option<Value> {
    let object = class_named(c"Object");
    let name = intern("BigDecimal");
    // SAFETY: `Object` is a module, and the constant is only read when it is there.
    unsafe { (api::rb_const_defined(object, name) != 0).then(|| api::rb_const_get(object, name)) }
}

/// The number on the wire: as few decimal places as it can have, and its digits in 32 bits.
///
/// Negative ones are written in two's complement, as the pure gem writes them.
pub(crate) fn to_wire(number: Value) -> Result<Decimal> {
    // Sign, digits of the fraction, base 10, exponent: 0.DIGITS * 10 ** EXPONENT.
    let split = call(number, "split", &[]);
    if layout::kind(split) != layout::Kind::Array {
        return Err(out_of_range());
    }
    // SAFETY: `split` gives an array of four.
    let (sign, text, exponent) = unsafe {
        (api::rb_ary_entry(split, 0), api::rb_ary_entry(split, 1), api::rb_ary_entry(split, 3))
    };
    if !layout::is_string(text) {
        return Err(out_of_range());
    }
    let exponent = low_64_bits(exponent) as i64;
    let negative = (low_64_bits(sign) as i64) < 0;
    // SAFETY: no Ruby code runs while the digits are read.
    let parsed = parse(unsafe { layout::bytes(text) }, exponent);
    let Some((digits, scale)) = parsed else { return Err(out_of_range()) };
    match (negative, i32::try_from(digits)) {
        (false, _) => Ok(Decimal { scale, digits }),
        (true, Ok(magnitude)) => Ok(Decimal { scale, digits: magnitude.wrapping_neg() as u32 }),
        (true, Err(_)) => Err(out_of_range()),
    }
}

/// Digits and decimal places of `0.TEXT * 10 ** exponent`, if 32 and 8 bits are enough for them.
fn parse(text: &[u8], exponent: i64) -> Option<(u32, u8)> {
    if text == b"0" {
        return Some((0, 0));
    }
    let places = i64::try_from(text.len()).ok()?.checked_sub(exponent)?;
    let mut digits = 0_u32;
    for byte in text {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        digits = digits.checked_mul(10)?.checked_add(digit)?;
    }
    if places >= 0 {
        return Some((digits, u8::try_from(places).ok()?));
    }
    let factor = 10_u32.checked_pow(u32::try_from(-places).ok()?)?;
    Some((digits.checked_mul(factor)?, 0))
}

#[cold]
fn out_of_range() -> Raise {
    Raise::argument(
        "a BigDecimal that has no place in 32 bits of digits and at most 255 decimal places",
    )
}

/// The number as a BigDecimal; loads the library when it is not.
pub(crate) fn from_wire(number: Decimal) -> Value {
    // SAFETY: raises when the library is not installed.
    unsafe { api::rb_require(c"bigdecimal".as_ptr()) };
    // At most three digits of scale, and ten of the number.
    let mut text = [0_u8; 24];
    let mut len = 0;
    for byte in Digits::of(number.digits).chain(*b"E-").chain(Digits::of(u32::from(number.scale))) {
        text[len] = byte;
        len += 1;
    }
    call(class_named(c"Kernel"), "BigDecimal", &[binary(&text[..len])])
}

/// The decimal digits of a number, the highest first.
struct Digits {
    number: u32,
    unit: u32,
}

impl Digits {
    fn of(number: u32) -> Self {
        Self { number, unit: 10_u32.pow(number.checked_ilog10().unwrap_or(0)) }
    }
}

impl Iterator for Digits {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.unit == 0 {
            return None;
        }
        let digit = self.number / self.unit % 10;
        self.unit /= 10;
        Some(b'0' + digit as u8)
    }
}
