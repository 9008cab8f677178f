//! Gives the parser of PROXY headers whatever the fuzzer comes upon: what it decides, it must decide in good time, and
//! not decide otherwise when more comes.
#![no_main]

use courser_connection::{PROXY_HEADER_BYTES_MAX, ProxyHeader};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let decided = ProxyHeader::parse(input);
    if input.len() >= PROXY_HEADER_BYTES_MAX {
        assert_ne!(decided, Ok(None), "undecided beyond the longest header");
    }
    if let Ok(Some(header)) = decided {
        assert!(header.length <= input.len().min(PROXY_HEADER_BYTES_MAX));
        assert_eq!(ProxyHeader::parse(&input[..header.length]), decided);
        assert_eq!(ProxyHeader::parse(&input[..header.length - 1]), Ok(None));
    }
    let half = ProxyHeader::parse(&input[..input.len() / 2]);
    if half != Ok(None) {
        assert_eq!(half, decided);
    }
});
