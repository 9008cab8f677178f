//! Reads the description into the model: TOML in, domains resolved, numbers checked.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::model::{
    Class, Facts, Field, FieldType, From, Method, Named, Property, Protocol, ReplyCode, Wire,
};

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
