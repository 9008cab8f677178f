//! Harms the files of a journal in whatever way the fuzzer comes upon, and starts and repairs it.
#![no_main]

use courser_fuzz::journal::{Harm, Sample};
use std::sync::LazyLock;

static SAMPLE: LazyLock<Sample> = LazyLock::new(Sample::new);

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let harms: Vec<Harm> = input.chunks_exact(16).take(8).map(harm).collect();
    SAMPLE.check(&harms);
});

fn harm(bytes: &[u8]) -> Harm {
    let number = |at: usize| {
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    let (file, offset, len) = (bytes[1], number(2), number(6) % 40_000);
    match bytes[0] % 5 {
        0 => Harm::Flip { file, offset, mask: bytes[6] },
        1 => Harm::Fill { file, offset, len, byte: bytes[10] },
        2 => Harm::Cut { file, offset },
        3 => Harm::Copy { file, offset, from: bytes[10], from_offset: number(11), len },
        _ => Harm::Remove { file },
    }
}
