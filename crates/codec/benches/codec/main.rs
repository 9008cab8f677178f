//! Times every row of the codec comparison and prints one JSON object a line; `bench/codec/run`
//! sets them beside others.
//!
//! `cargo bench -p courser-codec --bench codec -- [PART OF A ROW'S NAME]`

mod counting;
mod harness;
mod inputs;
mod rows;

fn main() {
    // Cargo passes `--bench`; the first other argument picks rows.
    let wanted =
        std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    for row in rows::all() {
        if row.name.contains(&wanted) {
            harness::report(row);
        }
    }
    if "memcpy".contains(&wanted) || "stream".contains(&wanted) {
        harness::report_stream();
    }
}
