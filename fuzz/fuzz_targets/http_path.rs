//! Gives the HTTP API whatever the fuzzer comes upon as a path and a query: what it reads from them, it reads again when
//! that is written with every byte escaped.
#![no_main]

use courser_management::fuzzing::{encode_form, query, resource};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Some((pattern, params)) = resource(text) {
        let mut names = params.iter();
        let mut written = String::new();
        for part in pattern.split('/').skip(1) {
            written.push('/');
            match part.starts_with('{') {
                true => escape(&names.next().expect("a name for each part").1, &mut written),
                false => written.push_str(part),
            }
        }
        // The slash behind a path counts for nothing, an empty name does.
        if written.ends_with('/') {
            written.push('/');
        }
        assert_eq!(resource(&written), Some((pattern, params)), "{text:?} as {written:?}");
    }
    if let Some(pairs) = query(text) {
        let written =
            pairs.iter().map(|(name, value)| encode_form(name) + "=" + &encode_form(value));
        assert_eq!(query(&written.collect::<Vec<_>>().join("&")), Some(pairs));
    }
});

fn escape(bytes: &[u8], into: &mut String) {
    for byte in bytes {
        into.push_str(&format!("%{byte:02x}"));
    }
}
