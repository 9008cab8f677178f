//! The protocol as data: what the description says, with domains resolved and checked. No language
//! appears here.

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
    /// The frame size in bytes that every peer takes.
    pub frame_min_size: u32,
    /// The byte behind every frame.
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
    /// One bit; consecutive bits share a byte, the first is the lowest.
    Bit,
    /// 8 bits.
    Octet,
    /// 16 bits.
    Short,
    /// 32 bits.
    Long,
    /// 64 bits.
    LongLong,
    /// Up to 255 bytes behind one byte of length.
    ShortStr,
    /// Bytes behind four bytes of length.
    LongStr,
    /// Entries behind four bytes of length.
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
