//! The properties of a message that is published, as far as the broker answers for them.

use super::Session;
use super::apart::says_the_way;
use crate::arguments::MAX_EXPIRY_MS;
use crate::fault::Fault;
use courser_codec::{CONTENT_HEADER_FIXED_LEN, DecodeError, Properties, RawProperties};

/// Property flag of `delivery-mode` (AMQP 0-9-1, 4.2.6.1).
const FLAG_DELIVERY_MODE: u16 = 1 << 12;
/// Property flag of `expiration`.
const FLAG_EXPIRATION: u16 = 1 << 8;
/// Property flag of `user-id`.
const FLAG_USER_ID: u16 = 1 << 4;

/// Property flags of those that may say where a message goes: `headers` and `reply-to`.
const FLAGS_OF_THE_WAY: u16 = Properties::HEADERS_FLAG | Properties::REPLY_TO_FLAG;

impl Session {
    /// Properties that the broker answers for are checked; the others are only passed on, but they
    /// have to be well-formed, or they would break the consumers. Returns whether they decide where
    /// the message goes, besides its exchange and routing key.
    pub(super) fn check_properties(
        &mut self,
        properties: RawProperties<'_>,
    ) -> Result<bool, Fault> {
        properties.validate().map_err(malformed)?;
        let most = self.broker.limits.published_header_max_bytes();
        let header_len = CONTENT_HEADER_FIXED_LEN + properties.as_bytes().len();
        if header_len > most {
            return Err(Fault::precondition_failed(format_args!(
                "content header of {header_len} bytes is larger than the most that may be published \
                 ({most} bytes): shorten the headers"
            )));
        }
        if properties.flags() & FLAG_USER_ID != 0 && !self.may_impersonate() {
            let claimed = properties.user_id().map_err(malformed)?.unwrap_or_default();
            let user = &self.client.identity.user;
            if claimed.as_bytes() != user.as_bytes() {
                return Err(Fault::precondition_failed(format_args!(
                    "user_id property set to '{claimed}' but authenticated user was '{user}'"
                )));
            }
        }
        if properties.flags() & FLAG_EXPIRATION != 0 {
            let expiration = properties.expiration().map_err(malformed)?.unwrap_or_default();
            check_expiration(expiration.as_bytes())?;
        }
        Ok(properties.flags() & FLAGS_OF_THE_WAY != 0 && says_the_way(properties)?)
    }

    #[cold]
    fn may_impersonate(&mut self) -> bool {
        self.client.identity.impersonator || self.client.admission.access.may_impersonate()
    }
}

/// No properties, or a delivery mode alone, and nothing behind: there is nothing to look at.
#[inline]
pub(super) fn need_no_check(properties: RawProperties<'_>) -> bool {
    match properties.flags() {
        0 => properties.as_bytes().len() == 2,
        FLAG_DELIVERY_MODE => properties.as_bytes().len() == 3,
        _ => false,
    }
}

/// `delivery-mode` 2.
#[inline]
pub(super) fn is_persistent(properties: RawProperties<'_>) -> Result<bool, Fault> {
    Ok(properties.flags() & FLAG_DELIVERY_MODE != 0
        && properties.delivery_mode().map_err(malformed)? == Some(2))
}

/// `expiration` is a number of milliseconds in decimal digits.
fn check_expiration(expiration: &[u8]) -> Result<(), Fault> {
    let text = String::from_utf8_lossy(expiration);
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let problem = if digits == 0 {
        "no_integer".to_owned()
    } else if digits < unsigned.len() {
        format!("{{leftover_string,\"{}\"}}", &unsigned[digits..])
    } else if text.starts_with('-') && unsigned.bytes().any(|digit| digit != b'0') {
        format!("{{value_negative,{text}}}")
    } else if unsigned
        .parse::<u64>()
        .map_or(true, |milliseconds| milliseconds > MAX_EXPIRY_MS as u64)
    {
        format!("{{value_too_large,{unsigned}}}")
    } else {
        return Ok(());
    };
    Err(Fault::precondition_failed(format_args!("invalid expiration '{text}': {problem}")))
}

pub(super) fn malformed(error: DecodeError) -> Fault {
    Fault::new(502, format_args!("malformed content header: {error}"))
}
