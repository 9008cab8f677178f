//! The protocol as data: what the description says, with domains resolved and checked. No language appears here.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The whole protocol.
#[derive(Debug, Clone)]
pub struct Protocol {
    /// Version, ports and sizes.
    pub facts: Facts,
    /// Frame types.
    pub frames: Vec<Named>,
    /// Reply codes.
    pub reply_codes: Vec<ReplyCode>,
    /// Value types of a field table.
    pub field_types: Vec<FieldType>,
    /// Classes in the order of the description.
    pub classes: Vec<Class>,
}

/// Version, ports and sizes.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Facts {
    /// The four letters of the protocol header.
    pub name: String,
    /// Major version.
    pub major: u8,
    /// Minor version.
    pub minor: u8,
    /// Revision.
    pub revision: u8,
    /// TCP port.
    pub port: u16,
    /// TCP port with TLS.
    pub tls_port: u16,
    /// The frame size in octets that every peer takes.
    pub frame_min_size: u32,
    /// The octet behind every frame.
    pub frame_end: u8,
}

/// A number with a name.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Named {
    /// Its name, words joined by `-`.
    pub name: String,
    /// The number.
    pub id: u8,
    /// What it is.
    pub doc: String,
}

/// A reply code.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReplyCode {
    /// Its name, words joined by `-`.
    pub name: String,
    /// The code.
    pub value: u16,
    /// What it ends.
    pub closes: Option<Closes>,
    /// What it means.
    pub doc: String,
}

/// What a reply code ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Closes {
    /// The channel (a soft error).
    Channel,
    /// The connection (a hard error).
    Connection,
}

/// A value type of a field table.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FieldType {
    /// The letter before the value.
    pub tag: char,
    /// Our name of it, words joined by `-`.
    pub name: String,
    /// RabbitMQ's name of it.
    pub rabbitmq_name: String,
    /// A further letter that is read as the same type.
    pub also_read: Option<char>,
    /// What it is.
    pub doc: String,
}

/// How a field lies on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// One bit; consecutive bits share an octet, the first is the lowest.
    Bit,
    /// 8 bits.
    Octet,
    /// 16 bits.
    Short,
    /// 32 bits.
    Long,
    /// 64 bits.
    LongLong,
    /// Up to 255 octets behind one octet of length.
    ShortStr,
    /// Octets behind four octets of length.
    LongStr,
    /// Entries behind four octets of length.
    Table,
    /// 64 bits of seconds.
    Timestamp,
}

/// A class with its methods.
#[derive(Debug, Clone)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: u16,
    /// What it is about.
    pub doc: String,
    /// Not in AMQP 0-9-1 itself.
    pub rabbitmq: bool,
    /// The content's properties in the order of the wire; most classes have no content.
    pub properties: Vec<Property>,
    /// Its methods in the order of the description.
    pub methods: Vec<Method>,
}

/// A method with its fields.
#[derive(Debug, Clone)]
pub struct Method {
    /// Its name, words joined by `-`.
    pub name: String,
    /// Its number, unique in its class.
    pub id: u16,
    /// What it does.
    pub doc: String,
    /// Who sends it.
    pub from: From,
    /// Whether an answer is due, or it is one.
    pub synchronous: bool,
    /// Whether a content header and bodies follow.
    pub content: bool,
    /// Not in AMQP 0-9-1 itself.
    pub rabbitmq: bool,
    /// Methods of the same class that answer it.
    pub replies: Vec<String>,
    /// Its fields in the order of the wire.
    pub fields: Vec<Field>,
}

/// Who sends a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// Clients only.
    Client,
    /// Servers only.
    Server,
    /// Either.
    Both,
}

/// A field of a method.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name, words joined by `-`.
    pub name: String,
    /// How it lies on the wire.
    pub wire: Wire,
    /// The domain that it was declared with, if it was.
    pub domain: Option<String>,
    /// Without a meaning: zero when written, ignored when read.
    pub reserved: bool,
    /// What it means; empty for reserved ones.
    pub doc: String,
}

/// A property of a content.
#[derive(Debug, Clone)]
pub struct Property {
    /// Its name, words joined by `-`.
    pub name: String,
    /// How it lies on the wire.
    pub wire: Wire,
    /// Its bit in the word of flags, 15 is the highest.
    pub flag: u8,
    /// What it means.
    pub doc: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Document {
    protocol: Facts,
    frame: Vec<Named>,
    constant: Vec<ReplyCode>,
    domain: Vec<DomainEntry>,
    field_type: Vec<FieldType>,
    class: Vec<ClassEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct DomainEntry {
    name: String,
    r#type: Wire,
    doc: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ClassEntry {
    name: String,
    id: u16,
    doc: String,
    #[serde(default)]
    rabbitmq: bool,
    #[serde(default)]
    properties: Vec<FieldEntry>,
    #[serde(default)]
    method: Vec<MethodEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct MethodEntry {
    name: String,
    id: u16,
    doc: String,
    from: From,
    #[serde(default)]
    synchronous: bool,
    #[serde(default)]
    content: bool,
    #[serde(default)]
    rabbitmq: bool,
    #[serde(default)]
    reply: Vec<String>,
    #[serde(default)]
    fields: Vec<FieldEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FieldEntry {
    name: String,
    r#type: String,
    #[serde(default)]
    reserved: bool,
    #[serde(default)]
    doc: String,
    flag: Option<u8>,
}

/// Reads a description and checks that it holds together.
///
/// # Errors
/// What is wrong with it, for people.
pub fn parse(text: &str) -> Result<Protocol, String> {
    let document: Document = toml::from_str(text).map_err(|error| error.to_string())?;
    let domains: BTreeMap<String, DomainEntry> =
        document.domain.into_iter().map(|domain| (domain.name.clone(), domain)).collect();
    let classes = document
        .class
        .into_iter()
        .map(|class| resolve_class(class, &domains))
        .collect::<Result<_, _>>()?;
    let protocol = Protocol {
        facts: document.protocol,
        frames: document.frame,
        reply_codes: document.constant,
        field_types: document.field_type,
        classes,
    };
    check(&protocol)?;
    Ok(protocol)
}

fn resolve_class(
    entry: ClassEntry,
    domains: &BTreeMap<String, DomainEntry>,
) -> Result<Class, String> {
    let class = &entry.name;
    let methods = entry.method.into_iter().map(|method| {
        let name = method.name;
        let fields = method
            .fields
            .into_iter()
            .map(|field| resolve_field(field, domains))
            .collect::<Result<_, _>>();
        let fields = fields.map_err(|problem| format!("{class}.{name}: {problem}"))?;
        Ok(Method {
            id: method.id,
            doc: method.doc,
            from: method.from,
            synchronous: method.synchronous,
            content: method.content,
            rabbitmq: method.rabbitmq,
            replies: method.reply,
            fields,
            name,
        })
    });
    let methods = methods.collect::<Result<_, String>>()?;
    let properties = entry.properties.into_iter().map(|property| {
        let flag = property
            .flag
            .ok_or_else(|| format!("{class}: property {:?} has no flag", property.name))?;
        let field =
            resolve_field(property, domains).map_err(|problem| format!("{class}: {problem}"))?;
        Ok(Property { name: field.name, wire: field.wire, flag, doc: field.doc })
    });
    let properties = properties.collect::<Result<_, String>>()?;
    Ok(Class {
        id: entry.id,
        doc: entry.doc,
        rabbitmq: entry.rabbitmq,
        properties,
        methods,
        name: entry.name,
    })
}

fn resolve_field(
    entry: FieldEntry,
    domains: &BTreeMap<String, DomainEntry>,
) -> Result<Field, String> {
    let FieldEntry { name, r#type: declared, reserved, mut doc, .. } = entry;
    let (wire, domain) = match domains.get(&declared) {
        Some(domain) => {
            if doc.is_empty() {
                doc.clone_from(&domain.doc);
            }
            (domain.r#type, Some(declared))
        }
        None => (
            elementary(&declared)
                .ok_or_else(|| format!("{name:?} has the unknown type {declared:?}"))?,
            None,
        ),
    };
    if doc.is_empty() && !reserved {
        return Err(format!("{name:?} has no doc"));
    }
    Ok(Field { name, wire, domain, reserved, doc })
}

fn elementary(name: &str) -> Option<Wire> {
    Some(match name {
        "bit" => Wire::Bit,
        "octet" => Wire::Octet,
        "short" => Wire::Short,
        "long" => Wire::Long,
        "longlong" => Wire::LongLong,
        "shortstr" => Wire::ShortStr,
        "longstr" => Wire::LongStr,
        "table" => Wire::Table,
        "timestamp" => Wire::Timestamp,
        _ => return None,
    })
}

fn check(protocol: &Protocol) -> Result<(), String> {
    unique("frame type", protocol.frames.iter().map(|frame| frame.id))?;
    unique("reply code", protocol.reply_codes.iter().map(|code| code.value))?;
    let tags =
        protocol.field_types.iter().flat_map(|kind| [Some(kind.tag), kind.also_read]).flatten();
    unique("field type", tags.clone())?;
    if let Some(tag) = tags.clone().find(|tag| !tag.is_ascii_alphabetic()) {
        return Err(format!("field type {tag:?} is no letter"));
    }
    unique("class", protocol.classes.iter().map(|class| class.id))?;
    for class in &protocol.classes {
        unique(&format!("method of {}", class.name), class.methods.iter().map(|method| method.id))?;
        let mut flags = class.properties.iter().map(|property| property.flag);
        if !flags.clone().is_sorted_by(|first, second| first > second)
            || flags.any(|flag| !(2..=15).contains(&flag))
        {
            return Err(format!(
                "{}: flags of properties must fall, from 15 at most to 2 at least",
                class.name
            ));
        }
        for method in &class.methods {
            let known = |reply: &String| class.methods.iter().any(|other| other.name == *reply);
            if let Some(reply) = method.replies.iter().find(|reply| !known(reply)) {
                return Err(format!("{}.{}: unknown reply {reply:?}", class.name, method.name));
            }
        }
    }
    Ok(())
}

fn unique<T: Ord + std::fmt::Debug>(
    what: &str,
    values: impl Iterator<Item = T>,
) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for value in values {
        if seen.contains(&value) {
            return Err(format!("{what} {value:?} appears twice"));
        }
        seen.insert(value);
    }
    Ok(())
}
