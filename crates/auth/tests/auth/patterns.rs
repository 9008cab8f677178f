//! Patterns of names.

use courser_auth::{PATTERN_BYTES_MAX, Pattern, PatternError};
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn matches(pattern: &str, name: &str) -> bool {
    Pattern::new(pattern).expect(pattern).matches(name.as_bytes())
}

#[test]
fn a_pattern_is_searched_anywhere_in_the_name() {
    assert!(matches("orders", "new-orders-2"));
    assert!(!matches("^orders", "new-orders"));
    assert!(matches(".*", ""));
    assert!(matches("^amq\\.gen.*", "amq.gen-qHAV5kANrhsVz_5wDp6qIw"));
    assert!(matches("^(?:a|b)$", "b"));
    assert!(matches("(?i)^ORDERS$", "orders"));
}

#[test]
fn an_empty_pattern_stands_for_nothing() {
    for pattern in ["", "^$"] {
        assert!(!matches(pattern, "q"));
        assert!(!matches(pattern, "amq.default"));
        assert!(matches(pattern, ""));
    }
}

#[test]
fn what_backtracks_is_understood() {
    assert!(matches(r"^(?!secret).*", "orders"));
    assert!(!matches(r"^(?!secret).*", "secret.orders"));
    assert!(matches(r"^(\w+)-\1$", "ab-ab"));
    assert!(!matches(r"^(\w+)-\1$", "ab-cd"));
    assert!(matches(r"(?<=^eu\.)orders", "eu.orders"));
}

#[test]
fn a_pattern_for_a_list_is_given_up_sooner() {
    let pattern = r"^(\w*)\w*-\1$";
    let (long, short) = (format!("{}-a", "a".repeat(80)), b"aa-a");
    let (patient, of_list) = (Pattern::new(pattern), Pattern::of_list(pattern));
    let (patient, of_list) = (patient.expect("a pattern"), of_list.expect("a pattern"));
    assert!(patient.matches(long.as_bytes()) && patient.matches(short));
    assert!(!of_list.matches(long.as_bytes()) && of_list.matches(short));
    let usual = Pattern::of_list("^(?!secret).*").expect("a pattern");
    assert!(usual.matches(&[b'o'; 255]) && !usual.matches(b"secret.orders"));
}

#[test]
fn a_possessive_quantifier_gives_nothing_back() {
    assert!(!matches("^a++ab$", "aaab"));
    assert!(!matches("^x*+x$", "xx"));
    assert!(matches("^a++b$", "aab"));
    assert!(!matches("^a{1,3}+a$", "aaa"));
}

#[test]
fn names_are_bytes_and_classes_are_ascii() {
    assert!(!matches(r"^\d+$", "١٢"));
    assert!(!matches(r"^\w+$", "é"));
    assert!(matches("^é.*ß$", "éclair-ß"));
    assert!(matches("^[éß]+$", "éß"));
    assert!(!matches(r"^é\w$", "éé"));
    assert!(matches(r"^[éx]\w$", "éé"), "its classes are Unicode's, since one of them has to be");
    // Likewise where it takes the engine that backtracks.
    assert!(!matches(r"^(?!x)\w+$", "é") && !matches(r"^(?!x)\d$", "١"));
    assert!(matches("^(?!x)é.*ß$", "éclair-ß") && matches("^(?!x)[éß]+$", "éß"));
    for text in ["^a.*", "^(?!x)a..$"] {
        let any = Pattern::new(text).expect("a pattern");
        assert!(any.matches(b"a\xff\xfe"), "{text}");
    }
}

#[test]
fn what_pcre_reads_otherwise_is_refused() {
    let refused = [
        r"a[[]b",
        "[a&&b]",
        "[a--b]",
        "[a~~b]",
        r"\<a\>",
        r"^\h+$",
        r"^\v$",
        r"\Qa.b\E",
        "a(?R)?b",
        "(?x) a b",
        "(?xi)a",
        "[a-z",
        "(",
        "a\\",
        "*",
        r"\b{start}a",
        "a{,2}",
        "(?i-x:a)",
    ];
    for pattern in refused {
        assert!(Pattern::new(pattern).is_err(), "{pattern} was accepted");
    }
    for pattern in ["[[:alpha:]]+", "[]a]", "[^]a]", r"\[", "a{2}", "a{2,}?", "(?<n>a)", "(?i:a)b"]
    {
        assert!(Pattern::new(pattern).is_ok(), "{pattern} was refused");
    }
}

#[test]
fn a_refusal_says_what_to_write_instead() {
    let error = Pattern::new("x[a&&b]").expect_err("it is refused");
    let text = "'&&' at byte 3 is not supported: escape it with a backslash";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_look_behind_goes_back_whole_characters() {
    for (text, refused, permitted) in [
        ("^.*(?<!é)$", "café", "cafe"),
        ("^.*(?<!-privé)$", "orders-privé", "orders-prive"),
        (r"^.*(?<!\x{e9})$", "café", "cafe"),
        ("^.*(?<![äöü])$", "menü", "menu"),
    ] {
        let pattern = Pattern::new(text).expect(text);
        assert!(!pattern.matches(refused.as_bytes()), "{text} {refused}");
        assert!(pattern.matches(permitted.as_bytes()), "{text} {permitted}");
    }
    assert!(matches("(?<=é)x", "éx"));
    assert!(matches(r"^(?!x)é\w$", "éé"), "its classes are Unicode's");
}

#[test]
fn a_name_that_is_no_text_is_looked_at_by_every_pattern() {
    let texts =
        ["^.*(?<![äöü])$", "^.(?=[é])", r"^(?!x).*\p{L}(?!y)", r"^.*(?=\b[é])", r"^(?!x).*\b$"];
    for text in texts {
        let pattern = Pattern::new(text).expect(text);
        for byte in [0x80, 0xc3, 0xe2, 0xf0, 0xff] {
            for name in [&[byte][..], &[b'a', byte], &[byte, b'a'], &[b'a', byte, b'a']] {
                let _ = pattern.matches(name);
            }
        }
    }
    let none_of_these = Pattern::new("^(?!.*(secret|[éÉ]cole))").expect("a pattern");
    assert!(!none_of_these.matches(b"\xffsecret"));
}

#[test]
fn a_pattern_has_a_bounded_size() {
    let long = "a".repeat(PATTERN_BYTES_MAX + 1);
    assert_eq!(Pattern::new(&long).err(), Some(PatternError::Length));
    assert!(Pattern::new("(?:(?:a{1000}){1000}){1000}").is_err());
    assert!(Pattern::new(r"(?=b)(?:(?:a{1000}){1000}){1000}").is_err());
}

/// All that may be done between two steps back is done for each of them: parts that are left to the engine that does not
/// backtrack, which looks at the whole name, and as many look-arounds as there are.
#[test]
fn a_pattern_that_backtracks_has_a_bound_to_its_parts_and_to_their_number() {
    let looks = |number: usize| format!("^{}[a-z]+$", "(?!.*x.{9}y)".repeat(number));
    let large = ["(?=(?:a*b?){1400}[^ab])x", r"([ab])(?:(?=(?:[ab]?){800}[^ab])|[ab])*\1"];
    for large in [large[0], large[1], &looks(20), &"(?=.*a.{99}b)".repeat(200)] {
        assert!(Pattern::new(large).is_err() && Pattern::of_list(large).is_err(), "{large}");
        assert!(Pattern::kept(large).is_ok(), "{large} was accepted once");
    }
    let names: Vec<String> = (0..40).map(|nth| format!("orders\\.europe\\.{nth}")).collect();
    let none_of_them = format!("^(?!(?:{})$).*", names.join("|"));
    let length = r"^(?!amq\.)(?!.*orders\.africa)[\w.-]{1,255}$";
    for usual in [length, &none_of_them, &looks(6)] {
        let pattern = Pattern::of_list(usual).expect("room enough");
        assert_eq!(pattern.matches(b"orders.europe"), !usual.starts_with("^(?!.*x"), "{usual}");
        assert!(Pattern::new(usual).is_ok(), "{usual}");
    }
    assert!(!Pattern::new(&none_of_them).expect("room").matches(b"orders.europe.17"));
}

#[test]
fn the_cost_of_a_policys_pattern_is_the_size_that_it_has_room_in() {
    let names: Vec<String> = (100..200).map(|nth| format!("orders\\.europe\\.{nth}")).collect();
    let hundred_names = format!("^(?:{})$", names.join("|"));
    let uuid = "^reply\\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
    let costs = [
        (".*", 0),
        ("^$", 0),
        (r"^orders\.", 1),
        (r"^(prod|test)\.[a-z]+\.v\d$", 1),
        (uuid, 4),
        (&hundred_names, 128),
        // Those that backtrack count as the largest that do not.
        (r"^(?!amq\.)", 256),
        ("^a++b$", 256),
        ("(?:a*b?){1400}[^ab]", 256),
    ];
    for (text, kib) in costs {
        let pattern = Pattern::of_policy(text).expect(text);
        assert_eq!(pattern.cost(), kib << 10, "{text}");
    }
    assert!(Pattern::of_policy("(?:a*b?){1500}[^ab]").is_err());
}

#[test]
fn a_match_that_takes_too_long_is_none() {
    let pattern = Pattern::new(r"^(?=(?:a+)+$)((?:a|aa)+)+\1$").expect("a pattern");
    let before = Instant::now();
    assert!(!pattern.matches(format!("{}b", "a".repeat(250)).as_bytes()));
    // Unbounded it would not end in this universe.
    assert!(before.elapsed() < Duration::from_secs(20));
}

#[test]
fn nested_groups_do_not_exhaust_the_stack() {
    for open in ["(", "(?:", "(?=", "[", "(?!", "\\(", "(?>"] {
        let close = if open == "[" { "]" } else { ")" };
        let depth = 1000;
        let pattern = format!("{}a{}", open.repeat(depth), close.repeat(depth));
        // Whatever comes of it, it comes back.
        drop(Pattern::new(&pattern).map(|pattern| pattern.matches(b"a")));
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_pattern_panic(text in "\\PC{0,40}", name in "\\PC{0,40}") {
        if let Ok(pattern) = Pattern::new(&text) {
            pattern.matches(name.as_bytes());
        }
    }

    #[test]
    fn no_syntax_makes_a_pattern_panic(
        text in r"([a-c]|[(){}|?*+.^$\[\]\\-]|\(\?[:=!<>imsxU]|\\[1-9bdwsAzZGKRX]|\{1,3\}){0,24}",
        name in "[a-c]{0,12}",
    ) {
        if let Ok(pattern) = Pattern::new(&text) {
            pattern.matches(name.as_bytes());
        }
    }

    #[test]
    fn an_escaped_name_matches_itself_alone(
        name in "[a-zA-Z0-9.*+?()|^$\\[\\]{}\\\\/_ -]{1,30}",
        other in "[a-zA-Z0-9.]{1,30}",
    ) {
        let pattern = Pattern::new(&format!("^{}$", regex_escape(&name))).expect("a pattern");
        prop_assert!(pattern.matches(name.as_bytes()));
        prop_assert_eq!(pattern.matches(other.as_bytes()), name == other);
    }
}

fn regex_escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if !c.is_ascii_alphanumeric() && c != '/' && c != '_' && c != ' ' {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Look-behind of any length has only one meaning that it could have.
#[test]
fn what_pcre_refuses_is_refused() {
    let table = include_str!("pcre.txt");
    let refused = table.lines().filter_map(|line| line.strip_suffix("\trefused"));
    let accepted: Vec<&str> = refused.filter(|text| Pattern::new(text).is_ok()).collect();
    assert_eq!(accepted, ["(?<=a+)b"]);
}

#[test]
fn a_quantifier_has_to_have_something_to_repeat() {
    for text in ["a{2}{3}", "a+*", "a?{2}", "a*?*", "a++*", "^*", "a|*", r"\b+", "a{65536}", "(*)"]
    {
        assert!(Pattern::new(text).is_err(), "{text}");
    }
    for text in ["(a*)*", "(?:a{2}){3}", "a{2}+", "a{2}?", "a{", "a{b}", "{a}", "[a]*", r"\**"] {
        assert!(Pattern::new(text).is_ok(), "{text}");
    }
    let error = Pattern::new("a{3,2}").expect_err("it is refused");
    let text = "'{3,2}' at byte 1 is not supported: its numbers are out of order";
    assert_eq!(error.to_string(), text);
}

/// A pattern that is accepted means what it means to RabbitMQ.
#[test]
fn an_accepted_pattern_matches_what_it_matches_in_pcre() {
    let table = include_str!("pcre.txt");
    let subjects: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix('=')).collect();
    let verdicts = table.lines().filter(|line| !line.starts_with(['#', '=']));
    let verdicts = verdicts.filter_map(|line| line.rsplit_once('\t'));
    let verdicts: Vec<_> = verdicts.filter(|(_, verdict)| *verdict != "refused").collect();
    let (mut accepted, mut differing) = (0, Vec::new());
    for (text, verdict) in &verdicts {
        let Ok(pattern) = Pattern::new(text) else { continue };
        // Those of policies are searched in another way.
        let of_policy = Pattern::of_policy(text).expect(text);
        assert_eq!(verdict.len(), subjects.len(), "{text}");
        accepted += 1;
        for (subject, verdict) in subjects.iter().zip(verdict.chars()) {
            let found = [&pattern, &of_policy].map(|one| one.matches(subject.as_bytes()));
            if found != [verdict == 'y'; 2] {
                differing.push(format!("{text} and '{subject}', in PCRE: {verdict}"));
            }
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
    // Few are refused: those that the module's documentation names.
    assert!(accepted * 10 >= verdicts.len() * 7, "{accepted} of {} are accepted", verdicts.len());
}
