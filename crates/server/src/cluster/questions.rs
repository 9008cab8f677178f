//! What nodes ask each other, and answer.

use super::definitions::Part;
use super::drain::Pace;
use super::front::Serves;
use super::members::Members;
use super::moving::Request;
use super::whereabouts;
use crate::scrub::Piece;
use courser_cluster::transport::{About, Formation, Node};
use courser_cluster::{GroupNumber, Leadership, NodeId};
use courser_management::{AskedSetting, ClusterError, Scrub as _};
use courser_store::{Lsn, critical};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long each of the other nodes may take that are asked together.
pub(super) const EACH_TIMEOUT: Duration = Duration::from_secs(2);

/// What nodes ask each other.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Question {
    /// Become part of this cluster.
    Join(Formation),
    /// Has this group removed the node that asks after this entry, in whose opinion it was a member? Without one, is the node
    /// no member? Only the node that leads the group says yes.
    Removed {
        #[serde(default)]
        group: GroupNumber,
        since: Option<u64>,
    },
    /// Take no new clients, and close the connections of those that are there. The answer is how many, if they are
    /// known.
    Drain(Pace),
    /// How far is your drain? The answer is nothing if you are not drained, else how many clients are left, if they are
    /// known.
    Drained,
    /// Take clients again.
    Resume,
    /// Has your disk room for what comes? The answer is a bool.
    Room,
    /// Is there a group in which you can't take part yet? The answer is a bool.
    Waits,
    /// Would you lead this group, or any one, rather than only if no other node can? The answer is a bool.
    Lead {
        #[serde(default)]
        group: Option<GroupNumber>,
    },
    /// Do you take part in this group, with a log that needs no copy of another one, and know who leads? The answer is a bool.
    TakesPart { group: GroupNumber },
    /// Close these connections, which came by way of the node that asks.
    Close {
        #[serde(default)]
        group: GroupNumber,
        names: Vec<String>,
    },
    /// Take part in these groups, which the cluster has besides home.
    Groups(Vec<(GroupNumber, Formation)>),
    /// Hand the lead of a group to this node, if you have it.
    HandOver { group: GroupNumber, to: NodeId },
    /// Is this node a member of the cluster? To be asked of who leads home. The answer is a bool.
    Member(NodeId),
    /// Which group is this vhost in? To be asked of who leads home. The answer is a number, or null if there is no such vhost.
    Where { vhost: String },
    /// Do something for the move of a vhost.
    Move(Request),
    /// Which definitions of home has this group to adopt, which has adopted this version? To be asked of who leads home.
    /// The answer is empty if there is nothing new.
    Definitions {
        group: GroupNumber,
        have: u64,
        /// Not the beginning of them, but what comes behind that.
        #[serde(default)]
        part: Option<Part>,
    },
    /// Have this group, which you lead, adopt this version of the definitions of home.
    Adopt { group: GroupNumber, version: u64 },
    /// How much do the groups do that you lead? The answer is a list of [`Load`].
    Loads,
    /// What has your log of this group at this position? The answer is, in base64, some of the record with the whole pages that it
    /// lies in, from this byte of them on, null if it is damaged or has not come there, or `{"freed":true}` if it is kept no more.
    Record { group: GroupNumber, position: u64, from: usize },
    /// As for a record: the frame at this position, without what is each node's own in it, and frames that follow it.
    Frame { group: GroupNumber, position: u64, from: usize },
    /// How far is the reading of your logs for damage? Begin to read all of them, if `start` is set. The answer is a
    /// [`ScrubState`](courser_management::ScrubState).
    Scrub { start: bool },
    /// What is this setting of yours, or has it become? The answer is a
    /// [`SettingInEffect`](courser_management::SettingInEffect), or why it can't be what is asked for, as a `Result`.
    Setting(AskedSetting),
}

impl Members {
    /// Answers another node.
    pub async fn answer(&self, from: &About, question: &str) -> Result<String, String> {
        match serde_json::from_str(question) {
            Err(error) => Err(format!("the question can't be read: {error}")),
            Ok(Question::Removed { group, since }) => {
                Ok(self.removed_answer(from.node, group, since).await)
            }
            Ok(Question::Drain(pace)) => {
                let front = self.front.upgrade().ok_or("this node ends")?;
                front.drain(pace);
                serde_json::to_string(&front.clients_left()).map_err(|error| error.to_string())
            }
            Ok(Question::Drained) => {
                let front = self.front.upgrade().ok_or("this node ends")?;
                let left = front.clients.is_draining().then(|| front.clients_left());
                left.map_or_else(|| Ok(String::new()), |left| serde_json::to_string(&left))
                    .map_err(|error| error.to_string())
            }
            Ok(Question::Room) => Ok(self.has_room().to_string()),
            Ok(Question::Waits) => Ok(self.notices.has_waiting_group().to_string()),
            Ok(Question::Lead { group }) => {
                let why_not = group
                    .map_or_else(|| self.reluctance(), |group| self.reluctance_to_begin(group));
                let may_lead = why_not.is_none() && !self.is_ending.load(Ordering::Relaxed);
                Ok(may_lead.to_string())
            }
            Ok(Question::TakesPart { group }) => Ok(self.is_part_of(group).to_string()),
            Ok(Question::Resume) => {
                self.front.upgrade().ok_or("this node ends")?.clients.resume();
                Ok(String::new())
            }
            Ok(Question::Close { group, names }) => {
                let front = self.front.upgrade().ok_or("this node ends")?;
                front.close_named(group, &names).map(|()| String::new())
            }
            Ok(Question::Groups(groups)) => self.take_groups(groups).map(|()| String::new()),
            Ok(Question::HandOver { group, to }) => {
                let done = self.hand_over(group, to).await;
                done.map(|()| String::new()).map_err(|why| why.to_string())
            }
            Ok(Question::Member(node)) => self.member_answer(node).await,
            Ok(Question::Where { vhost }) => {
                let Serves::Here(service) = self.groups.home().serves() else {
                    return Err("this node does not lead the cluster".into());
                };
                let group = whereabouts::group_of(&service.shared.broker, &vhost);
                serde_json::to_string(&group).map_err(|error| error.to_string())
            }
            Ok(Question::Move(request)) => {
                self.front.upgrade().ok_or("this node ends")?.answer_move(request)
            }
            Ok(Question::Definitions { group, have, part }) => {
                let front = self.front.upgrade().ok_or("this node ends")?;
                front.definitions_text(group, Lsn(have), part).await
            }
            Ok(Question::Adopt { group, version }) => {
                let front = self.front.upgrade().ok_or("this node ends")?;
                front.wait_for_version(group, Lsn(version)).await.map(|()| String::new())
            }
            Ok(Question::Loads) => {
                serde_json::to_string(&self.own_loads()).map_err(|error| error.to_string())
            }
            Ok(Question::Record { group, position, from }) => {
                self.piece_answer(group, Piece::Record(Lsn(position)), from).await
            }
            Ok(Question::Frame { group, position, from }) => {
                self.piece_answer(group, Piece::Frame(Lsn(position)), from).await
            }
            Ok(Question::Scrub { start }) => {
                let scrub =
                    self.scrub.get().ok_or("this node does not read its logs for damage")?;
                if start {
                    scrub.start();
                }
                serde_json::to_string(&scrub.state()).map_err(|error| error.to_string())
            }
            Ok(Question::Setting(asked)) => {
                let answer = self.runtime_settings.ask(&asked);
                serde_json::to_string(&answer).map_err(|error| error.to_string())
            }
            Ok(Question::Join(formation)) => {
                let own = self.endpoint.about();
                match own.formation {
                    _ if own.has_data => Err(format!(
                        "node '{}' has data of a broker by itself, which would be lost: start it with an empty folder",
                        own.name
                    )),
                    Some(one) if one == formation => Ok(String::new()),
                    Some(_) => Err(format!("node '{}' is in a cluster already", own.name)),
                    None => {
                        tracing::info!(by = from.name, "this node is added to the cluster");
                        self.endpoint.change(|about| about.formation = Some(formation));
                        Ok(String::new())
                    }
                }
            }
        }
    }

    /// Answers [`Question::TakesPart`].
    fn is_part_of(&self, group: GroupNumber) -> bool {
        let member = self.groups.get(group).and_then(|group| group.member());
        member.is_some_and(|member| {
            let knows_leader = matches!(
                *member.leadership().borrow(),
                Leadership::Serving { .. } | Leadership::Following { leader: Some(_) }
            );
            knows_leader && !member.needs_copy()
        })
    }

    /// Asks other nodes at once. One that does not answer in time, or does not understand, says nothing.
    fn asking<T: FromStr + Send + 'static>(
        &self,
        nodes: Vec<Node>,
        question: &str,
    ) -> JoinSet<(Node, Option<T>)> {
        let mut asking = JoinSet::new();
        for node in nodes {
            let (endpoint, question) = (Arc::clone(&self.endpoint), question.to_owned());
            asking.spawn(async move {
                let asked = endpoint.ask(&node.address, &question);
                let said = tokio::time::timeout(EACH_TIMEOUT, asked).await;
                let answer = said.ok().and_then(Result::ok).and_then(|said| said.parse().ok());
                (node, answer)
            });
        }
        asking
    }

    /// What other nodes answer to a question, of those that do in time.
    pub(super) async fn ask_each<T: FromStr + Send + 'static>(
        &self,
        nodes: Vec<Node>,
        question: &Question,
    ) -> Vec<(Node, T)> {
        let Ok(question) = serde_json::to_string(question) else { return Vec::new() };
        let said = self.asking(nodes, &question).join_all().await;
        said.into_iter().filter_map(|(node, answer)| Some((node, answer?))).collect()
    }

    /// The first of some nodes, of which this one may be one, that answers as is wanted. All are asked at once, and it waits only
    /// for those before the one that is found.
    pub(super) fn first_of(
        &self,
        ids: Vec<NodeId>,
        question: &Question,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Option<NodeId> {
        critical::assert_outside("other nodes are asked");
        let question = serde_json::to_string(question).ok()?;
        let own = self.endpoint.about();
        let others = ids.iter().filter(|id| **id != own.node);
        let others = others.filter_map(|id| self.roster.node(*id)).collect();
        self.runtime.block_on(async {
            let mut asking = self.asking::<String>(others, &question);
            let mut answers = BTreeMap::new();
            for id in ids {
                if id == own.node {
                    answers.insert(id, self.answer(&own, &question).await.ok());
                }
                while !answers.contains_key(&id)
                    && let Some(answered) = asking.join_next().await
                {
                    answers.extend(answered.map(|(node, said)| (node.id, said)));
                }
                if answers.get(&id).and_then(Option::as_deref).is_some_and(&is_wanted) {
                    return Some(id);
                }
            }
            None
        })
    }

    /// Asks a member, or this node itself.
    pub(super) fn ask(&self, node: &Node, question: &Question) -> Result<String, ClusterError> {
        critical::assert_outside("another node is asked");
        let own = self.endpoint.about();
        let failed =
            |why: String| ClusterError::Unavailable(format!("node '{}': {why}", node.name));
        let text = serde_json::to_string(question).map_err(|error| failed(error.to_string()))?;
        if node.id == own.node {
            return self.runtime.block_on(self.answer(&own, &text)).map_err(failed);
        }
        let asking = self.endpoint.ask(&node.address, &text);
        self.runtime.block_on(asking).map_err(|error| failed(error.to_string()))
    }
}
