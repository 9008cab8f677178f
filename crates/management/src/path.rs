//! The path of a request, split before it is decoded: a name may hold a slash (`%2F`), and an empty
//! segment is the empty name, which is that of the default exchange.

/// Segments of a path; more than any route has.
const SEGMENTS_MAX: usize = 16;

/// The decoded segments of a path, without the empty one behind a trailing slash. `None` if an
/// escape in it is none, or if it is longer than any path that is served.
pub(crate) fn split(path: &str) -> Option<Vec<Vec<u8>>> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.bytes().filter(|byte| *byte == b'/').count() >= SEGMENTS_MAX {
        return None;
    }
    path.split('/').map(|segment| decode(segment.as_bytes(), false)).collect()
}

/// A path with its escapes replaced, to be read and searched: its segments can't be told apart.
pub(crate) fn readable(path: &str) -> Option<String> {
    String::from_utf8(decode(path.as_bytes(), false)?).ok()
}

/// Names and values of a query string, in their order.
pub(crate) fn query(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| String::from_utf8(decode(text.as_bytes(), true)?).ok();
            Some((decoded(name)?, decoded(value)?))
        })
        .collect()
}

/// Bytes with their escapes replaced; in a query and a form a plus stands for a space.
fn decode(text: &[u8], plus_is_space: bool) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'%' => {
                let (digits, behind) = rest.split_at_checked(2)?;
                decoded.push(hex(digits[0])? << 4 | hex(digits[1])?);
                rest = behind;
            }
            b'+' if plus_is_space => decoded.push(b' '),
            byte => decoded.push(byte),
        }
    }
    Some(decoded)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// A name as one segment of a path.
pub(crate) fn encode_segment(name: impl AsRef<[u8]>) -> String {
    let text = name.as_ref();
    encode(text, |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte), false)
}

/// A text as forms write it: a plus for a space.
pub(crate) fn encode_form(text: &str) -> String {
    encode(text.as_bytes(), |byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte), true)
}

/// What a text stands for that forms write so, if it is one.
pub(crate) fn decode_form(text: &str) -> Option<String> {
    String::from_utf8(decode(text.as_bytes(), true)?).ok()
}

fn encode(text: &[u8], is_plain: impl Fn(u8) -> bool, plus_is_space: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text {
        match *byte {
            b' ' if plus_is_space => encoded.push('+'),
            byte if is_plain(byte) => encoded.push(char::from(byte)),
            byte => {
                let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
                encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str) -> Option<Vec<String>> {
        let text = |segment: Vec<u8>| String::from_utf8(segment).expect("text");
        Some(split(path)?.into_iter().map(text).collect())
    }

    #[test]
    fn segments_are_split_before_they_are_decoded() {
        let segments = texts("/api/exchanges/%2F//publish").expect("a path");
        assert_eq!(segments, ["api", "exchanges", "/", "", "publish"]);
        assert_eq!(texts("/a/%2f%2D%40/").expect("a path"), ["a", "/-@"]);
        assert_eq!(texts("/a//").expect("a path"), ["a", ""]);
    }

    #[test]
    fn what_is_no_escape_is_refused() {
        assert_eq!(texts("/a/%2"), None);
        assert_eq!(texts("/a/%zz"), None);
        assert_eq!(texts("a"), None);
        assert_eq!(texts(&"/a".repeat(40)), None);
    }

    #[test]
    fn a_query_is_read_in_its_order() {
        let pairs = query("columns=name,a.b&name=x+%2B&use_regex").expect("a query");
        let known: Vec<(&str, &str)> =
            pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(known, [("columns", "name,a.b"), ("name", "x +"), ("use_regex", "")]);
        assert_eq!(query("a=%zz"), None);
    }

    #[test]
    fn what_is_encoded_is_decoded_to_the_same() {
        for text in ["", "a b", "~*#%", "größe/x"] {
            assert_eq!(
                decode(encode_form(text).as_bytes(), true).as_deref(),
                Some(text.as_bytes())
            );
            let segment = encode_segment(text);
            assert_eq!(decode(segment.as_bytes(), false).as_deref(), Some(text.as_bytes()));
        }
        assert_eq!(encode_form("a b~*#"), "a+b%7E%2A%23");
    }
}
