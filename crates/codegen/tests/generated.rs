//! The committed sources are what the description says.

use courser_codegen::{TARGETS, load, repository_root};

#[test]
fn the_committed_sources_are_what_the_description_says() {
    let root = repository_root();
    let protocol = load(&root).expect("the description");
    for target in TARGETS {
        for file in (target.render)(&protocol).expect("rendered sources") {
            let committed = std::fs::read_to_string(root.join(&file.path)).unwrap_or_default();
            let hint = "run `cargo run -p courser-codegen`";
            assert!(committed == file.text, "{} is out of date: {hint}", file.path.display());
        }
    }
}
