//! A short fuzz run that needs nothing but a stable compiler: vectors and the fuzzer's corpus,
//! replayed and changed.
//!
//! It runs for a second, or for `COURSER_FUZZ_SECONDS`.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{bytes_at, exercise, vectors};

/// Inputs are kept below this, as the fuzzer keeps its own: long ones are slow and find nothing
/// more.
const INPUT_LEN_MAX: usize = 4096;

fn corpus() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for file in ["frames.json", "methods.json", "headers.json", "tables.json", "malformed.json"] {
        inputs.extend(vectors(file).iter().map(|vector| bytes_at(vector, "bytes")));
    }
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for target in std::fs::read_dir(kept).expect("the corpus").flatten() {
        for input in std::fs::read_dir(target.path()).expect("a target's corpus").flatten() {
            inputs.push(std::fs::read(input.path()).expect("an input"));
        }
    }
    inputs
}

/// xorshift64*: the same inputs on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    const TELLING: [u8; 12] = [0, 1, 2, 0x7f, 0x80, 0xce, 0xff, b'F', b'A', b'S', b'V', b'l'];
    for _ in 0..=random.below(4) {
        let at = random.below(input.len());
        match random.below(7) {
            0 if !input.is_empty() => input[at] = random.next() as u8,
            1 if !input.is_empty() => input[at] = TELLING[random.below(TELLING.len())],
            2 if !input.is_empty() => input[at] ^= 1 << random.below(8),
            3 => input.truncate(at),
            4 => input.insert(at, TELLING[random.below(TELLING.len())]),
            5 => {
                let tail = &other[random.below(other.len() + 1)..];
                input.truncate(at);
                input.extend_from_slice(tail);
            }
            _ => {
                let end = at + random.below(input.len() - at + 1);
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
        }
        input.truncate(INPUT_LEN_MAX);
    }
}

#[test]
fn changed_bytes_give_a_value_or_an_error() {
    let inputs = corpus();
    for input in &inputs {
        exercise::decode_anything(input);
        exercise::decode_encode_decode(input);
    }
    let seconds = std::env::var("COURSER_FUZZ_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    while Instant::now() < end {
        let mut input = inputs[random.below(inputs.len())].clone();
        input.truncate(INPUT_LEN_MAX);
        mutate(&mut input, &inputs[random.below(inputs.len())], &mut random);
        exercise::decode_anything(&input);
        exercise::decode_encode_decode(&input);
    }
}
