//! Each byte of a small data folder is flipped in turn, each page refused, each file cut short and removed,
//! and files are put under wrong names: nothing is lost but what was hit, and it is always told.
//!
//! After each, on copies: what `verify` says, what a start finds, what `repair` does, and what a start
//! finds after it. By default as much of it as some seconds allow; `COURSER_SIM_STRIDE=1` is all of it.

mod harm;

use harm::{Found, Harm, Sample, Told};
use std::env;

/// Looks at one harm: `allowed` messages may be lost by it.
fn check(sample: &Sample, harm: &Harm, allowed: usize) {
    let disk = || sample.harmed(harm);
    let sound = sample.verify(&disk());
    let started = sample.start(&disk());
    let repaired_disk = disk();
    let repaired = sample.repair(&repaired_disk);
    let context = format!("{harm:?} sound {sound} {started:?} {repaired:?}");

    if sound {
        assert_eq!(
            started,
            Found::Started { missing: 0, extra: 0, told: Told::Nothing },
            "{context}"
        );
        assert_eq!(repaired, Some((false, false)), "{context}");
    }
    if let Found::Started { missing, extra, told } = started.clone() {
        // Behind a message that can't be read, others wait: it is not known to be lost.
        let waits = matches!(harm, Harm::Refuse { .. });
        assert!((waits || missing <= allowed) && extra == 0, "{context}");
        // What can't be read is noted when it should be delivered; the rest is said at the start.
        assert!(missing == 0 || !sound, "{context}");
        assert!(
            told == Told::Survived || missing > 0 || sound == (repaired == Some((false, false))),
            "{context}"
        );
    }
    if sample.hits_a_checkpoint(harm) {
        let fallen_back = Found::Started { missing: 0, extra: 0, told: Told::Survived };
        assert_eq!((&started, repaired), (&fallen_back, Some((true, false))), "{context}");
    }
    let Some((_, lost)) = repaired else { panic!("can't be repaired: {context}") };
    assert!(sample.verify(&repaired_disk), "not sound after the repair: {context}");
    match sample.start(&repaired_disk) {
        Found::Started { missing, extra, .. } => {
            assert!(missing <= allowed, "{missing} lost by the repair: {context}");
            assert!(lost || (missing == 0 && extra == 0), "{missing} {extra} untold: {context}");
        }
        Found::Refused(error) => panic!("does not start after the repair: {error}: {context}"),
    }
}

/// Every how many bytes one is flipped.
fn stride(default: usize) -> usize {
    let given = env::var("COURSER_SIM_STRIDE").ok().and_then(|text| text.parse().ok());
    given.unwrap_or(default).max(1)
}

fn flip_bytes(sample: &Sample, default_stride: usize) {
    let stride = stride(default_stride);
    for (file, contents) in sample.files.iter().enumerate() {
        let mut next = file % stride;
        for offset in 0..contents.1.len() {
            // Where nothing was ever written hardly anything can go wrong.
            let is_quiet = contents.1[offset] == 0 && !offset.is_multiple_of(61);
            if offset < next || (is_quiet && stride > 1) {
                continue;
            }
            next = offset + stride;
            check(sample, &Harm::Flip { file, offset }, sample.batch_max);
        }
    }
}

#[test]
fn a_flipped_byte_costs_what_it_is_in_and_is_told() {
    flip_bytes(&Sample::new(), 211);
}

#[test]
fn a_page_that_cannot_be_read_costs_what_is_in_it_and_is_told() {
    let sample = Sample::new();
    for (file, contents) in sample.files.iter().enumerate() {
        for offset in (0..contents.1.len()).step_by(4096) {
            check(&sample, &Harm::Refuse { file, offset }, 6 * sample.batch_max);
        }
    }
}

#[test]
fn a_file_cut_short_costs_what_was_behind_and_is_told() {
    let sample = Sample::new();
    let stride = stride(1009);
    for (file, contents) in sample.files.iter().enumerate() {
        for len in (0..contents.1.len()).step_by(stride) {
            check(&sample, &Harm::Cut { file, len }, sample.messages_in(file));
        }
    }
}

#[test]
fn a_file_removed_costs_what_was_in_it_and_is_told() {
    let sample = Sample::new();
    for file in 0..sample.files.len() {
        check(&sample, &Harm::Remove { file }, sample.messages_in(file));
    }
}

#[test]
fn files_under_the_names_of_others_are_put_back() {
    let sample = Sample::new();
    for one in 0..sample.files.len() {
        for other in 0..one {
            check(&sample, &Harm::Swap { one, other }, 0);
        }
    }
}

#[test]
fn a_file_that_is_no_segment_is_not_taken_for_one() {
    let sample = Sample::new();
    let copy = sample.files[0].1.clone();
    for start in [1_u64, 0x1000, 0x3000, 0x4800, 0x1_0000, 0x7_0000, 0x1000_0000, u64::MAX] {
        if sample.has_segment(start) {
            continue;
        }
        for contents in [Vec::new(), b"not a segment".to_vec(), vec![7; 20_000], copy.clone()] {
            check(&sample, &Harm::Stray { start, contents }, 0);
        }
    }
}
