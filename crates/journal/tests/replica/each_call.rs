//! Every operation of a copy's disk fails once, while a tail is cut, votes are saved and a checkpoint is made.

use crate::pair::{Pair, Step};

/// One copy with a tail that the other one, which leads now, contradicts.
fn contradicted() -> Pair {
    let mut pair = Pair::new(3);
    let append = |len| Step::Append { lens: vec![len; 2], fill: 7 };
    for step in [
        Step::Lead(0),
        append(300),
        Step::Place,
        Step::Replicate(5),
        Step::Flush(0),
        Step::Flush(1),
        Step::Commit(0),
        append(5000),
        Step::Place,
        append(5000),
        Step::Place,
        Step::Flush(0),
        Step::Lead(1),
        append(9000),
        Step::Place,
        append(100),
        Step::Place,
        Step::Flush(1),
    ] {
        pair.run(step);
    }
    assert!(pair.copies[0].last().term < pair.copies[1].last().term);
    pair
}

#[test]
fn each_operation_of_the_disk_may_fail_while_a_tail_is_cut() {
    for kind in 0..3 {
        for after in 0.. {
            assert!(after < 500, "it does not come to an end");
            let mut pair = contradicted();
            for step in [
                Step::Fault { who: 0, after, kind },
                Step::Replicate(2),
                Step::Vote(0),
                Step::Flush(0),
                Step::Lead(1),
                Step::Replicate(9),
                Step::Vote(0),
                Step::Flush(0),
                Step::Flush(1),
                Step::Commit(0),
                Step::Checkpoint { who: 0, back: 0 },
                Step::Checkpoint { who: 0, back: 0 },
                Step::Maintain(0),
            ] {
                pair.run(step);
            }
            let is_untouched = pair.copies[0].crashes == 0;
            pair.copies[0].crash(true);
            if is_untouched {
                assert_eq!(pair.copies[0].last(), pair.copies[1].last(), "nothing went wrong");
                break;
            }
        }
    }
}
