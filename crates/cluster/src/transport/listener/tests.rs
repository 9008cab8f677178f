use super::*;

#[test]
fn those_who_are_not_let_in_do_not_fill_the_log() {
    let (mut strangers, begun) = (Strangers::default(), Instant::now());
    let mut written = Vec::new();
    for second in 0..25 {
        for _ in 0..100 {
            match strangers.allow(begun + Duration::from_secs(second)) {
                Some(suppressed) => written.push(suppressed),
                None => strangers.suppressed += 1,
            }
        }
    }
    // In each interval some, the first of which tells how many there were else.
    let left = 1000 - u64::from(LINES_MAX);
    let mut expected = vec![None; 3 * LINES_MAX as usize];
    (expected[LINES_MAX as usize], expected[2 * LINES_MAX as usize]) = (Some(left), Some(left));
    assert_eq!(written, expected);
}
