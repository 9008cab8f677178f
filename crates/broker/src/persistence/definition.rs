//! Durable exchanges, queues and bindings as keys and values, for the store.
//!
//! ```text
//! key    kind byte, vhost (u16 length, bytes), then
//!          'x' exchange: name
//!          'q' queue: name
//!          'b' binding: source, 'q' or 'x', destination, routing key (u8 length, bytes each),
//!                       arguments (encoded field table entries)
//!          'v' vhost: nothing
//!          'p' policy, 'o' operator policy: name
//!          'a' parameter: component (u16 length, bytes), name
//!          'g' global parameter: the name alone, without a vhost
//!          's' placement: the vhost's name alone, without its length
//!          'm' arrival, 'l' a vhost that is held: its name alone, without its length
//!          'h' what the broker of another group has adopted from that of group 0: nothing
//!          'n' group of a cluster: its number (u16) alone
//!          'u', 'r', 't': accounts, which have their own format (`courser_auth::Record`)
//! value  'x': type byte, flags byte, u64 number for a delayed exchange and for a recent history that has
//!             the flag for it, arguments
//!        'q': u64 number of the queue, flags byte, arguments
//!        'b', 'l': nothing
//!        's': u64 number of the shard that the vhost is on
//!        'm': 1 if it has arrived as a whole, 0 before; then as 'v'
//!        'v': u64 most connections, u64 most queues; all bits set where there is no limit; flags byte,
//!             u16 group and u64 stay in it if a flag says that it is not group 0, default type of
//!             queues or nothing, description, tags (u16 length before each)
//!        'h': u64 version, then how often the cluster was recovered (u32) if it was
//!        'a', 'g': the value as text
//!        'n': what its nodes say of it
//!        'p', 'o': i64 priority, byte of what it is for, u32 length of the pattern, pattern, definition
//! ```

use crate::exchange::{Exchange, ExchangeKind, ExchangeSettings};
use crate::policy::{ApplyTo, Policy, PolicyKind};
use crate::queue::{Queue, QueueSettings};
use crate::vhost::{VhostLimits, VhostSettings};
use courser_codec::{FieldTable, ShortString, Table};
use courser_store::ShardId;

/// Where a vhost is; see [`crate::persistence::scope`] for these.
pub(crate) const PLACEMENT: u8 = b's';
/// A vhost that is being moved here from another broker, and can't be found yet.
pub(crate) const ARRIVAL: u8 = b'm';
/// A vhost that has been read out, and stands still until it is known where it is.
pub(crate) const HELD: u8 = b'l';
/// A group of the cluster that this broker is the home of.
pub(crate) const CLUSTER_GROUP: u8 = b'n';
/// What an operator has said of a vhost.
pub(crate) const VHOST: u8 = b'v';
/// What an operator keeps here for a part of the broker, or for a program beside it.
pub(crate) const PARAMETER: u8 = b'a';
pub(crate) const GLOBAL_PARAMETER: u8 = b'g';
/// The version of what a group has adopted from group 0.
pub(crate) const ADOPTED: u8 = b'h';
pub(crate) const POLICY: u8 = b'p';
pub(crate) const OPERATOR_POLICY: u8 = b'o';
pub(crate) const EXCHANGE: u8 = b'x';
pub(crate) const QUEUE: u8 = b'q';
pub(crate) const BINDING: u8 = b'b';

const AUTO_DELETE: u8 = 1;
/// Clients get nothing from a queue for now.
const PAUSED: u8 = 8;
const INTERNAL: u8 = 2;
const TRACING: u8 = 1;
const PROTECTED: u8 = 2;
/// The number of the group follows, which is not 0, and of the stay in it.
const GROUPED: u8 = 4;
/// It has come there from another group.
const MOVED: u8 = 8;
/// A recent history is in the log under the number that follows. Without the flag it has none yet.
const NUMBERED: u8 = 4;

/// A definition read back.
pub(crate) enum Definition {
    /// Only an exchange that has messages in the store has a number there.
    Exchange {
        vhost: String,
        name: ShortString,
        id: Option<u64>,
        settings: ExchangeSettings,
    },
    Queue {
        vhost: String,
        name: ShortString,
        id: u64,
        settings: QueueSettings,
        /// Clients get nothing from it for now.
        paused: bool,
    },
    Binding {
        vhost: String,
        binding: DefinedBinding,
    },
    Vhost {
        vhost: String,
        settings: VhostSettings,
    },
    Policy {
        vhost: String,
        kind: PolicyKind,
        policy: Policy,
    },
}

/// A binding by names.
pub(crate) struct DefinedBinding {
    pub source: ShortString,
    pub to_queue: bool,
    pub destination: ShortString,
    pub routing_key: ShortString,
    pub arguments: FieldTable,
}

fn key(kind: u8, vhost: &str) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(&(vhost.len() as u16).to_le_bytes());
    key.extend_from_slice(vhost.as_bytes());
    key
}

pub(crate) fn exchange_key(vhost: &str, name: &ShortString) -> Vec<u8> {
    let mut key = key(EXCHANGE, vhost);
    key.extend_from_slice(name.as_bytes());
    key
}

pub(crate) fn exchange_value(exchange: &Exchange) -> Vec<u8> {
    let settings = &exchange.settings;
    let flags = (u8::from(settings.auto_delete) * AUTO_DELETE)
        | (u8::from(settings.internal) * INTERNAL)
        | (u8::from(exchange.history().is_some()) * NUMBERED);
    let mut value = vec![settings.kind as u8, flags];
    if let Some(number) = exchange.number_in_log() {
        // What it keeps is in the log under this number.
        value.extend_from_slice(&number.to_le_bytes());
    }
    value.extend_from_slice(&settings.arguments.to_entries());
    value
}

pub(crate) fn queue_key(vhost: &str, name: &ShortString) -> Vec<u8> {
    let mut key = key(QUEUE, vhost);
    key.extend_from_slice(name.as_bytes());
    key
}

pub(crate) fn queue_value(queue: &Queue, is_paused: bool) -> Vec<u8> {
    let mut value = queue.id.to_le_bytes().to_vec();
    let auto_delete = u8::from(queue.settings.auto_delete) * AUTO_DELETE;
    value.push(auto_delete | (u8::from(is_paused) * PAUSED));
    value.extend_from_slice(&queue.settings.arguments.to_entries());
    value
}

pub(crate) fn binding_key(vhost: &str, binding: &DefinedBinding) -> Vec<u8> {
    let mut key = key(BINDING, vhost);
    let mut put = |text: &ShortString| {
        key.push(text.len() as u8);
        key.extend_from_slice(text.as_bytes());
    };
    put(&binding.source);
    put(&binding.destination);
    put(&binding.routing_key);
    key.push(if binding.to_queue { b'q' } else { b'x' });
    key.extend_from_slice(&binding.arguments.to_entries());
    key
}

pub(crate) fn placement_key(vhost: &str) -> Vec<u8> {
    [&[PLACEMENT], vhost.as_bytes()].concat()
}

/// The shard that a placement names.
pub(crate) fn placed_on(value: &[u8]) -> Option<ShardId> {
    Some(ShardId(u64::from_le_bytes(value.try_into().ok()?)))
}

pub(crate) fn vhost_key(vhost: &str) -> Vec<u8> {
    key(VHOST, vhost)
}

pub(crate) fn vhost_value(settings: &VhostSettings) -> Vec<u8> {
    let limits = [settings.limits.connections_max, settings.limits.queues_max];
    let limits = limits.iter().flat_map(|most| most.unwrap_or(u64::MAX).to_le_bytes());
    let mut value: Vec<u8> = limits.collect();
    let (tracing, protected) = (u8::from(settings.tracing), u8::from(settings.protected));
    let grouped = u8::from(settings.group != 0);
    let moved = grouped & u8::from(settings.has_moved);
    value.push(
        (tracing * TRACING) | (protected * PROTECTED) | (grouped * GROUPED) | (moved * MOVED),
    );
    if settings.group != 0 {
        value.extend_from_slice(&settings.group.to_le_bytes());
        value.extend_from_slice(&settings.stay.to_le_bytes());
    }
    let default = settings.default_queue_type.as_deref().unwrap_or_default();
    let tags = settings.tags.iter().map(String::as_str);
    for text in [default, &settings.description].into_iter().chain(tags) {
        put_text(&mut value, text);
    }
    value
}

/// A text with its u16 length before it.
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn take_text(from: &mut &[u8]) -> Option<String> {
    let (len, rest) = from.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
    *from = rest;
    String::from_utf8(text.to_vec()).ok()
}

/// The key of a vhost's parameter.
pub(crate) fn parameter_key(vhost: &str, component: &str, name: &str) -> Vec<u8> {
    let mut key = key(PARAMETER, vhost);
    put_text(&mut key, component);
    key.extend_from_slice(name.as_bytes());
    key
}

/// What the keys of a vhost's parameters begin with.
pub(crate) fn parameter_prefix(vhost: &str) -> Vec<u8> {
    key(PARAMETER, vhost)
}

/// The component and the name of a parameter, by what follows [`parameter_prefix`] in its key.
pub(crate) fn parse_parameter(mut rest: &[u8]) -> Option<(String, String)> {
    Some((take_text(&mut rest)?, String::from_utf8(rest.to_vec()).ok()?))
}

pub(crate) fn global_parameter_key(name: &str) -> Vec<u8> {
    [&[GLOBAL_PARAMETER], name.as_bytes()].concat()
}

pub(crate) fn policy_key(vhost: &str, kind: PolicyKind, name: &str) -> Vec<u8> {
    let byte = match kind {
        PolicyKind::User => POLICY,
        PolicyKind::Operator => OPERATOR_POLICY,
    };
    let mut key = key(byte, vhost);
    key.extend_from_slice(name.as_bytes());
    key
}

pub(crate) fn policy_value(policy: &Policy) -> Vec<u8> {
    let mut value = policy.priority.to_le_bytes().to_vec();
    value.push(policy.apply_to as u8);
    value.extend_from_slice(&(policy.pattern.len() as u32).to_le_bytes());
    value.extend_from_slice(policy.pattern.as_bytes());
    value.extend_from_slice(&policy.definition.to_entries());
    value
}

fn parse_policy(name: &[u8], value: &[u8]) -> Option<Policy> {
    let (priority, value) = value.split_first_chunk::<8>()?;
    let (apply_to, value) = value.split_first()?;
    let (len, value) = value.split_first_chunk::<4>()?;
    let (pattern, definition) = value.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    Some(Policy {
        name: String::from_utf8(name.to_vec()).ok()?,
        pattern: String::from_utf8(pattern.to_vec()).ok()?,
        apply_to: ApplyTo::from_byte(*apply_to)?,
        priority: i64::from_le_bytes(*priority),
        definition: table(definition)?,
    })
}

pub(super) fn parse_settings(value: &[u8]) -> Option<VhostSettings> {
    let (connections, value) = value.split_first_chunk::<8>()?;
    let (queues, value) = value.split_first_chunk::<8>()?;
    let limit = |bytes: &[u8; 8]| Some(u64::from_le_bytes(*bytes)).filter(|most| *most < u64::MAX);
    let limits = VhostLimits { connections_max: limit(connections), queues_max: limit(queues) };
    let (flags, mut rest) = value.split_first()?;
    let (mut group, mut stay) = (0, 0);
    if flags & GROUPED != 0 {
        let (number, after) = rest.split_first_chunk::<2>()?;
        let (begun, after) = after.split_first_chunk::<8>()?;
        (group, stay, rest) = (u16::from_le_bytes(*number), u64::from_le_bytes(*begun), after);
    }
    let default_queue_type = Some(take_text(&mut rest)?).filter(|name| !name.is_empty());
    let description = take_text(&mut rest)?;
    let mut tags = Vec::new();
    while !rest.is_empty() {
        tags.push(take_text(&mut rest)?);
    }
    let (tracing, protected) = (flags & TRACING != 0, flags & PROTECTED != 0);
    let has_moved = flags & MOVED != 0;
    Some(VhostSettings {
        limits,
        description,
        tags,
        default_queue_type,
        tracing,
        protected,
        group,
        stay,
        has_moved,
    })
}

/// Reads a definition; none if it is malformed.
pub(crate) fn parse(key: &[u8], value: &[u8]) -> Option<Definition> {
    let (kind, rest) = key.split_first()?;
    let (len, rest) = rest.split_first_chunk::<2>()?;
    let (vhost, rest) = rest.split_at_checked(u16::from_le_bytes(*len) as usize)?;
    let vhost = String::from_utf8(vhost.to_vec()).ok()?;
    match *kind {
        EXCHANGE => {
            let ([kind, flags], mut arguments) = value.split_first_chunk::<2>()?;
            let kind = ExchangeKind::from_byte(*kind)?;
            let mut number = None;
            let has_number = kind == ExchangeKind::Delayed || flags & NUMBERED != 0;
            if has_number {
                let (bytes, rest) = arguments.split_first_chunk::<8>()?;
                number = Some(u64::from_le_bytes(*bytes));
                arguments = rest;
            }
            let settings = ExchangeSettings {
                kind,
                durable: true,
                auto_delete: flags & AUTO_DELETE != 0,
                internal: flags & INTERNAL != 0,
                arguments: table(arguments)?,
            };
            let name = ShortString::new(rest).ok()?;
            Some(Definition::Exchange { vhost, name, id: number, settings })
        }
        QUEUE => {
            let (id, value) = value.split_first_chunk::<8>()?;
            let (flags, arguments) = value.split_first()?;
            let settings = QueueSettings {
                durable: true,
                exclusive_owner: None,
                auto_delete: flags & AUTO_DELETE != 0,
                arguments: table(arguments)?,
            };
            let (id, name) = (u64::from_le_bytes(*id), ShortString::new(rest).ok()?);
            Some(Definition::Queue { vhost, name, id, settings, paused: flags & PAUSED != 0 })
        }
        BINDING => {
            let mut rest = rest;
            let mut take = || {
                let (len, after) = rest.split_first()?;
                let (text, after) = after.split_at_checked(*len as usize)?;
                rest = after;
                ShortString::new(text).ok()
            };
            let (source, destination, routing_key) = (take()?, take()?, take()?);
            let (kind, arguments) = rest.split_first()?;
            let binding = DefinedBinding {
                source,
                to_queue: *kind == b'q',
                destination,
                routing_key,
                arguments: table(arguments)?,
            };
            Some(Definition::Binding { vhost, binding })
        }
        VHOST => Some(Definition::Vhost { vhost, settings: parse_settings(value)? }),
        kind @ (POLICY | OPERATOR_POLICY) => {
            let kind = if kind == POLICY { PolicyKind::User } else { PolicyKind::Operator };
            Some(Definition::Policy { vhost, kind, policy: parse_policy(rest, value)? })
        }
        _ => None,
    }
}

fn table(entries: &[u8]) -> Option<FieldTable> {
    Table::from_entries(entries).to_owned().ok()
}
