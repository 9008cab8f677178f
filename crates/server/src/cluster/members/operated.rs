//! What an operator sees of the cluster, and does to it.

use super::super::definitions::TOLD_AFTER;
use super::super::drain::{GROUP_MAX, PAUSE_MS_MAX, Pace};
use super::*;

/// How long who adds a node is kept waiting until a majority has added it.
const ADDING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long until it is asked again whether it has.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

impl Members {
    /// Waits until home has a node that it was asked to add: another leader may not have heard of it, and the node would wait
    /// for a copy of the log for ever. Blocks.
    ///
    /// # Errors
    /// When it takes too long, or this node does not lead any more.
    fn wait_until_added(&self, member: &Member, node: &Node) -> Result<(), ClusterError> {
        let until = Instant::now() + ADDING_TIMEOUT;
        while !member.status().members.contains(node.id) {
            if self.leading().is_err() || Instant::now() >= until {
                return Err(ClusterError::Unavailable(format!(
                    "no majority of the cluster has added node '{}' yet: try again",
                    node.name
                )));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }
}

impl Cluster for Members {
    fn status(&self) -> Value {
        let own = self.endpoint.about();
        let Some(status) = self.status_of_member() else {
            let state = match own.formation {
                Some(_) => "waits for a copy of the log",
                None => "forming",
            };
            return json!({ "name": own.cluster, "node": own.name, "state": state, "members": [] });
        };
        let all = status.members.voters.iter().chain(&status.members.learners);
        let members: Vec<Value> = all.map(|id| self.node(&status, *id)).collect();
        let (needed, there) = self.majority(self.groups.home(), &status);
        let others = self.groups.all().into_iter().filter(|group| !group.is_home());
        let groups: Vec<Value> = others.map(|group| self.group(&group)).collect();
        json!({
            "name": own.cluster,
            "node": own.name,
            "groups": groups,
            "state": match status.leader {
                _ if there < needed => "no majority",
                None => "no leader",
                Some(_) => "running",
            },
            "leader": status.leader.map(|id| self.name(id)),
            "term": status.term,
            "committed": status.committed,
            "last": status.last,
            "uncommitted_bytes": status.uncommitted_bytes,
            "draining": self.is_draining(),
            "elections": status.elections,
            "majority": needed,
            "voters_connected": there,
            "members": members,
        })
    }

    fn node_name(&self) -> String {
        self.endpoint.about().name
    }

    fn nodes(&self) -> Vec<ClusterNode> {
        let Some(status) = self.status_of_member() else {
            let (name, role) = (self.endpoint.about().name, ClusterRole::Learner);
            return vec![ClusterNode { name, role, is_connected: true }];
        };
        let all = status.members.voters.iter().chain(&status.members.learners);
        all.map(|id| self.member(&status, *id)).collect()
    }

    fn replicas(&self, group: u16) -> Vec<ClusterNode> {
        let group = self.groups.get(GroupNumber(group));
        let Some((group, status)) = group.and_then(|group| Some((group.clone(), group.status()?)))
        else {
            return Vec::new();
        };
        let all = status.members.voters.iter().chain(&status.members.learners);
        all.map(|id| ClusterNode {
            is_connected: self.takes_part(&group, *id),
            ..self.member(&status, *id)
        })
        .collect()
    }

    fn alarms_elsewhere(&self) -> Vec<(String, &'static str)> {
        let Some(status) = self.status_of_member() else { return Vec::new() };
        let others = self.roster.others().into_iter();
        let others = others.filter(|node| status.members.contains(node.id));
        let rooms: Vec<(Node, bool)> =
            self.runtime.block_on(self.ask_each(others.collect(), &Question::Room));
        let short = rooms.into_iter().filter(|(_, has_room)| !has_room);
        short.map(|(node, _)| (node.name, "disk")).collect()
    }

    fn is_draining(&self) -> bool {
        self.front.upgrade().is_some_and(|front| front.clients.is_draining())
    }

    fn why_not_ready(&self) -> Option<String> {
        if self.is_draining() {
            return Some("this node is drained".into());
        }
        if !self.has_leader() {
            return Some("no node of the cluster leads".into());
        }
        let of_none = |number| format!("this node has no copy of the log of group {number} yet");
        let (all, unknown) = self.groups.all_and_unknown();
        if let Some(number) = unknown.first() {
            return Some(of_none(*number));
        }
        let group = all.iter().find(|group| group.unserved_for() >= TOLD_AFTER)?;
        let (number, limit_s) = (group.number, TOLD_AFTER.as_secs());
        Some(match group.member() {
            Some(_) => {
                format!("no node has served group {number} for more than {limit_s} s")
            }
            // Others may serve it.
            None => of_none(number),
        })
    }

    fn is_quorum_critical(&self) -> bool {
        if self.status_of_member().is_none() {
            return true;
        }
        let own = self.endpoint.about().node;
        self.critical_groups(own).next().is_some()
    }

    fn add(&self, address: &str) -> Result<Value, ClusterError> {
        let member = self.leading()?;
        let formation = self.endpoint.about().formation;
        let unformed = || ClusterError::Unavailable("the cluster is not formed yet".into());
        let question = Question::Join(formation.ok_or_else(unformed)?);
        let question = serde_json::to_string(&question);
        let question = question.map_err(|error| ClusterError::Refused(error.to_string()))?;
        // A node that is added meanwhile may have the same name: then the members are others, and this is refused.
        let status = member.status();
        let asking = async {
            let met =
                self.endpoint.dial(address, courser_cluster::transport::Purpose::Meet, "").await?;
            let of_its_name = self.member_named(&status, &met.about.name);
            if of_its_name.is_some_and(|known| known.id != met.about.node) {
                let name = met.about.name;
                return Err(DialError::Refused(format!(
                    "a member has the name '{name}' already: remove that one first, or name this one otherwise"
                )));
            }
            self.endpoint.ask(address, &question).await?;
            Ok::<About, DialError>(met.about)
        };
        let met = self.runtime.block_on(asking);
        let about = met.map_err(|error| ClusterError::Refused(format!("{address}: {error}")))?;
        // Members are told apart by their names, so that of a member has to be known.
        let kept = self.roster.learn(&about.node(), true);
        kept.map_err(|error| ClusterError::Unavailable(error.to_string()))?;
        self.groups.home().links.set_address(about.node, &about.address);
        if !status.members.contains(about.node) {
            let change = Change::AddLearner(about.node);
            proposed(member.change_members(status.members_index, &[change]))?;
            self.wait_until_added(&member, &about.node())?;
        } else if !member.status().members.contains(about.node) {
            return Err(ClusterError::Unavailable(format!(
                "node '{}' was removed meanwhile: try again",
                about.name
            )));
        }
        Ok(json!({ "name": about.name, "id": format!("{:016x}", about.node.0) }))
    }

    fn remove(&self, name: &str) -> Result<Vec<String>, ClusterError> {
        let member = self.leading()?;
        let status = member.status();
        let node = self.named(&status, name)?;
        if status.leader == Some(node.id) {
            return Err(ClusterError::Refused(format!(
                "node '{name}' leads: have another one lead first (transfer-leader)"
            )));
        }
        self.may_remove(&status.members, &node)?;
        proposed(member.change_members(status.members_index, &[Change::Remove(node.id)]))?;
        self.wait_until_left(&node, status.members_index)?;
        Ok(self.not_voting())
    }

    fn move_vhost(&self, vhost: &str, group: u16) -> Result<(), ClusterError> {
        let _runtime = self.runtime.enter();
        self.front_or_end()?.begin_move(vhost, group)
    }

    fn moved(&self, vhost: &str) -> Result<VhostMove, ClusterError> {
        Ok(match self.front_or_end()?.moved(vhost)? {
            Progress::Running => VhostMove::Running,
            Progress::Done(messages) => VhostMove::Done(messages),
            Progress::Failed(why) => VhostMove::Failed(why),
        })
    }

    fn transfer_leader(&self, group: u16, to: Option<&str>) -> Result<String, ClusterError> {
        let member = self.leading()?;
        if group != GroupNumber::HOME.0 {
            return self.transfer_group(GroupNumber(group), to);
        }
        let status = member.status();
        let node = match to {
            Some(name) => self.would_lead(GroupNumber::HOME, &status, name)?,
            None => (self.runtime.block_on(self.successor(GroupNumber::HOME, &status)))
                .ok_or_else(|| ClusterError::Unavailable("no other node could lead now".into()))?,
        };
        if !status.members.voters.contains(&node) {
            return Err(ClusterError::Refused(format!(
                "node '{}' does not vote yet",
                self.name(node)
            )));
        }
        // When the answer is out: with the lead goes the connection that it goes over.
        self.runtime.spawn(async move {
            tokio::time::sleep(TRANSFER_DELAY).await;
            let handing = tokio::task::spawn_blocking(move || member.transfer_to(node)).await;
            if let Ok(Err(error)) = handing {
                tracing::warn!(%error, "the lead was not handed over");
            }
        });
        Ok(self.name(node))
    }

    fn drain(
        &self,
        name: &str,
        group: usize,
        pause_ms: u64,
    ) -> Result<Option<usize>, ClusterError> {
        if !(1..=GROUP_MAX).contains(&group) || pause_ms > PAUSE_MS_MAX {
            return Err(ClusterError::Refused(format!(
                "group must be from 1 to {GROUP_MAX}, and pause_ms at most {PAUSE_MS_MAX}"
            )));
        }
        let status = self.leading()?.status();
        let node = self.named(&status, name)?;
        if self.critical_groups(node.id).next().is_some() {
            return Err(ClusterError::Unavailable(format!(
                "without node {name} the cluster has no majority: start the other nodes first, or wait until those have \
                 their copies of the log"
            )));
        }
        if !self.another_takes_clients(&status, &node) {
            return Err(ClusterError::Unavailable(format!(
                "no node but {name} takes clients: take another one back first (resume)"
            )));
        }
        if status.leader == Some(node.id) {
            self.transfer_leader(GroupNumber::HOME.0, None)?;
        }
        let answer = self.ask(&node, &Question::Drain(Pace { group, pause_ms }))?;
        serde_json::from_str(&answer).map_err(|error| ClusterError::Unavailable(error.to_string()))
    }

    fn drained(&self, name: &str) -> Result<Drained, ClusterError> {
        let status = self.leading()?.status();
        let node = self.named(&status, name)?;
        let answer = self.ask(&node, &Question::Drained)?;
        if answer.is_empty() {
            return Ok(Drained { draining: false, clients: None });
        }
        let clients = serde_json::from_str(&answer);
        let clients = clients.map_err(|error| ClusterError::Unavailable(error.to_string()))?;
        Ok(Drained { draining: true, clients })
    }

    fn resume(&self, name: &str) -> Result<(), ClusterError> {
        let status = self.leading()?.status();
        let node = self.named(&status, name)?;
        self.ask(&node, &Question::Resume).map(drop)
    }

    fn scrub(&self, name: &str, start: bool) -> Result<ScrubState, ClusterError> {
        let status = self.leading()?.status();
        let node = self.named(&status, name)?;
        let answer = self.ask(&node, &Question::Scrub { start })?;
        serde_json::from_str(&answer).map_err(|error| ClusterError::Unavailable(error.to_string()))
    }

    fn runtime_setting(
        &self,
        name: &str,
        asked: &AskedSetting,
    ) -> Result<SettingInEffect, ClusterError> {
        let status = self.leading()?.status();
        let node = self.named(&status, name)?;
        let answer = self.ask(&node, &Question::Setting(asked.clone()))?;
        let answer: Result<SettingInEffect, String> = serde_json::from_str(&answer)
            .map_err(|error| ClusterError::Unavailable(error.to_string()))?;
        answer.map_err(ClusterError::Refused)
    }

    fn metrics(&self) -> String {
        self.metrics_text()
    }
}
