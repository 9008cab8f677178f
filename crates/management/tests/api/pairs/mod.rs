//! Two writes to the same thing at the same moment: what is there afterwards, and what was answered, is what one after the
//! other would have come to.

mod declares;
mod lists;
mod reads;
mod store;

use crate::direct::{Asked, Direct};
use courser_auth::{PasswordHash, Permission};
use courser_broker::admin::VhostView;
use courser_store::MemoryGauge;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use store::HeldStore;
use tokio::task::{JoinHandle, JoinSet};

/// How long a request gets to come as far as it can while another one is held up. Too short a time only finds less.
const AHEAD: Duration = Duration::from_millis(4);
/// Pairs that are tried at the same time.
const AT_ONCE: usize = 16;

/// Method, path and body.
type Write = (&'static str, &'static str, &'static str);

/// The password of the users that are there, as a salted sum.
pub const FIRST: &str = "AQAAAGNRTHCg0aX1AAAAAGNRTHCg0aX1AAAAAGNRTHCg0aX1";

/// Those of two other passwords.
macro_rules! hash {
    (old) => {
        "\"password_hash\":\"kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR\""
    };
    (new) => {
        "\"password_hash\":\"AAAAAGNRTHCg0aX1AAAAAGNRTHCg0aX1AAAAAGNRTHCg0aX1\""
    };
}

/// To the user `u`, who is there, and what it may do.
const OF_USER: &[Write] = &[
    ("PUT", "/api/users/u", concat!("{", hash!(old), ",\"tags\":\"management\"}")),
    (
        "PUT",
        "/api/users/u",
        concat!(
            "{",
            hash!(new),
            ",\"tags\":\"x\",\"limits\":{\"max-channels\":3},\"permissions\":{\"v\":{\"configure\":\"p\",\"write\":\"\",\"read\":\"\"}}}"
        ),
    ),
    ("PUT", "/api/users/u/tags", r#"{"tags":"protected"}"#),
    ("PUT", "/api/users/u/password", concat!("{", hash!(new), "}")),
    ("PUT", "/api/user-limits/u/max-connections", r#"{"value":5}"#),
    ("PUT", "/api/user-limits/u/max-channels", r#"{"value":6}"#),
    ("DELETE", "/api/user-limits/u/all", ""),
    ("DELETE", "/api/users/u", ""),
    (
        "POST",
        "/api/definitions",
        concat!("{\"users\":[{\"name\":\"u\",", hash!(new), ",\"tags\":[\"imported\"]}]}"),
    ),
    ("PUT", "/api/permissions/v/u", r#"{"configure":"a","write":"b","read":"c"}"#),
    ("DELETE", "/api/permissions/v/u", ""),
    ("PUT", "/api/topic-permissions/v/u", r#"{"exchange":"x","write":"b","read":"c"}"#),
    ("DELETE", "/api/topic-permissions/v/u", ""),
];

/// To the vhost `v`, which is there, and what is in it.
const OF_VHOST: &[Write] = &[
    ("PUT", "/api/vhosts/v", r#"{"description":"said"}"#),
    ("PUT", "/api/vhosts/v", r#"{"tags":["said"],"tracing":true}"#),
    ("DELETE", "/api/vhosts/v", ""),
    ("POST", "/api/vhosts/v/deletion/protection", ""),
    ("PUT", "/api/vhost-limits/v/max-connections", r#"{"value":5}"#),
    ("PUT", "/api/vhost-limits/v/max-queues", r#"{"value":6}"#),
    ("DELETE", "/api/vhost-limits/v/max-queues", ""),
    ("PUT", "/api/parameters/vhost-limits/v/limits", r#"{"value":{"max-queues":7}}"#),
    ("PUT", "/api/parameters/federation-upstream-set/v/one", r#"{"value":1}"#),
    ("DELETE", "/api/parameters/federation-upstream-set/v/one", ""),
    ("PUT", "/api/policies/v/p", r#"{"pattern":"a","definition":{"max-length":1}}"#),
    ("DELETE", "/api/policies/v/p", ""),
    ("PUT", "/api/permissions/v/u", r#"{"configure":"a","write":"b","read":"c"}"#),
    ("DELETE", "/api/permissions/v/u", ""),
    ("POST", "/api/definitions", r#"{"vhosts":[{"name":"v","limits":{"max-connections":9}}]}"#),
    (
        "POST",
        "/api/definitions",
        r#"{"permissions":[{"user":"u","vhost":"v","configure":"i","write":"","read":""}]}"#,
    ),
    ("PUT", "/api/exchanges/v/e", r#"{"type":"fanout","durable":true}"#),
];

/// To the vhost `w` and the global parameter `g`, which are not there.
const OF_NOTHING: &[Write] = &[
    ("PUT", "/api/vhosts/w", r#"{"description":"said"}"#),
    ("PUT", "/api/vhosts/w", r#"{"tags":["said"]}"#),
    ("DELETE", "/api/vhosts/w", ""),
    ("PUT", "/api/vhost-limits/w/max-queues", r#"{"value":6}"#),
    ("PUT", "/api/permissions/w/u", r#"{"configure":"a","write":"b","read":"c"}"#),
    ("PUT", "/api/global-parameters/g", r#"{"value":1}"#),
    ("PUT", "/api/global-parameters/g", r#"{"value":2}"#),
    ("DELETE", "/api/global-parameters/g", ""),
];

/// What two writes have come to: their answers, what a restart would find, and what there is now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    answers: [u16; 2],
    defined: BTreeMap<String, String>,
    now: Vec<String>,
}

/// A broker with a user and a vhost.
struct World {
    direct: Arc<Direct>,
    store: Arc<HeldStore>,
}

impl World {
    fn new() -> Self {
        let gauge = Arc::new(MemoryGauge::default());
        let store = HeldStore::new(&gauge);
        let direct = Arc::new(Direct::on(Arc::clone(&store) as _, gauge));
        direct.add_user_with(PasswordHash::decode(FIRST, None), "root", "administrator");
        direct.add_user_with(PasswordHash::decode(FIRST, None), "u", "first");
        let admin = direct.broker.admin();
        admin.change_vhost("v", |_| {}).expect("a vhost");
        admin.set_permission("u", "v", Permission::all()).expect("a permission");
        World { direct, store }
    }

    /// Sends a write; the status of its answer comes later.
    fn send(&self, write: Write) -> JoinHandle<u16> {
        self.send_by("root", write)
    }

    fn send_by(&self, user: &'static str, (method, path, body): Write) -> JoinHandle<u16> {
        let direct = Arc::clone(&self.direct);
        tokio::spawn(async move {
            let headers = &[("content-type", "application/json")];
            let asked = Asked { body, headers, ..Asked::new(method, path).by(user) };
            direct.ask(asked).await.status
        })
    }

    fn outcome(&self, answers: [u16; 2]) -> Outcome {
        let admin = self.direct.broker.admin();
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let defined = self.store.defined().into_iter();
        let accounts = admin.accounts().records().into_iter();
        let accounts = accounts.filter_map(|one| Some(text(&one.value()?)));
        let vhosts = admin.vhosts().into_iter().map(|vhost| {
            let VhostView { name, limits, description, tags, tracing, protected, .. } = vhost;
            format!("{name} {limits:?} {description:?} {tags:?} {tracing} {protected}")
        });
        let parameters = format!("{:?}", admin.parameters(None, None));
        let globals = format!("{:?}", admin.global_parameters());
        let now = accounts.chain(vhosts).chain([parameters, globals]).collect();
        Outcome {
            answers,
            defined: defined.map(|(key, value)| (text(&key), text(&value))).collect(),
            now,
        }
    }
}

/// One after the other.
async fn in_order(first: Write, second: Write) -> Outcome {
    let world = World::new();
    let first = world.send(first).await.expect("a status");
    let second = world.send(second).await.expect("a status");
    world.outcome([first, second])
}

/// The second while the first writes: it has read what there was before.
async fn side_by_side(first: Write, second: Write) -> Outcome {
    let world = World::new();
    world.store.hold(true);
    let first = world.send(first);
    while !first.is_finished() && !world.store.is_waited_for() {
        tokio::time::sleep(Duration::from_micros(100)).await;
    }
    let second = world.send(second);
    tokio::time::sleep(AHEAD).await;
    world.store.hold(false);
    let (first, second) = (first.await.expect("a status"), second.await.expect("a status"));
    world.outcome([first, second])
}

/// Whether two outcomes are the same; why something is refused may be said in several ways.
fn are_same(one: &Outcome, other: &Outcome) -> bool {
    let is_same = |one: u16, other: u16| one == other || one.min(other) >= 400;
    let [first, second] = [0, 1].map(|nth| is_same(one.answers[nth], other.answers[nth]));
    first && second && one.defined == other.defined && one.now == other.now
}

/// The outcomes of all pairs of some writes, by their numbers: one after the other, and side by side.
async fn outcomes(writes: &'static [Write]) -> HashMap<(usize, usize), [Outcome; 2]> {
    let (mut trying, mut outcomes) = (JoinSet::new(), HashMap::new());
    for first in 0..writes.len() {
        for second in 0..writes.len() {
            if trying.len() == AT_ONCE {
                outcomes.extend(trying.join_next().await.map(|one| one.expect("it is tried")));
            }
            let (one, other) = (writes[first], writes[second]);
            trying.spawn(async move {
                let both = [in_order(one, other).await, side_by_side(one, other).await];
                ((first, second), both)
            });
        }
    }
    outcomes.extend(trying.join_all().await);
    outcomes
}

/// Whether the second was refused, and has left nothing behind, as the vhost was just being deleted by the first.
async fn is_too_early(first: Write, second: Write, found: &Outcome) -> bool {
    let is_meant = first.0 == "DELETE" && first.1.starts_with("/api/vhosts/");
    let nothing = ("DELETE", "/api/vhosts/nothing", "");
    is_meant && found.answers[1] == 400 && second.0 != "DELETE" && {
        let alone = in_order(first, nothing).await;
        (&alone.defined, &alone.now) == (&found.defined, &found.now)
    }
}

// One thread: a request that waits on it for what another one writes holds up all others, each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn two_writes_at_once_come_to_what_one_after_the_other_would() {
    let mut wrong = Vec::new();
    for writes in [OF_USER, OF_VHOST, OF_NOTHING] {
        let outcomes = outcomes(writes).await;
        for ((first, second), [before, found]) in &outcomes {
            let mut after = outcomes[&(*second, *first)][0].clone();
            after.answers.reverse();
            let (first, second) = (writes[*first], writes[*second]);
            let is_right = are_same(found, before)
                || are_same(found, &after)
                || is_too_early(first, second, found).await;
            if !is_right {
                wrong.push(format!(
                    "{first:?}\nbeside {second:?} come to {found:#?}, and neither to {before:#?} \
                     nor to {after:#?}"
                ));
            }
        }
    }
    let shown = wrong.first().cloned().unwrap_or_default();
    assert!(wrong.is_empty(), "{} pairs are wrong, such as {shown}", wrong.len());
}
