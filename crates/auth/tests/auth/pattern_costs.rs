//! What it costs to compile a pattern, however it is made: of memory, of work, which is counted in allocated memory, and of
//! the stack.

use crate::allocated::{Cost, measured};
use courser_auth::{PATTERN_BYTES_MAX, Pattern, PatternError};
use proptest::prelude::*;

type Compile = fn(&str) -> Result<Pattern, PatternError>;

const WAYS: [(&str, Compile); 4] = [
    ("new", Pattern::new),
    ("of_list", Pattern::of_list),
    ("of_policy", Pattern::of_policy),
    ("kept", Pattern::kept),
];
/// Half of what a thread of the runtime has.
const STACK_BYTES: usize = 1 << 20;
/// What a pattern that is refused may cost, and one that is compiled.
const REFUSED: Cost = Cost { memory_kib: 512, work_kib: 512 };
const COMPILED: Cost = Cost { memory_kib: 8 << 10, work_kib: 48 << 10 };

/// Compiles a pattern in each way, with little stack. Returns why it was refused, if it was.
fn compiled(text: &str, bound: Cost) -> Option<String> {
    let text = text.to_owned();
    let compiling = move || {
        let mut refused = None;
        for (way, compile) in WAYS {
            let (done, cost) = measured(|| compile(&text).map(drop));
            let is_within = cost.memory_kib <= bound.memory_kib && cost.work_kib <= bound.work_kib;
            assert!(is_within, "{way} {cost:?} {done:?} {text}");
            refused = done.err().map(|error| error.to_string()).or(refused);
        }
        refused
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(compiling);
    thread.expect("a thread").join().expect("it is within its bound")
}

/// Groups, each of which has so many of `unit`, in which `$` is the number of the one before.
fn levels(unit: &str, number: usize, depth: usize) -> String {
    let level = |nth: usize| format!("({})", unit.replace('$', &nth.to_string()).repeat(number));
    format!("(a?){}", (1..=depth).map(level).collect::<String>())
}

#[test]
fn what_multiplies_as_it_is_compiled_is_refused_before() {
    let nested_calls = format!(r"(?<a>c{}\g<a>?b{})", "(?:x".repeat(15), ")b".repeat(15));
    let ancestors = format!(r"(?i)({}{}{}", "(".repeat(5), r"\1\2\3\4\5\6x", ")".repeat(6));
    for (text, why) in [
        (levels(r"\$", 10, 8), "six back-references"),
        (format!("(?i){}", levels(r"\$", 4, 19)), "six back-references"),
        (levels(r"\$", 1, 3), "a group that has a back-reference itself"),
        (ancestors, "a group that has a back-reference itself"),
        (r"(?<n>a\k<n>)".to_owned(), "a group that has a back-reference itself"),
        (r"(?<n>a)(b(?P=n))\2".to_owned(), "a group that has a back-reference itself"),
        (levels(r"(?(1)\$|)", 8, 8), "as alternatives"),
        (levels(r"(?(?=a)b|c)", 8, 8), "as alternatives"),
        (nested_calls, "no group can be called"),
        (levels(r"\g<$>", 8, 8), "no group can be called"),
        (levels(r"\g'$'", 8, 8), "no group can be called"),
        (levels(r"\g$", 8, 8), "no group can be called"),
        ("(?<a>b)(?P>a)(?P>a)".to_owned(), "no group can be called"),
        ("(?<a>b)(?&a)(?&a)".to_owned(), "no group can be called"),
        ("(a)(?1)(?1)".to_owned(), "no group that is known"),
        ("(a)(?+1)(b)(?-1)".to_owned(), "no group that is known"),
        (levels("(?~a)", 8, 8), "what may stand there"),
        // Each of these hides one of those from who reads it otherwise than the engine.
        (r"(a)((?#)?(1)b|c)".to_owned(), "leave the comment out"),
        (r"(?<[>a)(?P>[)]".to_owned(), "no group that is known"),
        (r"(?'['a)\g'['(?:])".to_owned(), "no group that is known"),
        (r"(a)[[:]](?(1)b|c):]]".to_owned(), "a backslash"),
        (r"(a)\p{[}(?(1)b|c)]".to_owned(), "name of a property"),
        (r"(a)\p[(?(1)b|c)]".to_owned(), "name of a property"),
        (r"(a)\01\01\01\01\01\01\01".to_owned(), "two digits"),
        // Its numbers are multiplied.
        (format!("(?=a){}b{}", "(?:".repeat(5), "{65535})".repeat(5)), "65535 times"),
        (format!("(?=a){}b{}", "(?:".repeat(17), "{2})".repeat(17)), "65535 times"),
        (format!("{}a{}", "(".repeat(21), ")".repeat(21)), "20 deep"),
        // All characters in a class are gone through where case does not count.
        (format!("(?i){}", r"\pC".repeat(1300)), "there may be 16"),
        ("(?i)[!-\u{10ffff}]".to_owned(), "too wide"),
        (r"(?i)[\x00-\u4e00\!-\x{10ffff}]".to_owned(), "too wide"),
        ("(?i)[^]-\u{10ffff}]".to_owned(), "too wide"),
        ("(?i)(?=a)[!-\\\u{10ffff}]".to_owned(), "too wide"),
        (format!("(?i){}", "[\u{80}-\u{fffd}]".repeat(3)), "too wide"),
        (r"(?i)\p{Any}".to_owned(), "write (?s:.)"),
        (r"(?i)[^\P{General_Category: is_A-n y}]".to_owned(), "write (?s:.)"),
        (format!(r"(?i)[^\x{{100}}]{}", r"\W".repeat(16)), "there may be 16"),
        (r"(?i)(?=a)é[\S-]".to_owned(), "beside the brackets"),
        (r"(?i)[x\P{Greek}]".to_owned(), "beside the brackets"),
        (r"(?i:[é\S])".to_owned(), "beside the brackets"),
        (r"(?i)[^é\D]".to_owned(), "beside the brackets"),
        (r"(?s)(?m-i)(?i)é(?=[-\W])".to_owned(), "beside the brackets"),
        (r"(?i)[x\p{^Greek}]".to_owned(), "beside the brackets"),
        (r"(?i)(?=a)é[x[:^alpha:]]".to_owned(), "beside the brackets"),
        // What a look-behind refers to is compiled for each reference, and backwards.
        (r"(?i)(?<=a*\1\1\1\1\1\1)([a-z]\pL)".to_owned(), "in a look-behind"),
        (r"(x)(?<!(?:a|b\1))".to_owned(), "in a look-behind"),
        (r"(?<n>x)(?<=(?=a(?P=n)))".to_owned(), "in a look-behind"),
    ] {
        let refused = compiled(&text, REFUSED).expect(&text);
        assert!(refused.contains(why), "{refused}: {text}");
    }
}

/// What costs most of what is compiled.
#[test]
fn no_pattern_costs_much_to_compile() {
    let filled = |unit: &str| unit.repeat((PATTERN_BYTES_MAX - 40) / unit.len());
    let deep = |open: &str, close: &str| format!("{}a{}", open.repeat(20), close.repeat(20));
    for text in [
        format!("(?i){}", r"\pC".repeat(16)),
        format!("(?i){}", r"\pL".repeat(16)),
        format!("(?i){}", "[!-\u{1fff}]".repeat(16)),
        format!("(?i){}", r"\p{assigned}".repeat(16)),
        format!("(?i){}", r"\p{Zzzz}\p{Co}".repeat(8)),
        format!("(?i){}", "[^!-\u{1fff}]".repeat(16)),
        format!("(?i){}", r"[^\PL\PM]".repeat(5)),
        format!("(?i)(?=a){}", r"\PM".repeat(16)),
        format!("(?i)[é]{}", r"\W".repeat(15)),
        format!("(?i){}", filled(r"\w")),
        format!("(?i)(?=é){}", filled("a")),
        format!(r"(?i)({})\1\1\1\1\1\1", filled("a")),
        format!(r"(?i)({})\1\1\1\1\1\1", filled(r"\W")),
        format!("(?<={})x", filled("a*")),
        filled("a|"),
        filled("a*b?"),
        filled("(a|b)*"),
        filled("()"),
        filled("(?:(?:){65535}){1}"),
        filled("(?=ab)"),
        filled("(?<=a*b)"),
        filled("(?>ab)"),
        "((a{1000}){1000}){1000}".to_owned(),
        "(?=x)((a{100}){100}){2}".to_owned(),
        "(?:(?:()()()()()()()()){250}){250}".to_owned(),
        deep("(", ")"),
        deep("(?:", ")*"),
        deep("(a|", "b)*?"),
        deep("(?>", ")"),
        deep("(?:a", "b)++"),
        deep("(?=a", "b)"),
        deep("(?<=a*", "b)"),
        deep("(?:(?=a)|", "b)*"),
    ] {
        compiled(&text, COMPILED);
    }
}

/// The bounds leave room for what is of use.
#[test]
fn usual_patterns_are_compiled() {
    for (text, name) in [
        (r"^(\w+)-\1$", "ab-ab"),
        (r"^(\w+)(-\1)*$", "ab-ab-ab"),
        (r"^(?:(.)\1)+$", "aabb"),
        (r"^(?<env>prod|test)\.(?:\k<env>|all)\.(?P=env)$", "test.all.test"),
        (r"^(a)(b)(c)\1\2\3\1\2\3$", "abcabcabc"),
        (r"^(?!amq\.)(?>[a-z]++\.)*(?<!tmp\.)q$", "orders.eu.q"),
        (r"^[[:alnum:]_-]{1,64}(?:\.[[:^punct:]]+){0,8}$", "a_b.c1.d"),
        (r"^(?i:[\p{L}\p{N}]+(?:\.[\p{L}\p{N}]+){2})$", "É1.é2.ß3"),
        (r"^[\x{4e00}-\x{9fff}\x{3040}-\x{30ff}]+$", "注文"),
        (r"^\x{41}{3}\x42+[^\x00-\x7f]+$", "AAABBé"),
        (r"(?i)^[\S-]+$", "ab-C"),
        (r"^[\s\S]*é[^\W_]$", "a éb"),
        (r"(?i)^(?:[é-]|\S)[^\s]$", "Éb"),
        (r"^(\w)\1(?<!\W)$", "aa"),
    ] {
        assert_eq!(compiled(text, COMPILED), None, "{text}");
        assert!(Pattern::new(text).expect(text).matches(name.as_bytes()), "{text}");
    }
}

/// Pieces that groups are made of.
fn piece() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-cé.]",
        4 => r"\\[1-9]",
        1 => r"\\[wWdbBAzZRKGX]|\\p\{L\}|\[a-é\]|\[\^b\]",
        1 => r"\\k<[ab]>|\\k'a'|\(\?P=[ab]\)|\\k<-1>",
        2 => r"\\g<[0-3ab]>|\\g[1-3]|\\g'a'|\(\?P>[ab]\)|\(\?&a\)|\(\?[R0-3]\)",
        1 => r"\(\?#[a(\[]\)|\(\*FAIL\)|\(\?\([1-3]\)\)",
    ];
    piece.boxed()
}

/// Patterns of groups in groups that refer to one another.
fn pattern() -> impl Strategy<Value = String> {
    let open = prop_oneof![
        6 => r"\(|\(\?:|\(\?<[ab]>|\(\?'a'|\(\?P<b>",
        2 => r"\(\?=|\(\?!|\(\?<=|\(\?<!|\(\?>",
        2 => r"\(\?\([1-3]\)|\(\?\((\?=)?a\)|\(\?~|\(\?~\||\(\?\(DEFINE\)|\(\(\?#\)\?:",
        1 => r"\(\?i:|\(\?-i:|\(\?s:",
    ];
    let quantifier = prop_oneof![
        6 => Just(String::new()),
        3 => "[*+?][+?]?",
        1 => r"\{(1|2|60000|65535)(,|,2|,65535)?\}[+?]?",
    ];
    let group = move |inner: BoxedStrategy<String>| {
        let parts = prop::collection::vec(inner, 1..9);
        (open.clone(), parts, "[|]?", quantifier.clone(), 1_usize..6).prop_map(
            |(open, parts, between, quantifier, times)| {
                format!("{open}{}){quantifier}", parts.join(&between)).repeat(times)
            },
        )
    };
    let groups = piece().prop_recursive(24, 400, 8, group);
    ("(\\(\\?i\\))?", prop::collection::vec(groups, 1..5))
        .prop_map(|(flags, groups)| flags + &groups.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_groups_that_refer_to_one_another_cost_much_to_compile(text in pattern()) {
        compiled(&text, COMPILED);
    }

    #[test]
    fn no_levels_of_groups_cost_much_to_compile(
        flags in "(\\(\\?i\\))?",
        unit in prop_oneof![
            Just(r"\$"), Just(r"\$\$"), Just(r"(?:\$|b)"), Just(r"(?(1)\$|)"), Just(r"\g<$>"),
            Just(r"(?:(?:(?:\g<$>?b)c)d)"), Just(r"(?=\$)"), Just(r"(?<=a*\$)"), Just("(?~a)"),
        ],
        number in 1_usize..6,
        depth in 1_usize..16,
    ) {
        compiled(&format!("{flags}{}", levels(unit, number, depth)), COMPILED);
    }
}
