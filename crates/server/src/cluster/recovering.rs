//! `courser cluster recover`: a cluster of one from the copies of a member that is stopped, where no majority is left.

use super::security::MutualTls;
use crate::config::{Config, ConfigError};
use crate::data_dir::{DataDir, DataDirError};
use crate::tls::TlsError;
use crate::{VERSION, management};
use courser_cluster::forming::{GroupCopy, RecoverError, Survivor};
use courser_cluster::transport::{About, DialError, Endpoint, Purpose, Security};
use courser_cluster::{GroupNumber, NodeId};
use courser_ctl::rfc3339;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;

/// Why a cluster was not recovered.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The settings are not those of a node.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Certificates or keys can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The data folder can't be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The copies can't be used.
    #[error(transparent)]
    Copies(#[from] RecoverError),
    /// It would do harm. Nothing is changed.
    #[error("{0}")]
    Refused(String),
    /// The report can't be written.
    #[error(transparent)]
    Report(#[from] io::Error),
}

/// Reports on `out` what the copies of this node have, which is stopped. `from_this_copy` makes of them a cluster of this node
/// alone, in which the groups `without` a copy that can be used begin anew; without it, nothing is changed but cuts completed.
///
/// # Errors
/// When another member answers, or when a copy can't be used: nothing is changed. An error of the disk may end it half way: it
/// has to be repeated then.
pub async fn recover(
    config: &Config,
    from_this_copy: bool,
    without: &[u16],
    out: &mut (dyn Write + Send),
) -> Result<(), RecoveryError> {
    if !config.cluster.is_on() {
        return Err(RecoveryError::Refused(
            "the settings are not those of a node of a cluster: give this command the options, the settings file and the \
             environment that the node is started with"
                .into(),
        ));
    }
    if !config.data_dir.is_dir() {
        return Err(RecoverError::NoMember(config.data_dir.clone()).into());
    }
    let _data_dir = DataDir::open(&config.data_dir, &*config.disk())?;
    let (cluster, name) = (&config.cluster.name, management::node_name(config));
    let mut survivor = Survivor::open(&config.data_dir, config.disk(), cluster, &name)?;
    let journal = config.journal_options();
    let settled = survivor.settle(&journal);
    for group in &settled {
        writeln!(
            out,
            "group {group}: the end of its log was being cut off when the node stopped; this was completed, as its start would"
        )?;
    }
    for group in without.iter().copied().map(GroupNumber) {
        survivor.leave_out(group)?;
        writeln!(
            out,
            "group {group} is left out and begins anew, without the messages, queues and exchanges of its vhosts: 'courser ctl \
             list_vhosts name group' names these when the node runs"
        )?;
    }
    let found = Found::new(&survivor, &name);
    found.say(cluster, out)?;
    let home = found.usable()?;
    if home.members.voters == [survivor.node()] && !survivor.is_begun() {
        return Err(RecoveryError::Refused(format!(
            "node '{name}' is the only member of its cluster: start it, there is nothing to recover"
        )));
    }
    let answers = ask_others(config, &survivor, &name).await?;
    for (address, answer) in &answers {
        writeln!(out, "{address}: {}", answer.text())?;
    }
    // Once it was begun, this node does not start: it makes no majority.
    let voters = if survivor.is_begun() { &[][..] } else { &home.members.voters[..] };
    if let Some(why) = refusal(&answers, voters, survivor.node()) {
        return Err(RecoveryError::Refused(why));
    }
    if !from_this_copy {
        writeln!(
            out,
            "Nothing {}was changed. With --from-this-copy, what stands above becomes a cluster of this node alone; what other \
             members have confirmed behind these entries is lost then, and the other members are left behind.",
            if settled.is_empty() { "" } else { "else " }
        )?;
        return Ok(());
    }
    survivor.recover(&journal)?;
    // It is done, whether the reader of the report is still there or not: done again on another node, it makes another cluster.
    let _ = writeln!(
        out,
        "Cluster '{cluster}' is node '{name}' alone now, with all entries that stand above; what other members have confirmed \
         behind them is lost. Start this node as usual. Other members of before are refused: start those machines with empty \
         data folders, and add them with 'courser ctl cluster add'."
    );
    Ok(())
}

/// What is in the node's copies.
struct Found {
    copies: Vec<(GroupNumber, Result<GroupCopy, RecoverError>)>,
    /// The names of nodes.
    names: BTreeMap<NodeId, String>,
}

impl Found {
    fn new(survivor: &Survivor, name: &str) -> Self {
        let known = survivor.known().iter().map(|node| (node.id, node.name.clone()));
        Found {
            copies: survivor.groups().map(|group| (group, survivor.copy(group))).collect(),
            names: known.chain([(survivor.node(), name.to_owned())]).collect(),
        }
    }

    fn say(&self, cluster: &str, out: &mut dyn Write) -> io::Result<()> {
        let home = self.copies.iter().find_map(|(_, copy)| copy.as_ref().ok());
        let voters = home.map(|home| home.members.voters.iter().map(|id| self.name(*id)));
        let mut voters: Vec<String> = voters.into_iter().flatten().collect();
        voters.sort();
        writeln!(out, "Cluster '{cluster}', whose voting members were {}:", voters.join(", "))?;
        for (group, copy) in &self.copies {
            match copy {
                Err(error) => writeln!(out, "group {group}: {error}")?,
                Ok(GroupCopy { dir, contents, .. }) => writeln!(
                    out,
                    "group {group}: the last entry is {}, up to position {}; up to entry {} it is known that a majority had \
                     them; {}",
                    contents.last,
                    contents.end,
                    contents.committed,
                    match last_written(dir) {
                        Some(at_ms) => format!("last written to at {}", rfc3339(at_ms)),
                        None => "it is not known when it was last written to".to_owned(),
                    }
                )?,
            }
        }
        Ok(())
    }

    /// The copy of home, if all can be used.
    fn usable(self) -> Result<GroupCopy, RecoveryError> {
        let mut copies = Vec::new();
        for (group, copy) in self.copies {
            copies.push(copy.map_err(|error| match group {
                GroupNumber::HOME => error.into(),
                _ => RecoveryError::Refused(format!(
                    "{error}. Recover from another node; if there is none, '--from-this-copy --without-group {group}' has the \
                     group begin anew, with none of its messages"
                )),
            })?);
        }
        // Home comes first.
        Ok(copies.swap_remove(0))
    }

    fn name(&self, id: NodeId) -> String {
        self.names.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }
}

/// When a log was last written to, in milliseconds since 1970, as the file system says it.
fn last_written(dir: &Path) -> Option<u64> {
    let written = |entry: io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let is_log = entry.path().extension() == Some("log".as_ref());
        let at: SystemTime = entry.metadata().ok().filter(|_| is_log)?.modified().ok()?;
        u64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
    };
    std::fs::read_dir(dir).ok()?.filter_map(written).max()
}

/// What comes from an address where a member was.
enum Answer {
    /// Nothing.
    Silent(String),
    /// A node that is in no cluster yet.
    New(String),
    Member(NodeId, String),
    /// Something that may be a member.
    Unclear(String),
}

impl Answer {
    fn text(&self) -> String {
        match self {
            Answer::Silent(why) => format!("no member answers ({why})"),
            Answer::New(name) => format!("node '{name}' answers, which is in no cluster"),
            Answer::Member(_, name) => format!("member '{name}' answers"),
            Answer::Unclear(why) => format!("something answers: {why}"),
        }
    }
}

/// Asks at all addresses where other members may be.
async fn ask_others(
    config: &Config,
    survivor: &Survivor,
    name: &str,
) -> Result<BTreeMap<String, Answer>, RecoveryError> {
    let settings = &config.cluster;
    let about = About {
        cluster: settings.name.clone(),
        node: survivor.node(),
        process: None,
        name: name.to_owned(),
        address: settings.address().to_owned(),
        version: VERSION.to_owned(),
        segment_bytes: config.journal.segment_bytes,
        // Only what is in no cluster chooses.
        seed: 0,
        formation: Some(survivor.formation().clone()),
        has_data: false,
        known: Vec::new(),
    };
    let security = MutualTls::load(settings)?.map(|security| security as Arc<dyn Security>);
    let endpoint = Endpoint::new(about, settings.read_secret()?, security);
    let known = survivor.known().iter().map(|node| node.address.clone());
    let own = [settings.listen.as_str(), settings.address()];
    let others = known.chain(settings.join.iter().cloned());
    let mut asking = JoinSet::new();
    let mut answers = BTreeMap::new();
    for address in others.filter(|address| !own.contains(&address.as_str())) {
        let nothing = Answer::Silent("it was not asked".into());
        if answers.insert(address.clone(), nothing).is_some() {
            continue;
        }
        let endpoint = Arc::clone(&endpoint);
        asking.spawn(async move {
            let dialled = endpoint.dial(&address, Purpose::Meet, "").await;
            (address, dialled.map(|dialled| dialled.about))
        });
    }
    while let Some(asked) = asking.join_next().await {
        let (address, met) = asked.map_err(io::Error::other)?;
        answers.insert(address, answer(met));
    }
    Ok(answers)
}

fn answer(met: Result<About, DialError>) -> Answer {
    match met {
        Ok(About { formation: None, name, .. }) => Answer::New(name),
        Ok(About { node, name, .. }) => Answer::Member(node, name),
        Err(error @ (DialError::Unreachable(_) | DialError::TimedOut)) => {
            Answer::Silent(error.to_string())
        }
        // It may be a member that this node does not understand.
        Err(error) => Answer::Unclear(error.to_string()),
    }
}

/// Why the cluster must not be recovered from the copies of `own`, if it must not. Any of the voters may make a majority with it.
fn refusal(answers: &BTreeMap<String, Answer>, voters: &[NodeId], own: NodeId) -> Option<String> {
    // One may answer at two addresses.
    let mut members = BTreeMap::new();
    for answer in answers.values() {
        if let Answer::Member(id, name) = answer {
            members.insert(*id, format!("'{name}'"));
        }
    }
    let is_there = |id: &&NodeId| **id == own || members.contains_key(*id);
    let (there, all) = (voters.iter().filter(is_there).count(), voters.len());
    let mut names: Vec<String> = members.values().cloned().collect();
    names.sort();
    let names = names.join(", ");
    if !names.is_empty() && there * 2 > all {
        return Some(format!(
            "{names} and this node are {there} of {all} voting members, a majority: start this node as usual, and nothing is \
             lost"
        ));
    }
    if !names.is_empty() {
        return Some(format!(
            "{names} would be left behind: stop it, run 'courser cluster recover' there too, and recover from the node that \
             has more"
        ));
    }
    let unclear = answers.iter().find_map(|(address, answer)| match answer {
        Answer::Unclear(why) => Some((address, why)),
        _ => None,
    });
    unclear.map(|(address, why)| {
        format!("what answers at {address} may be a member: stop it first ({why})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::{HOME, ONE, Three};

    /// A report whose reader goes after so many lines.
    struct Left(usize);

    impl Write for Left {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            let left = self.0.checked_sub(lines);
            self.0 = left.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_recovery_has_not_failed_when_it_is_done_and_the_reader_of_its_report_has_gone() {
        let mut three = Three::start().await;
        three.leader(HOME).await;
        three.leader(ONE).await;
        let config = three.nodes[0].inner.config();
        for node in three.nodes.drain(..) {
            node.stop().await.expect("stopped");
        }
        let mut lines = 0;
        loop {
            let said = recover(&config, true, &[], &mut Left(lines)).await;
            let again = recover(&config, false, &[], &mut io::sink()).await;
            let is_recovered = match again {
                Ok(()) => false,
                Err(RecoveryError::Refused(why)) => why.contains("the only member"),
                Err(error) => panic!("{error}"),
            };
            assert_eq!(said.is_ok(), is_recovered, "after {lines} lines: {said:?}");
            if is_recovered {
                break;
            }
            lines += 1;
        }
        assert!(lines > 0, "nothing is changed for a reader that does not see what will be");
    }

    fn refused(answers: Vec<Answer>, voters: u64) -> Option<String> {
        let answers = answers.into_iter().enumerate().map(|(at, one)| (at.to_string(), one));
        let voters: Vec<NodeId> = (1..=voters).map(NodeId).collect();
        refusal(&answers.collect(), &voters, NodeId(1))
    }

    fn member(id: u64) -> Answer {
        Answer::Member(NodeId(id), format!("n{id}"))
    }

    fn silent() -> Answer {
        Answer::Silent("gone".into())
    }

    #[test]
    fn a_cluster_is_recovered_where_no_other_member_answers() {
        assert_eq!(refused(vec![silent(), silent()], 3), None);
        assert_eq!(refused(vec![silent(), Answer::New("x".into())], 3), None);
        let is_refused_with = |answers, voters, text: &str| {
            refused(answers, voters).is_some_and(|why| why.contains(text))
        };
        assert!(is_refused_with(vec![member(2), silent()], 3, "2 of 3 voting members"));
        assert!(is_refused_with(vec![member(2), member(3)], 5, "3 of 5 voting members"));
        assert!(is_refused_with(vec![member(2), member(2)], 5, "'n2' would be left behind"));
        assert!(is_refused_with(vec![member(2), silent()], 5, "'n2' would be left behind"));
        // One that does not vote makes no majority.
        assert!(is_refused_with(vec![member(9), silent()], 3, "'n9' would be left behind"));
        assert!(is_refused_with(vec![Answer::Unclear("?".into())], 3, "may be a member"));
    }
}
