//! The name of the node that is meant, as RabbitMQ's tools take it with `-n`. It chooses no broker, as they do by it: the one
//! that is asked has to have that name.

use crate::client::Client;
use crate::failure::{Failure, UNAVAILABLE};
use bytes::Bytes;
use clap::ArgMatches;
use hyper::Method;

/// A name that the broker's node has to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeName {
    name: String,
    /// Whether the host has to be written whole.
    is_long: bool,
}

/// What a broker calls itself.
pub(crate) struct Own {
    /// As `courser@host`.
    pub name: String,
    /// Its name in the cluster that it is a node of.
    pub member: Option<String>,
}

impl NodeName {
    /// The name that the command line says, if it says one.
    pub fn of(matches: &ArgMatches) -> Option<Self> {
        let name = matches.get_one::<String>("node")?.clone();
        Some(NodeName { name, is_long: matches.get_flag("longnames") })
    }

    /// Refuses a broker of another name.
    pub fn check(&self, client: &mut Client) -> Result<(), Failure> {
        let own = own(client)?;
        if self.fits(&own) {
            return Ok(());
        }
        let text = format!(
            "the broker at {} is node {}, not {}. --node only checks the name: --url, --context or --data-dir says which \
             broker is asked",
            client.target(),
            own.name,
            self.name
        );
        Err(Failure::error(UNAVAILABLE, text))
    }

    fn fits(&self, own: &Own) -> bool {
        let (first, host) = own.name.split_once('@').unwrap_or(("", &own.name));
        match self.name.split_once('@') {
            Some((given, at)) => given == first && self.fits_host(at, host),
            // RabbitMQ's tools add the host of the machine; in a cluster, members have names of their own.
            None => self.name == own.member.as_deref().unwrap_or(first),
        }
    }

    /// A short name is one without a domain.
    fn fits_host(&self, given: &str, host: &str) -> bool {
        let short = host.split('.').next().unwrap_or(host);
        given == host || !self.is_long && !given.contains('.') && given == short
    }
}

/// The names of the node that is asked. Most questions are passed on to the leader of a cluster; that for the cluster is not.
pub(crate) fn own(client: &mut Client) -> Result<Own, Failure> {
    let answer = client.call(Method::GET, "/api/cluster", Bytes::new())?;
    if answer.is_good() {
        let status = answer.json()?;
        let member = status["node"].as_str().ok_or_else(|| Failure::answer("it names no node"))?;
        let name = format!("courser@{member}");
        return Ok(Own { name, member: Some(member.to_owned()) });
    }
    // A broker by itself, or a user who may not see that.
    let overview = client.get("/api/overview?columns=node")?;
    let name = overview["node"].as_str().ok_or_else(|| Failure::answer("it names no node"))?;
    Ok(Own { name: name.to_owned(), member: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(name: &str, is_long: bool, own: &str, member: Option<&str>) -> bool {
        let own = Own { name: own.to_owned(), member: member.map(str::to_owned) };
        NodeName { name: name.to_owned(), is_long }.fits(&own)
    }

    #[test]
    fn a_short_name_has_no_domain_and_a_long_one_is_whole() {
        assert!(fits("courser@h", false, "courser@h", None));
        assert!(fits("courser@h", false, "courser@h.example", None));
        assert!(fits("courser@h.example", true, "courser@h.example", None));
        assert!(fits("courser", false, "courser@h", None));
        for (name, is_long) in [
            ("courser@h", true),
            ("courser@h.other", false),
            ("rabbit@h", false),
            ("rabbit", false),
            ("courser@10", true),
        ] {
            assert!(!fits(name, is_long, "courser@h.example", None), "{name}");
        }
    }

    #[test]
    fn a_member_of_a_cluster_is_not_mistaken_for_another() {
        assert!(fits("a", false, "courser@a", Some("a")));
        assert!(fits("courser@a", false, "courser@a", Some("a")));
        for name in ["b", "courser", "courser@b", "rabbit@a"] {
            assert!(!fits(name, false, "courser@a", Some("a")), "{name}");
        }
    }
}
