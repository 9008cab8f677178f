//! Names of the description (`consumer-tag`) in the spellings that languages want.

/// `consumer_tag`
#[must_use]
pub fn snake(name: &str) -> String {
    name.replace('-', "_")
}

/// `CONSUMER_TAG`
#[must_use]
pub fn screaming(name: &str) -> String {
    snake(name).to_uppercase()
}

/// `ConsumerTag`
#[must_use]
pub fn pascal(name: &str) -> String {
    name.split('-').map(capitalized).collect()
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
