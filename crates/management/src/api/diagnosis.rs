//! Why a queue does not deliver, and what needs attention in the whole broker.

use super::get;
use super::peek::may_read;
use crate::audit::Audit;
use crate::call::{Call, Outcome};
use crate::groups::WEIGHT;
use crate::json::name;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use crate::settings::Notice;
use courser_broker::admin::{
    Alarms, ConsumerView, Listing, NewMessage, OverdueView, PageRequest, QueueView, Start,
    UnackedView,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(crate) const ROUTES: &[Route] = &[
    get(
        "/api/queues/{vhost}/{queue}/diagnosis",
        Needs::Vhost,
        diagnosis,
        "Why messages of a queue wait: an empty list if nothing is in their way.",
    ),
    get(
        "/api/attention",
        Needs::Monitoring,
        attention,
        "What needs attention, the most urgent first.",
    ),
];

/// Unacknowledged messages older than this are worth a word.
const OLD_MS: u64 = 60_000;
/// Bytes that wait for a client that does not read.
const PENDING_BYTES: usize = 64 * 1024;
/// Queues that are named at once.
pub(crate) const QUEUES_MAX: usize = 50;
/// The part of what there may be that is nearly all of it.
const NEARLY: f64 = 0.8;

/// Something that an operator should know.
pub(super) struct Finding {
    severity: &'static str,
    kind: &'static str,
    text: String,
    since_ms: Option<u64>,
    object: Option<Value>,
}

impl Finding {
    pub fn new(severity: &'static str, kind: &'static str, text: String) -> Self {
        Finding { severity, kind, text, since_ms: None, object: None }
    }

    pub fn about(self, object: Value) -> Self {
        Finding { object: Some(object), ..self }
    }

    pub fn since(self, since_ms: Option<u64>) -> Self {
        Finding { since_ms, ..self }
    }

    fn to_json(&self) -> Value {
        let Finding { severity, kind, text, since_ms, object } = self;
        json!({ "severity": severity, "kind": kind, "text": text, "since_ms": since_ms, "object": object })
    }
}

fn answered(findings: &[Finding]) -> Outcome {
    let list: Vec<Value> = findings.iter().map(Finding::to_json).collect();
    Ok(Reply::json(&list))
}

fn of_alarms(alarms: Alarms, findings: &mut Vec<Finding>) {
    for (is_set, kind, what) in
        [(alarms.memory, "memory_alarm", "memory"), (alarms.disk, "disk_alarm", "room on the disk")]
    {
        if is_set {
            let text = format!("There is too little {what}: publishers have to wait");
            findings.push(Finding::new("critical", kind, text));
        }
    }
}

fn diagnosis(call: &Call) -> Outcome {
    may_read(call)?;
    let (vhost, of) = (call.text("vhost")?, call.bytes("queue"));
    let admin = call.admin();
    let queue = admin.queue(vhost, of)?;
    let mut findings = Vec::new();
    of_alarms(admin.alarms(), &mut findings);
    findings.extend(of_held(&queue));
    if queue.is_held {
        // There is no more to be known of it.
        return answered(&findings);
    }
    if is_full(call, &queue)? {
        let text = "It has as much as it may have: what is published to it is refused".to_owned();
        findings.push(Finding::new("critical", "full", text));
    }
    let mut consumers = Consumers::default();
    admin.for_each_consumer_of(vhost, of, &mut |consumer| consumers.add(consumer))?;
    if queue.paused {
        let text = "It is paused: clients get nothing of it until it is resumed".to_owned();
        findings.push(Finding::new("critical", "paused", text));
    }
    findings.extend(of_unread(&queue));
    if queue.ready > 0 && queue.stream.is_none() {
        of_consumers(call, &queue, &consumers, &mut findings)?;
    }
    if queue.unacked > 0 {
        let (_, oldest) = admin.unacked(vhost, of, 0, 1)?;
        findings.extend(oldest.first().and_then(|oldest| of_oldest(call, oldest)));
    }
    answered(&findings)
}

/// Whether a message that is published to a queue now would be refused.
fn is_full(call: &Call, queue: &QueueView) -> Result<bool, Refusal> {
    let message = NewMessage { routing_key: queue.name.clone(), ..NewMessage::default() };
    let trace = call.admin().trace_route(&queue.vhost, &message)?;
    Ok(trace.queues.iter().any(|one| one.refuses))
}

/// The consumers of a queue, of which there may be very many.
#[derive(Default)]
struct Consumers {
    all: usize,
    active: usize,
    /// Those active ones that have used up their prefetch.
    used_up: usize,
    /// The connections of active ones, the first of them by name.
    connections: BTreeSet<String>,
}

impl Consumers {
    fn add(&mut self, consumer: ConsumerView) {
        self.all += 1;
        if !consumer.active {
            return;
        }
        self.active += 1;
        let is_used_up = consumer.prefetch > 0 && consumer.unacked >= consumer.prefetch;
        self.used_up += usize::from(is_used_up);
        self.connections.insert(consumer.connection);
        if self.connections.len() > QUEUES_MAX {
            self.connections.pop_last();
        }
    }
}

/// That so many messages wait.
fn waiting(ready: usize) -> String {
    match ready {
        1 => "1 message waits".to_owned(),
        _ => format!("{ready} messages wait"),
    }
}

/// Why consumers take nothing while messages wait.
fn of_consumers(
    call: &Call,
    queue: &QueueView,
    consumers: &Consumers,
    findings: &mut Vec<Finding>,
) -> Result<(), Refusal> {
    let ready = queue.ready;
    let Consumers { all, active, used_up, connections } = consumers;
    if *all == 0 {
        let text = format!("{} without a consumer", waiting(ready));
        findings.push(Finding::new("warning", "no_consumer", text));
        return Ok(());
    }
    if *active == 0 {
        let text = format!("{}, and none of its consumers is active", waiting(ready));
        findings.push(Finding::new("warning", "no_active_consumer", text));
        return Ok(());
    }
    if used_up == active {
        let text = match used_up {
            1 => {
                "Its one active consumer has as many messages unacknowledged as it may (prefetch): \
                  it gets more when it acknowledges"
                    .to_owned()
            }
            _ => format!(
                "All of its {used_up} active consumers have as many messages unacknowledged as they may \
                 (prefetch): they get more when they acknowledge"
            ),
        };
        findings.push(Finding::new("warning", "prefetch_used_up", text));
    } else if *used_up > 0 {
        let text = format!("{used_up} of {active} consumers have used up their prefetch");
        findings.push(Finding::new("info", "prefetch_used_up", text));
    }
    for connection in connections {
        // It may have gone in the meantime.
        let Ok(view) = call.admin().connection(connection) else { continue };
        let is_seen = sees(call, view.user.as_bytes())?;
        let object = is_seen.then(|| json!({ "connection": connection }));
        let client = if is_seen { format!("'{connection}'") } else { "of another user".to_owned() };
        if view.pending_bytes >= PENDING_BYTES {
            let bytes = view.pending_bytes;
            let text = format!("The client {client} does not read: {bytes} bytes wait for it");
            let finding = Finding::new("warning", "client_does_not_read", text);
            findings.push(Finding { object: object.clone(), ..finding });
        }
        let channels = call.admin().channels_of(connection).unwrap_or_default();
        let stopped = channels.iter().filter(|one| !one.flow_active && one.consumers > 0).count();
        if stopped > 0 {
            let text = format!("The client {client} has stopped the flow on {stopped} channels");
            let finding = Finding::new("warning", "flow_stopped", text);
            findings.push(Finding { object, ..finding });
        }
    }
    Ok(())
}

/// Whether the caller may know of this user's connections.
fn sees(call: &Call, user: &[u8]) -> Result<bool, Refusal> {
    let caller = call.caller()?;
    Ok(caller.is_monitor() || caller.name().as_bytes() == user)
}

/// The oldest unacknowledged message, if it is old.
fn of_oldest(call: &Call, oldest: &UnackedView) -> Option<Finding> {
    let age_ms = call.api.now_ms().saturating_sub(oldest.since_ms?);
    if age_ms < OLD_MS {
        return None;
    }
    let is_seen = sees(call, oldest.user.as_bytes()).unwrap_or(false);
    let by = match (&oldest.consumer_tag, is_seen) {
        (Some(tag), true) => format!("consumer '{}' of '{}'", name(tag), oldest.connection),
        (None, true) => format!("'{}', which polled it", oldest.connection),
        (_, false) => "another user".to_owned(),
    };
    let seconds = age_ms / 1000;
    let text = format!("The oldest unacknowledged message is with {by} for {seconds} s");
    let object = is_seen.then(|| {
        json!({ "connection": oldest.connection, "channel": oldest.channel, "delivery_tag": oldest.delivery_tag })
    });
    let finding = Finding::new("warning", "unacknowledged", text).since(oldest.since_ms);
    Some(Finding { object, ..finding })
}

/// That a queue can't read what comes next.
fn of_unread(queue: &QueueView) -> Option<Finding> {
    let unread = queue.unread.as_ref()?;
    let of = name(&queue.name);
    let text = match unread.passed_over {
        0 => format!("Queue '{of}' can't read the message that comes next"),
        1 => format!("Queue '{of}' can't read a message, and goes on behind it"),
        many => format!("Queue '{of}' can't read {many} messages, and goes on behind them"),
    };
    let text = format!("{text}; it tries again every second, and the broker's log says why");
    Some(Finding::new("critical", "unread", text).since(Some(unread.since_ms)))
}

/// That a thread has a queue to itself for long.
fn of_held(queue: &QueueView) -> Option<Finding> {
    let text = format!(
        "Queue '{}' stands still: a thread reads a message of it, or has something to write, and the disk has not answered \
         for a while",
        name(&queue.name)
    );
    queue.is_held.then(|| Finding::new("warning", "held", text))
}

/// How urgent it is to know of a queue, before the number of messages without a consumer.
fn urgency(is_unread: bool, is_held_up: bool) -> u8 {
    match (is_unread, is_held_up) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }
}

/// What an operator should know of one of many queues.
fn of_queue(queue: &QueueView) -> Option<Finding> {
    let (of, ready) = (name(&queue.name), queue.ready);
    let finding = if let Some(unread) = of_unread(queue) {
        unread
    } else if let Some(held) = of_held(queue) {
        held
    } else if queue.paused {
        let text = format!("Queue '{of}' is paused: clients get nothing of it");
        Finding::new("warning", "paused", text)
    } else if queue.unfit > 0 {
        let text = format!(
            "Clients could not be given messages of queue '{of}' ({} so far): the headers are longer than a frame \
             that the client accepts (frame_max). They are set aside until a client comes that accepts them",
            queue.unfit
        );
        Finding::new("warning", "header_too_long", text)
    } else if ready > 0 && queue.consumers == 0 && queue.stream.is_none() {
        let text = format!("{} in queue '{of}' without a consumer", waiting(ready));
        Finding::new("info", "no_consumer", text)
    } else {
        return None;
    };
    Some(finding.about(json!({ "vhost": queue.vhost, "queue": of })))
}

/// Exchanges at which messages stay whose delay is over.
fn of_overdue(call: &Call, vhosts: &BTreeSet<String>, findings: &mut Vec<Finding>) {
    let is_shown = |vhost: &str| vhosts.contains(vhost);
    for OverdueView { vhost, exchange, overdue } in call.admin().overdue(QUEUES_MAX, &is_shown) {
        let of = name(&exchange);
        let text = format!(
            "Messages stay at exchange '{of}' though their delay is over, and others go: {}. It tries again",
            overdue.why
        );
        let finding = Finding::new("warning", "overdue", text).since(Some(overdue.since_ms));
        findings.push(finding.about(json!({ "vhost": vhost, "exchange": of })));
    }
}

fn attention(call: &Call) -> Outcome {
    let (admin, node) = (call.admin(), &call.api.settings.node);
    let mut findings = Vec::new();
    of_alarms(admin.alarms(), &mut findings);
    if let Some(since_ms) = admin.timers_unserved_since_ms() {
        let text =
            "What is due is not done: messages neither expire nor come when their delay is over. \
                    The broker's log says when this began; restart the broker if it does not end"
                .to_owned();
        findings.push(Finding::new("critical", "timers_unserved", text).since(Some(since_ms)));
    }
    if let Some(why) = call.api.audit.as_ref().and_then(Audit::failure) {
        let text = format!("The audit log can't be written, so changes are not recorded: {why}");
        findings.push(Finding::new("critical", "audit_log", text));
    }
    for Notice { kind, text, since_ms } in (call.api.settings.notices)() {
        findings.push(Finding::new("warning", kind, text.to_owned()).since(Some(since_ms)));
    }
    findings.extend(super::refused::findings(call));
    super::certificates::findings(call, &mut findings);
    let mut nearly = |kind, what: &str, used: u64, most: u64| {
        if most > 0 && used as f64 >= most as f64 * NEARLY {
            let text = format!("{what}: {used} of {most}");
            findings.push(Finding::new("warning", kind, text));
        }
    };
    let used = admin.memory_used_bytes();
    nearly("memory_high", "Bytes that messages and clients take", used, admin.memory_high_bytes());
    let connections = admin.connections(None)?.len() as u64;
    nearly("connections_high", "Connections", connections, node.connections_max as u64);
    let vhosts = call.vhosts()?;
    of_overdue(call, &vhosts, &mut findings);
    let queues = admin.queues(None)?;
    let queues = Listing::within(queues, |vhost| vhosts.contains(vhost));
    let request = PageRequest { start: Start::Rank(0), limit: QUEUES_MAX, filter: None };
    let waiting = queues.page_by(&request, true, |queue| {
        let status = queue.status();
        let unattended = if status.consumers == 0 { status.ready } else { 0 };
        let is_held_up = queue.is_paused() || queue.unfit() > 0 || queue.is_held();
        Some((urgency(queue.is_unread(), is_held_up), unattended))
    });
    if call.inside.is_none() {
        findings.extend(waiting.items.iter().filter_map(of_queue));
        return answered(&findings);
    }
    // To be compared with those of other groups.
    let list = findings.iter().map(Finding::to_json).chain(waiting.items.iter().map(weighed));
    Ok(Reply::json(&list.collect::<Vec<Value>>()))
}

/// What an operator should know of a queue, if anything, and by what it was chosen.
fn weighed(queue: &QueueView) -> Value {
    let unattended = if queue.consumers == 0 { queue.ready } else { 0 };
    let mut finding = match of_queue(queue) {
        Some(finding) => finding.to_json(),
        None => json!({ "object": { "vhost": queue.vhost, "queue": name(&queue.name) } }),
    };
    let is_held_up = queue.paused || queue.unfit > 0 || queue.is_held;
    finding[WEIGHT] = json!([urgency(queue.unread.is_some(), is_held_up), unattended]);
    finding
}
