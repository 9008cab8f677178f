//! Damage anywhere in the files: nothing panics, nothing is invented, and a repair makes the
//! journal start again.
//!
//! `COURSER_JOURNAL_SECONDS` goes on through seeds for so long, `COURSER_JOURNAL_SEED` runs one seed.

mod harness;

use courser_journal::testing::Rng;
use harness::{Harm, Outcome, Sample};
use std::{
    env,
    time::{Duration, Instant},
};

/// Seeds that are tried without these.
const SEEDS: u64 = 400;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

fn harm(rng: &mut Rng) -> Harm {
    let file = rng.number() as u8;
    let offset = rng.number() as u32;
    let len_max = 1 << rng.below(16);
    let len = 1 + rng.below(len_max) as u32;
    match rng.below(9) {
        0..4 => Harm::Flip { file, offset, mask: 1 << rng.below(8) },
        4 => Harm::Fill { file, offset, len, byte: rng.number() as u8 },
        5 => Harm::Fill { file, offset, len, byte: 0 },
        6 => Harm::Cut { file, offset },
        7 => Harm::Copy {
            file,
            offset,
            from: rng.number() as u8,
            from_offset: rng.number() as u32,
            len,
        },
        _ => Harm::Remove { file },
    }
}

#[test]
fn damage_anywhere_invents_nothing_and_can_be_repaired() {
    let sample = Sample::new();
    let only = number("COURSER_JOURNAL_SEED");
    let seconds = number("COURSER_JOURNAL_SECONDS").map(Duration::from_secs);
    let begun = Instant::now();
    let (mut seed, mut damaged) = (only.unwrap_or(0), 0);
    while seconds.map_or(seed < SEEDS, |seconds| begun.elapsed() < seconds) || only.is_some() {
        let mut rng = Rng::new(seed);
        let harms: Vec<Harm> = (0..=rng.below(3)).map(|_| harm(&mut rng)).collect();
        println!("COURSER_JOURNAL_SEED={seed}: {harms:?}");
        damaged += u64::from(sample.check(&harms) == Outcome::Damaged);
        seed += 1;
        if only.is_some() {
            return;
        }
    }
    assert!(damaged > seed / 10, "{damaged} of {seed} were damaged");
}

#[test]
fn a_journal_that_lacks_any_two_of_its_files_can_be_repaired() {
    let sample = Sample::new();
    let files: Vec<u8> = ["log", "checkpoint"].iter().flat_map(|kind| sample.files(kind)).collect();
    for (place, &file) in files.iter().enumerate() {
        let alone = std::iter::once(vec![Harm::Remove { file }]);
        // The later one first: the places of others stay.
        let pairs = files[place + 1..]
            .iter()
            .map(|&later| vec![Harm::Remove { file: later }, Harm::Remove { file }]);
        for harms in alone.chain(pairs) {
            println!("{harms:?}");
            assert_ne!(sample.check(&harms), Outcome::Shorter);
        }
    }
}

#[test]
fn a_segment_without_its_header_and_its_end_keeps_what_is_left() {
    Sample::new().check_each_without_header_and_end();
}

#[test]
fn a_repair_writes_nothing_over_what_an_earlier_one_has_set_aside() {
    let sample = Sample::new();
    let (segments, checkpoints) = (sample.files("log"), sample.files("checkpoint"));
    let last = *segments.last().unwrap();
    // A place in the log, a checkpoint, and what is a segment by its name only.
    sample.check_kept(&[Harm::Fill { file: last, offset: 5000, len: 200, byte: 0xff }], &[]);
    sample.check_kept(&[Harm::Flip { file: checkpoints[0], offset: 40, mask: 1 }], &[]);
    sample.check_kept(&[], &["00000000ff000000.log"]);
    // One under the name of another.
    let (file, from) = (segments[0], segments[1]);
    sample.check_kept(&[Harm::Copy { file, offset: 0, from, from_offset: 0, len: u32::MAX }], &[]);
}

#[test]
fn a_page_that_cannot_be_read_costs_what_is_in_it_and_is_repaired() {
    Sample::new().check_each_bad_page();
}

#[test]
fn no_flipped_bit_makes_a_record_disappear_in_silence() {
    let sample = Sample::new();
    let mut rng = Rng::new(number("COURSER_JOURNAL_SEED").unwrap_or(1));
    for _ in 0..300 {
        let (file, offset) = (rng.number() as u8, rng.number() as u32);
        let harm = Harm::Flip { file, offset, mask: 1 << rng.below(8) };
        println!("{harm:?}");
        assert_ne!(sample.check(&[harm]), Outcome::Shorter);
    }
}
