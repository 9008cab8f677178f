//! The definitions that a group adopts, read.

use crate::fault::Fault;
use crate::persistence::GroupDefinitions;
use crate::persistence::definition::{self, Definition};
use crate::persistence::definition_changes::Changes;
use crate::vhost::VhostSettings;
use courser_auth::Record;
use std::collections::BTreeMap;

/// The definitions of a group, read.
#[derive(Default)]
pub(super) struct Wanted {
    /// What they are about; without that, about everything.
    pub changes: Option<Changes>,
    pub vhosts: BTreeMap<String, VhostSettings>,
    pub globals: BTreeMap<Vec<u8>, Vec<u8>>,
    /// By their keys, as they are kept.
    pub accounts: BTreeMap<Vec<u8>, Record>,
}

impl Wanted {
    /// Reads definitions, before anything of them is done.
    pub fn read(definitions: GroupDefinitions) -> Result<Self, Fault> {
        let group = definitions.group;
        let mut wanted = Wanted { changes: definitions.changes, ..Wanted::default() };
        for (key, value) in definitions.records {
            let malformed = || {
                Fault::internal_error(format_args!(
                    "the definition '{}' of group 0 can't be read",
                    key.escape_ascii()
                ))
            };
            match key.first() {
                Some(&definition::GLOBAL_PARAMETER) => {
                    wanted.globals.insert(key, value);
                }
                Some(&definition::VHOST) => match definition::parse(&key, &value) {
                    Some(Definition::Vhost { vhost, settings }) if settings.group == group => {
                        wanted.vhosts.insert(vhost, settings);
                    }
                    _ => return Err(malformed()),
                },
                _ if Record::owns(&key) => {
                    let record = Record::decode(&key, &value).map_err(|_| malformed())?;
                    wanted.accounts.insert(key, record);
                }
                _ => return Err(malformed()),
            }
        }
        Ok(wanted)
    }
}
