//! What the codec does without a copy it does without an allocation: every row of the comparison
//! that has a lent buffer or borrows, counted.

#[path = "../benches/codec/counting.rs"]
mod counting;
#[path = "../benches/codec/inputs.rs"]
mod inputs;
#[path = "../benches/codec/rows.rs"]
mod rows;

#[test]
fn nothing_is_allocated_where_a_buffer_is_lent_or_the_input_borrowed() {
    let mut counted = 0;
    for mut row in rows::all() {
        if row.variant != "reused" && row.variant != "borrowed" {
            continue;
        }
        // Buffers grow once.
        (row.work)(2);
        let before = counting::allocations();
        (row.work)(100);
        assert_eq!(counting::allocations(), before, "{} ({}) allocates", row.name, row.variant);
        counted += 1;
    }
    assert!(counted > 25, "only {counted} rows were counted");
}

#[test]
fn a_stream_of_publishes_is_parsed_without_an_allocation() {
    let stream = inputs::publish_stream(100);
    let before = counting::allocations();
    let sum = rows::parse_stream(&stream);
    assert_eq!(counting::allocations(), before);
    // Two names, the announced size and the body of each publish.
    assert_eq!(sum, 100 * ("test.exchange".len() + "test.key".len() + 1024 + 1024) as u64);
}
