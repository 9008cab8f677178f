//! The command line.

use std::time::Duration;

use clap::CommandFactory;
use clap::error::ErrorKind;
use courser_perftest::Options;
use courser_perftest::cli::Arguments;
use courser_perftest::duration::parse_duration;
use proptest::prelude::*;

fn parse(line: &str) -> Options {
    Options::parse_from_args(line.split_whitespace()).unwrap_or_else(|error| panic!("{error}"))
}

fn error(line: &str) -> String {
    Options::parse_from_args(line.split_whitespace()).unwrap_err().to_string()
}

#[test]
fn defaults_are_those_that_the_manual_names() {
    let options = parse("perftest");
    assert_eq!(options.broker.uri, ["amqp://guest:guest@localhost:5672/"]);
    assert_eq!((options.producers, options.consumers), (1, 1));
    assert_eq!(options.duration_limit(), Some(Duration::from_secs(30)));
    assert_eq!((options.rate, options.size, options.prefetch), (0, 1024, 1));
    assert_eq!(options.queue, "perftest");
    assert!(!options.flags.persistent && !options.flags.auto_ack && !options.flags.durable);
    assert_eq!((options.confirm, options.messages, options.multi_ack), (100, 0, 1));
    assert_eq!(options.drain_timeout, Duration::from_secs(60));
    assert!(options.exchange.is_empty() && options.routing_key.is_none() && options.queues == 1);
    assert!(options.json.is_none() && options.html.is_none() && !options.flags.quiet);
}

#[test]
fn a_single_dash_does_as_well() {
    let one = parse(
        "perftest -producers 10 -size 10240 -duration 60s -auto-ack -uri amqp://h/v -multi-ack=5 -prefetch 9",
    );
    let two = parse(
        "perftest --producers 10 --size 10240 --duration 60s --auto-ack --uri amqp://h/v --multi-ack=5 --prefetch 9",
    );
    assert_eq!(format!("{one:?}"), format!("{two:?}"));
    assert_eq!((one.producers, one.size, one.multi_ack), (10, 10240, 5));
    assert_eq!(one.duration, Some(Duration::from_secs(60)));
    assert!(one.flags.auto_ack);
}

#[test]
fn switches_can_be_switched_off() {
    assert!(parse("perftest -persistent").flags.persistent);
    assert!(parse("perftest -persistent=true").flags.persistent);
    assert!(!parse("perftest --persistent=false").flags.persistent);
    assert!(parse("perftest --mandatory --durable --quiet --keep").flags.keep);
}

#[test]
fn help_teaches_by_examples() {
    for form in ["perftest --help", "perftest -help", "perftest -h"] {
        let error = Options::parse_from_args(form.split_whitespace()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{form}");
        let help = error.to_string();
        assert!(help.contains("Examples:") && help.contains("--rate 2000"), "{help}");
        assert!(help.contains("[default: amqp://guest:guest@localhost:5672/]"), "{help}");
    }
    let error = Arguments::parse_from_args(["perftest", "--help"]).unwrap_err().to_string();
    let general = error.split("\n\n").find(|part| part.starts_with("Options:")).unwrap();
    assert!(general.contains("--uri") && general.contains("--producers"), "{error}");
    assert!(error.contains("Examples:") && error.contains("churn"), "{error}");
}

#[test]
fn a_misspelt_option_is_answered_with_the_right_one() {
    for line in ["perftest --producer 3", "perftest -producer 3"] {
        assert!(error(line).contains("'--producers'"), "{}", error(line));
    }
}

#[test]
fn options_that_make_no_sense_together_say_why() {
    assert!(error("perftest --multi-ack 50").contains("add --prefetch 50 or more"));
    parse("perftest --multi-ack 50 --prefetch 0");
    parse("perftest --multi-ack 50 --auto-ack");
    assert!(error("perftest --producers 0 --consumers 0").contains("nothing to do"));
    assert!(error("perftest --multi-ack 0").contains("must be at least 1"));
    assert!(error("perftest --exchange-type fanout").contains("with --exchange"));
    assert!(error("perftest --queues 0").contains("must be at least 1"));
    assert!(error("perftest --headers novalue").contains("name=value"));
    assert!(error("perftest --size 999999999").contains("512 MiB"));
    assert!(error("perftest --properties colour=red").contains("no property \"colour\""));
    assert!(error("perftest --properties priority=high").contains("priority can't be"));
    assert!(error("perftest --queue-args x-max-length").contains("--queue-args takes name=value"));
    assert!(error("perftest --routing-keys 5").contains("with --exchange"));
    assert!(error("perftest --exchange x --routing-keys 0").contains("between 1 and"));
    assert!(error("perftest --variable-rate 0:1s").contains("publishes nothing"));
    assert!(error("perftest --variable-rate 5").contains("VALUE:TIME"));
    assert!(error("perftest --variable-size 5:0s").contains("more than nothing"));
    assert!(error("perftest --stream --auto-ack").contains("--prefetch"));
    assert!(error("perftest --stream-offset first").contains("--stream"));
    assert!(error("perftest --channels 0").contains("at least 1"));
    assert!(error("perftest --nack-every 5 --auto-ack").contains("no effect"));
    assert!(error("perftest --consumer-tx 5 --auto-ack").contains("no effect"));
    assert!(error("perftest --consumer-tx 5 --prefetch 4").contains("add --prefetch 5 or more"));
    parse("perftest --consumer-tx 5 --prefetch 0");
    parse("perftest --consumer-tx 5 --polling");
    parse("perftest --multi-ack 5 --polling");
    assert!(error("perftest --confirm 9999999").contains("--confirm"));
    assert!(error("perftest --producers 9999").contains("--producers"));
    assert!(error("perftest --size 999999999").contains("--size"));
    assert!(error("perftest --requeue").contains("--nack-every"));
    assert!(error("perftest --requeue --nack-every 2 --size 4").contains("16 bytes"));
    assert!(error("perftest --tx 5 --confirm 5").contains("--confirm"));
    assert!(error("perftest --polling-interval 1s").contains("--polling"));
    assert!(error("perftest --stream --polling --prefetch 5").contains("--polling"));
    assert!(error("perftest --duration soon").contains("not a duration"));
}

#[test]
fn a_whole_command_line_is_checked_as_options_are() {
    let error = |line: &str| Arguments::parse_from_args(line.split(' ')).unwrap_err().to_string();
    assert!(error("perftest -multi-ack 50").contains("add --prefetch 50 or more"));
    assert!(error("perftest --producers 2 churn channels").contains("churn"));
    assert!(error("perftest churn channels --workers 0").contains("--workers"));
    assert!(Arguments::parse_from_args(["perftest", "churn", "channels", "-workers", "3"]).is_ok());
}

#[test]
fn every_option_stands_in_the_manual() {
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/perftest.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let is_told = |name: &str| {
        let behind = |found: usize| manual[found + name.len()..].chars().next();
        let mut found = manual.match_indices(name);
        found.any(|(at, _)| behind(at).is_none_or(|next| next != '-' && !next.is_alphanumeric()))
    };
    let mut command = Arguments::command();
    command.build();
    for command in std::iter::once(&command).chain(command.get_subcommands()) {
        let options = command.get_arguments().filter_map(|option| option.get_long());
        for name in options.filter(|name| !matches!(*name, "help" | "version")) {
            assert!(is_told(&format!("--{name}")), "--{name} is missing in docs/perftest.md");
        }
    }
}

#[test]
fn messages_run_as_long_as_they_take() {
    assert_eq!(parse("perftest --messages 10").duration_limit(), None);
    assert_eq!(
        parse("perftest --messages 10 --duration 5s").duration_limit(),
        Some(Duration::from_secs(5))
    );
}

#[test]
fn headers_are_a_list_or_repeated() {
    let options = parse("perftest --headers a=1,b=x --headers c==");
    assert_eq!(options.headers, ["a=1", "b=x", "c=="]);
}

#[test]
fn lengths_of_time_have_units() {
    let cases = [
        ("30s", 30_000),
        ("30", 30_000),
        ("0", 0),
        ("500ms", 500),
        ("1m30s", 90_000),
        ("1.5h", 5_400_000),
        ("2h1m", 7_260_000),
        ("0.25s", 250),
    ];
    for (text, expected_ms) in cases {
        assert_eq!(parse_duration(text), Ok(Duration::from_millis(expected_ms)), "{text}");
    }
    for text in ["", "s", "5x", "-1s", "1s5", "1e9", "..s", "400000000h"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn any_length_of_time_gives_a_value_or_an_error(text in "[0-9.smhu µ-]{0,12}") {
        let _ = parse_duration(&text);
    }

    #[test]
    fn any_arguments_give_options_or_an_error(args in prop::collection::vec("-{0,2}[a-z-]{0,9}=?[0-9a-z]{0,4}", 0..5)) {
        let _ = Options::parse_from_args(std::iter::once("perftest".to_owned()).chain(args));
    }
}
