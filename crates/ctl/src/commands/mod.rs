//! The table of commands, by what they are about.

mod absent;
mod checks;
mod cluster;
mod columns;
mod connections;
mod definitions;
mod happening;
mod journal;
mod limits;
mod lists;
mod log;
mod maintenance;
mod messages;
mod node;
mod parameters;
mod permissions;
mod plugins;
mod policies;
mod publishing;
mod questions;
mod queues;
mod replicas;
mod report;
mod running;
mod runtime;
mod status;
mod tls;
mod topology;
mod users;
mod vhosts;

use crate::spec::Spec;

/// Commands about one thing.
pub(crate) struct Group {
    pub title: &'static str,
    pub commands: &'static [Spec],
}

/// All commands.
pub(crate) const GROUPS: &[Group] = &[
    Group { title: "The broker", commands: node::COMMANDS },
    Group { title: "Whether it runs", commands: running::COMMANDS },
    Group { title: "The cluster", commands: cluster::COMMANDS },
    Group { title: "Maintenance of a node", commands: maintenance::COMMANDS },
    Group { title: "The journal", commands: journal::COMMANDS },
    Group { title: "Health checks", commands: checks::COMMANDS },
    Group { title: "Log and certificates", commands: log::COMMANDS },
    Group { title: "Settings at run time", commands: runtime::COMMANDS },
    Group { title: "TLS", commands: tls::COMMANDS },
    Group { title: "What happens", commands: happening::COMMANDS },
    Group { title: "Lists", commands: lists::COMMANDS },
    Group { title: "Queues", commands: queues::COMMANDS },
    Group { title: "Replicas of queues", commands: replicas::COMMANDS },
    Group { title: "Exchanges and bindings", commands: topology::EXCHANGES },
    Group { title: "Publishing and consuming", commands: publishing::COMMANDS },
    Group { title: "Messages", commands: messages::COMMANDS },
    Group { title: "Questions", commands: questions::COMMANDS },
    Group { title: "Connections", commands: connections::COMMANDS },
    Group { title: "Users", commands: users::COMMANDS },
    Group { title: "Permissions", commands: permissions::COMMANDS },
    Group { title: "Virtual hosts", commands: vhosts::COMMANDS },
    Group { title: "Limits", commands: limits::COMMANDS },
    Group { title: "Policies", commands: policies::COMMANDS },
    Group { title: "Parameters", commands: parameters::COMMANDS },
    Group { title: "Definitions", commands: definitions::COMMANDS },
    Group { title: "Plugins", commands: plugins::COMMANDS },
    Group { title: "Support", commands: report::COMMANDS },
    Group { title: "Not supported", commands: absent::COMMANDS },
];

/// The command of this name.
pub(crate) fn find(name: &str) -> Option<&'static Spec> {
    GROUPS.iter().flat_map(|group| group.commands).find(|spec| spec.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Action, Kind};
    use std::collections::BTreeSet;

    fn all() -> impl Iterator<Item = &'static Spec> {
        GROUPS.iter().flat_map(|group| group.commands)
    }

    #[test]
    fn each_command_is_there_once() {
        let mut names = BTreeSet::new();
        for spec in all() {
            assert!(names.insert(spec.name), "{} is there twice", spec.name);
        }
    }

    #[test]
    fn templates_name_arguments_that_there_are() {
        for spec in all() {
            let mut templates = vec![spec.intent];
            match &spec.action {
                Action::List(list) => templates.push(list.path),
                Action::Change(change) => templates.extend([change.path, change.done]),
                _ => {}
            }
            for template in templates {
                for part in template.split('{').skip(1) {
                    let name = part.split('}').next().expect("a name");
                    let known =
                        name == "vhost" || spec.arguments.iter().any(|one| one.name == name);
                    assert!(known, "{}: {template}", spec.name);
                }
            }
        }
    }

    #[test]
    fn lists_show_columns_that_they_have() {
        for spec in all() {
            let Action::List(list) = &spec.action else { continue };
            for name in list.default {
                let known = list.columns.iter().any(|(known, _)| known == name);
                assert!(known, "{}: {name}", spec.name);
            }
            if list.columns.len() > list.default.len() {
                let names_columns =
                    |one: &crate::spec::Argument| one.name == "columns" && one.kind == Kind::Any;
                assert!(spec.arguments.iter().any(names_columns), "{}", spec.name);
            }
        }
    }
}
