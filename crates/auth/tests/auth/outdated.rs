//! Patterns that earlier versions have taken, and that are refused now.

use courser_auth::{Pattern, PatternError, Permission, TopicPermission};

#[test]
fn what_an_earlier_version_may_have_taken_is_told_from_mistakes() {
    let deep = format!("{}q{}", "(".repeat(21), ")".repeat(21));
    let long = "q".repeat(5000);
    for text in [
        "^(?#mine)u1",
        "^(a)?(?(1)b|c)",
        r"^(?<part>q)(?P>part)",
        r"^((q)\2)\1",
        r"^(q)\1\1\1\1\1\1\1",
        r"(q)(?<=\1)",
        r"(q)\g<1>",
        "(?:a{300}){300}",
        r"\p{Any}",
        "(?i)[!-\u{10ffff}]",
        &deep,
    ] {
        assert!(Pattern::new(text).is_err(), "{text}");
        assert!(Pattern::is_outdated(text), "{text}");
    }
    // Within the bounds, beyond those of each version, not supported by any, or no expression at all.
    let large = r"\w{200}|".repeat(50);
    for text in [
        "^u1", r"^(?!a)b", "[a&&b]", r"\h", "(?x)a", "a**", "(a", "a{2,1}", "(?<=a*)b", &long,
        &large,
    ] {
        assert!(!Pattern::is_outdated(text), "{text}");
    }
    assert_eq!(Pattern::new(&long).err(), Some(PatternError::Length));
    assert!(matches!(Pattern::new(&large), Err(PatternError::TooLarge(_))));
}

#[test]
fn a_permission_with_a_mistake_beside_is_not_outdated() {
    let permission = |configure: &str, write: &str| Permission {
        configure: configure.to_owned(),
        write: write.to_owned(),
        read: String::new(),
    };
    assert!(permission("^u", "^(?#mine)u").is_outdated());
    assert!(!permission("(u", "^(?#mine)u").is_outdated());
    assert!(!permission("^u", "^v").is_outdated());
    let topic = |write: &str| TopicPermission { write: write.to_owned(), read: ".*".to_owned() };
    assert!(topic("^{username}(?#mine)").is_outdated());
    assert!(!topic("^{username}").is_outdated());
    assert!(!topic("^{username}(").is_outdated());
}
