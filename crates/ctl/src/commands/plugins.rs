//! What RabbitMQ has in plugins: it is in the broker, or is not there at all.

use crate::failure::{Failure, UNAVAILABLE};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, any, required};

pub(super) const COMMANDS: &[Spec] = &[Spec {
    name: "plugins",
    about: "RabbitMQ's plugins: list [PATTERN], is_enabled NAME..., enable NAME... There are none; much is built in",
    arguments: &[
        required("action", "list, is_enabled or enable"),
        any("names", "For list, a regular expression; otherwise names of plugins"),
    ],
    examples: &[
        "plugins list",
        "plugins list 'exchange$'",
        "plugins is_enabled rabbitmq_management",
        "plugins enable rabbitmq_prometheus",
    ],
    intent: "",
    action: Action::Run(run),
}];

/// A plugin by its name.
struct Plugin {
    name: &'static str,
    /// Whether the broker does what it is for.
    is_here: bool,
    about: &'static str,
}

const fn here(name: &'static str, about: &'static str) -> Plugin {
    Plugin { name, is_here: true, about }
}

const fn absent(name: &'static str, about: &'static str) -> Plugin {
    Plugin { name, is_here: false, about }
}

const PLUGINS: &[Plugin] = &[
    here("rabbitmq_auth_backend_http", "the setting auth_http, see docs/access.md"),
    absent("rabbitmq_auth_backend_ldap", "no LDAP: let auth_http ask a program of yours"),
    here("rabbitmq_auth_backend_oauth2", "the settings oauth, see docs/oauth.md"),
    here("rabbitmq_auth_mechanism_ssl", "logins by certificate, see docs/tls.md"),
    here("rabbitmq_consistent_hash_exchange", "exchange type x-consistent-hash"),
    here("rabbitmq_delayed_message_exchange", "exchange type x-delayed-message"),
    here("rabbitmq_event_exchange", "events of the HTTP API: consume_event_stream"),
    absent("rabbitmq_federation", "no federation, see docs/migrating.md"),
    absent("rabbitmq_jms_topic_exchange", "no exchange type x-jms-topic"),
    here("rabbitmq_management", "the HTTP API and the web page, see docs/management.md"),
    here("rabbitmq_management_agent", "the HTTP API"),
    here("rabbitmq_message_deduplication", "x-message-deduplication, see docs/features.md"),
    absent("rabbitmq_mqtt", "AMQP 0-9-1 only"),
    absent("rabbitmq_peer_discovery_common", "settings name the nodes, see docs/cluster.md"),
    here("rabbitmq_prometheus", "/metrics, see docs/monitoring.md"),
    here("rabbitmq_random_exchange", "exchange type x-random"),
    here("rabbitmq_recent_history_exchange", "exchange type x-recent-history"),
    here("rabbitmq_sharding", "exchange type x-modulus-hash; queues are not made by themselves"),
    absent("rabbitmq_shovel", "let RabbitMQ's shovel push to Courser, see docs/migrating.md"),
    absent("rabbitmq_stomp", "AMQP 0-9-1 only"),
    absent(
        "rabbitmq_stream",
        "no stream protocol: streams are used by AMQP 0-9-1, see docs/streams.md",
    ),
    absent("rabbitmq_top", "use courser top"),
    here("rabbitmq_tracing", "trace_on, and the exchange amq.rabbitmq.trace"),
    absent("rabbitmq_web_mqtt", "AMQP 0-9-1 only, also over WebSocket: see docs/websocket.md"),
    absent("rabbitmq_web_stomp", "AMQP 0-9-1 only, also over WebSocket: see docs/websocket.md"),
];

fn run(_: &mut Session, input: &Input) -> Result<Output, Failure> {
    let names = input.texts("names");
    match (input.text("action"), names) {
        ("list", [] | [_]) => list(names.first().map(String::as_str)),
        ("list", _) => Err(Failure::usage("list takes one pattern")),
        ("is_enabled" | "enable", []) => Err(Failure::usage("name at least one plugin")),
        ("is_enabled" | "enable", _) => built_in(names),
        ("disable" | "set", _) => Err(Failure::error(
            UNAVAILABLE,
            "not supported: nothing is a plugin, so nothing can be switched off like one. Settings say what is served: \
             'courser ctl environment' shows them",
        )),
        (other, _) => {
            Err(Failure::usage(format!("unknown action '{other}': use list, is_enabled or enable")))
        }
    }
}

fn list(pattern: Option<&str>) -> Result<Output, Failure> {
    let pattern = fancy_regex::Regex::new(pattern.unwrap_or_default())
        .map_err(|error| Failure::usage(format!("the pattern can't be used: {error}")))?;
    let wanted = PLUGINS.iter().filter(|one| pattern.is_match(one.name).unwrap_or(false));
    let state = |one: &Plugin| if one.is_here { "built in" } else { "not supported" };
    let row = |one: &Plugin| vec![one.name.into(), state(one).into(), one.about.into()];
    let columns = ["name", "state", "instead"].map(str::to_owned).to_vec();
    Ok(Output::Rows { columns, rows: wanted.map(row).collect() })
}

/// What is built in is enabled already, and stays so.
fn built_in(names: &[String]) -> Result<Output, Failure> {
    let mut lines = Vec::new();
    let mut is_all = true;
    for name in names {
        let known = PLUGINS.iter().find(|one| one.name == name);
        is_all &= known.is_some_and(|one| one.is_here);
        lines.push(match known {
            Some(one) if one.is_here => format!("Plugin {name} is built in: {}", one.about),
            Some(one) => format!("Plugin {name} is not supported: {}", one.about),
            None => {
                format!("Plugin {name} is unknown: 'courser ctl plugins list' shows what there is")
            }
        });
    }
    let text = crate::format::lines(&lines);
    if is_all { Ok(Output::Text(text)) } else { Err(Failure::error(UNAVAILABLE, text)) }
}
