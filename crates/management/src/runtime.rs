//! Settings of a node that can be changed while it runs, until it is started again or reads its configuration again.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is asked about such a setting: what it is now, or that it be something else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskedSetting {
    /// Which one, and what it is to be.
    pub setting: RuntimeSetting,
    /// Who asks.
    pub by: String,
}

/// A setting, and what it is to be; nothing asks what it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeSetting {
    /// `log.level`.
    LogLevel(Option<NewLevel>),
    /// `limits.memory_high_bytes`.
    MemoryLimit(Option<NewLimit>),
}

/// What is to be logged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewLevel {
    /// As in `log.level`.
    pub level: String,
    /// The part of the program that it is for; all of it without one.
    pub target: Option<String>,
}

/// From when on publishers are to be held back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewLimit {
    /// As in `limits.memory_high_bytes`.
    Bytes(u64),
    /// Of the memory of the machine, or of the control group.
    Fraction(f64),
}

/// A setting as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingInEffect {
    /// What it is.
    pub value: Value,
    /// What it was, if it has just been set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What the configuration has.
    pub configured: Value,
    /// Who has set it since the configuration was read.
    pub changed_by: Option<String>,
    /// When that was, in milliseconds since 1970.
    pub changed_at_ms: Option<u64>,
}
