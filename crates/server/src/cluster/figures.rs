//! What a node counts of its cluster.

use super::group::Group;
use super::members::Members;
use courser_cluster::Status;
use courser_management::Scrub as _;
use std::fmt::Write;

impl Members {
    /// The figures of this node's part in the cluster, in the text format of Prometheus.
    pub(super) fn metrics_text(&self) -> String {
        let mut text = String::new();
        let mut put = |name: &str, kind: &str, help: &str, value: u64| {
            // Writing to a String does not fail.
            let _ = write!(text, "# TYPE {name} {kind}\n# HELP {name} {help}\n{name} {value}\n");
        };
        let status = self.status_of_member();
        let there = status.as_ref().map(|status| self.majority(self.groups.home(), status));
        let of = |value: fn(&Status) -> u64| status.as_ref().map_or(0, value);
        let own = self.endpoint.about().node;
        let leads = status.as_ref().is_some_and(|status| status.leader == Some(own));
        put("courser_cluster_is_leader", "gauge", "Whether this node leads", leads.into());
        put(
            "courser_cluster_has_leader",
            "gauge",
            "Whether this node knows who leads",
            self.has_leader().into(),
        );
        put(
            "courser_cluster_term",
            "gauge",
            "The newest term that this node knows",
            of(|status| status.term),
        );
        put(
            "courser_cluster_elections_total",
            "counter",
            "Leaders that this node has seen come",
            of(|status| status.elections),
        );
        put(
            "courser_cluster_entries_last",
            "gauge",
            "The last entry of this node's log",
            of(|status| status.last),
        );
        put(
            "courser_cluster_entries_committed",
            "gauge",
            "Everything up to this entry is committed",
            of(|status| status.committed),
        );
        put(
            "courser_cluster_uncommitted_bytes",
            "gauge",
            "Bytes that wait for a majority",
            of(|status| status.uncommitted_bytes),
        );
        put(
            "courser_cluster_voters",
            "gauge",
            "Members that vote",
            of(|status| status.members.voters.len() as u64),
        );
        put(
            "courser_cluster_voters_connected",
            "gauge",
            "Those of them that take part, as far as this node sees, itself included",
            there.map_or(0, |(_, there)| there as u64),
        );
        put(
            "courser_cluster_majority",
            "gauge",
            "Members that have to agree",
            there.map_or(0, |(needed, _)| needed as u64),
        );
        let scrub = self.scrub.get().map(|scrub| scrub.state()).unwrap_or_default();
        put(
            "courser_journal_scrubbed_bytes_total",
            "counter",
            "Bytes read to find damage",
            scrub.scrubbed_bytes,
        );
        put(
            "courser_journal_scrub_damaged_total",
            "counter",
            "Damaged records and other parts of the journal found so",
            scrub.damaged_total,
        );
        put(
            "courser_journal_scrub_repaired_total",
            "counter",
            "Those that were written again",
            scrub.repaired_total,
        );
        put(
            "courser_journal_scrub_completed_timestamp_seconds",
            "gauge",
            "When all of the journal was read for damage last, since 1970; 0 if not since the start",
            scrub.completed_ms.unwrap_or_default() / 1000,
        );
        let followers =
            status.iter().flat_map(|status| status.followers.iter().map(move |one| (status, one)));
        let lags: Vec<_> = followers
            .map(|(status, one)| (self.name(one.node), status.last.saturating_sub(one.matched)))
            .collect();
        if !lags.is_empty() {
            text.push_str("# TYPE courser_cluster_lag_entries gauge\n# HELP courser_cluster_lag_entries Entries that a member lacks\n");
            for (name, lag) in lags {
                let name = name.replace('\\', "\\\\").replace('"', "\\\"");
                let _ = writeln!(text, "courser_cluster_lag_entries{{member=\"{name}\"}} {lag}");
            }
        }
        self.put_groups(&mut text);
        text
    }

    /// The figures of each group, where there are several.
    fn put_groups(&self, text: &mut String) {
        if !self.groups.are_several() {
            return;
        }
        let (own, groups) = (self.endpoint.about().node, self.groups.all());
        let mut put = |name: &str, help: &str, value: &dyn Fn(&Group) -> Option<u64>| {
            let _ = write!(text, "# TYPE {name} gauge\n# HELP {name} {help}\n");
            for group in &groups {
                if let Some(value) = value(group) {
                    let _ = writeln!(text, "{name}{{group=\"{}\"}} {value}", group.number);
                }
            }
        };
        put("courser_cluster_group_is_leader", "Whether this node leads the group", &|group| {
            Some((group.leader(own) == Some(own)).into())
        });
        put("courser_cluster_group_has_leader", "Whether this node knows who leads it", &|group| {
            Some(group.leader(own).is_some().into())
        });
        put(
            "courser_cluster_group_entries_last",
            "The last entry of this node's log of the group",
            &|group| Some(group.status()?.last),
        );
        put(
            "courser_cluster_group_entries_committed",
            "Everything up to this entry is committed",
            &|group| Some(group.status()?.committed),
        );
        put(
            "courser_cluster_group_uncommitted_bytes",
            "Bytes that wait for a majority",
            &|group| Some(group.status()?.uncommitted_bytes),
        );
    }
}
