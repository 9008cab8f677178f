//! Test vectors as they lie in `spec/vectors/`; its README describes the format.

pub mod by_name;
pub mod exercise;
pub mod values;

use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;

/// All vectors of a file.
pub fn vectors(file: &str) -> Vec<Json> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors").join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = serde_json::Deserializer::from_str(&text);
    reader.disable_recursion_limit();
    let mut document = Json::deserialize(&mut reader).expect("JSON");
    assert_eq!(document["format"], 1, "{file} has a format that this test does not know");
    match document["vectors"].take() {
        Json::Array(vectors) => vectors,
        other => panic!("{file}: no list of vectors but {other}"),
    }
}

/// The bytes of a member that holds them in hexadecimal.
pub fn bytes_at(vector: &Json, member: &str) -> Vec<u8> {
    values::from_hex(vector[member].as_str().unwrap_or_else(|| panic!("{vector} has no {member}")))
}

/// The bytes that writing the vector's value gives.
pub fn written(vector: &Json) -> Vec<u8> {
    bytes_at(vector, if vector["encodes_as"].is_null() { "bytes" } else { "encodes_as" })
}
