//! How much is in a JSON text that has yet to be read.

use std::mem;

/// How many values and names a JSON text has: no fewer than these.
pub(crate) fn values(body: &[u8]) -> usize {
    1 + tokens(body).filter(|(_, byte)| matches!(byte, b',' | b':' | b'[' | b'{')).count()
}

/// Bytes of memory that a JSON text takes when it has been read: hardly more than these.
pub(crate) fn read_bytes(text: &[u8]) -> usize {
    let of_token = |token: (u8, u8)| match token {
        // A map takes memory for eleven members at once, a list for four.
        (b'{', b'"') => 640,
        (_, b'[') => 128,
        // A name, or a value in a list that has room for twice as many.
        (_, b',' | b':') => 64,
        _ => 0,
    };
    text.len() + tokens(text).map(of_token).sum::<usize>()
}

/// What stands outside of texts in JSON, byte by byte, each with the one before. Both quotes of a text are there.
fn tokens(text: &[u8]) -> impl Iterator<Item = (u8, u8)> {
    let (mut before, mut is_text, mut is_escaped) = (b' ', false, false);
    text.iter().filter_map(move |byte| {
        let is_shown = match byte {
            _ if is_escaped => {
                is_escaped = false;
                false
            }
            b'\\' => {
                is_escaped = is_text;
                false
            }
            b'"' => {
                is_text = !is_text;
                true
            }
            byte => !is_text && !byte.is_ascii_whitespace(),
        };
        is_shown.then(|| (mem::replace(&mut before, *byte), *byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_takes_when_it_is_read_goes_by_its_values() {
        let text = |row: &str| format!("[{}]", vec![row; 1000].join(", "));
        let queue =
            r#"{"name":"q1","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}"#;
        for (row, least, most) in
            [(queue, 1_000, 1_500), (r#"{"":0}"#, 640, 800), ("[0]", 160, 256)]
        {
            let bytes = read_bytes(text(row).as_bytes()) / 1000;
            assert!((least..most).contains(&bytes), "{row} takes {bytes}");
        }
        let of_text = read_bytes(text(r#""{\"[,:{\"""#).as_bytes()) / 1000;
        assert!(of_text < 100, "{of_text}");
    }
}
