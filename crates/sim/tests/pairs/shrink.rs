//! A failing run with as few operations as deletion alone leaves.

use crate::operation::Operation;

/// Leaves out operations as long as the rest still fails, a run of them at a time and then each by
/// itself.
pub fn shrink(
    mut operations: Vec<Operation>,
    fails: impl Fn(&[Operation]) -> bool,
) -> Vec<Operation> {
    let mut width = operations.len().next_power_of_two() / 2;
    while width > 0 {
        let mut at = 0;
        while at < operations.len() {
            let mut fewer = operations.clone();
            fewer.drain(at..operations.len().min(at + width));
            if fails(&fewer) {
                operations = fewer;
            } else {
                at += width;
            }
        }
        width /= 2;
    }
    operations
}
