//! What a new node makes of those that it was told of.

use crate::NodeId;
use crate::transport::{About, Formation};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Who is at an address, or why no answer comes from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The address.
    pub address: String,
    /// Who answered.
    pub met: Result<About, String>,
}

/// What follows from what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This is the cluster that the node is in.
    Formed(Formation),
    /// This node begins the cluster by itself, with the data that it has. The others are added to it.
    Begins,
    /// Some do not answer yet; each with the reason.
    Waits(Vec<(String, String)>),
    /// There is a cluster without this node: an operator has to add it, at one of these nodes.
    NotAdded(Vec<String>),
    /// The settings of the nodes contradict each other.
    Wrong(String),
}

/// What `own`, which belongs to nothing yet, makes of what it has seen at the addresses that it was given.
pub fn judge(own: &About, seen: &[Seen]) -> Verdict {
    let mut nodes = BTreeMap::from([(own.node, own)]);
    for about in seen.iter().filter_map(|one| one.met.as_ref().ok()) {
        // What the network has told of this node itself may be older than what it knows.
        let known = nodes.entry(about.node).or_insert(about);
        if let Some(wrong) = known.clash_with(about) {
            return Verdict::Wrong(wrong);
        }
    }
    if let Some(wrong) = contradiction(nodes.values().copied()) {
        return Verdict::Wrong(wrong);
    }
    let mut formed = nodes.values().filter_map(|about| Some((*about, about.formation.as_ref()?)));
    if let Some((_, formation)) = formed.next() {
        return join(own, &nodes, formation);
    }
    let missing = seen.iter().filter_map(|one| {
        let why = one.met.as_ref().err()?;
        Some((one.address.clone(), why.clone()))
    });
    let missing: Vec<_> = missing.collect();
    if !missing.is_empty() {
        return Verdict::Waits(missing);
    }
    let with_data: Vec<&About> = nodes.values().copied().filter(|about| about.has_data).collect();
    match with_data[..] {
        [] => {}
        [one] if one.node == own.node => return Verdict::Begins,
        [one] => {
            let why = format!("node '{}' has data, and begins the cluster with it", one.name);
            return Verdict::Waits(vec![(one.address.clone(), why)]);
        }
        [one, other, ..] => {
            return Verdict::Wrong(format!(
                "nodes '{}' ({}) and '{}' ({}) both have data of a broker by itself, and a cluster begins with that of one: \
                 start all others with an empty folder",
                one.name, one.address, other.name, other.address
            ));
        }
    }
    let founders: Vec<NodeId> = nodes.keys().copied().collect();
    // All have to choose the same: what the one with the least number has counts.
    let first = nodes.values().next().copied().unwrap_or(own);
    let (group, segment_bytes) = (identity(first, &founders), first.segment_bytes);
    Verdict::Formed(Formation { group, segment_bytes, founders, recovery: None })
}

fn join(own: &About, nodes: &BTreeMap<NodeId, &About>, formation: &Formation) -> Verdict {
    if own.has_data {
        return Verdict::Wrong(format!(
            "there is cluster '{}' already, and this node has data of a broker by itself, which would be lost in it: start \
             it with an empty folder, and bring definitions and messages over",
            own.cluster
        ));
    }
    let members = || nodes.values().filter(|about| about.formation.is_some());
    if members().any(|about| about.formation.as_ref() != Some(formation)) {
        return Verdict::Wrong(
            "the addresses to join lead to different clusters: name those of one".into(),
        );
    }
    if !formation.founders.contains(&own.node) {
        return Verdict::NotAdded(members().map(|about| about.name.clone()).collect());
    }
    match nodes.values().find(|about| !formation.founders.contains(&about.node)) {
        None => Verdict::Formed(formation.clone()),
        Some(other) => Verdict::Wrong(format!(
            "the nodes were given different lists of addresses to join: node '{}' is not in that of the others; give \
             all the same list",
            other.name
        )),
    }
}

/// What two nodes have in common that they must not, or the other way round.
fn contradiction<'a>(nodes: impl Iterator<Item = &'a About>) -> Option<String> {
    let mut names = BTreeMap::new();
    for about in nodes {
        if let Some(other) = names.insert(&about.name, about) {
            return Some(format!(
                "two nodes have the name '{}': {} and {}; give each a name of its own (cluster.node_name)",
                about.name, other.address, about.address
            ));
        }
    }
    None
}

/// The number of a group that these nodes make, of which `first` has the least number: the same on each of them. It is that of the
/// group's journals and not to be known to others, who may know the names and numbers of all nodes.
fn identity(first: &About, founders: &[NodeId]) -> u64 {
    let mut hash = Sha256::new();
    hash.update(first.seed.to_le_bytes());
    hash.update((founders.len() as u64).to_le_bytes());
    founders.iter().for_each(|node| hash.update(node.0.to_le_bytes()));
    hash.update(&first.cluster);
    hash.finalize().first_chunk().map_or(1, |bytes| u64::from_le_bytes(*bytes).max(1))
}
