//! What a node that leads a group answers the one that leads home.

use super::super::carrying::blocking;
use super::super::front::{Front, Serves};
use super::note;
use super::request::{Open, Progress, Request};
use courser_broker::Fault;
use courser_broker::admin::Admin;
use courser_cluster::GroupNumber;

impl Front {
    /// Answers the node that leads home.
    pub(in super::super) fn answer_move(&self, request: Request) -> Result<String, String> {
        match request {
            Request::Take { vhost, from, to, number } => {
                let admin = self.admin_of(to)?;
                note(&mut self.moves.taking.lock(), (vhost.clone(), number), Progress::Running);
                let front = self.moves.front.upgrade().ok_or("this node ends")?;
                tokio::spawn(async move {
                    let taken = front.take_vhost(admin, (&vhost, number), (from, to)).await;
                    let progress = taken.map_or_else(Progress::Failed, Progress::Done);
                    note(&mut front.moves.taking.lock(), (vhost, number), progress);
                });
                Ok(String::new())
            }
            Request::Taking { vhost, number } => {
                let progress = self.moves.taking.lock().get(&(vhost, number)).cloned();
                let unknown = || Progress::Failed("another node leads the group now".into());
                let progress = progress.unwrap_or_else(unknown);
                serde_json::to_string(&progress).map_err(|error| error.to_string())
            }
            Request::Open { group } => {
                let admin = self.admin_of(group)?;
                let arrived = admin.arrivals().into_iter().map(|arrival| arrival.name).collect();
                let open = Open { held: admin.still_vhosts(), arrived };
                serde_json::to_string(&open).map_err(|error| error.to_string())
            }
            Request::GiveUp { vhost, group, number, keeps_arrival } => {
                let admin = self.admin_of(group)?;
                tokio::spawn(async move {
                    let name = vhost.clone();
                    let given_up =
                        blocking(move || give_up(&admin, (&name, number), group, keeps_arrival));
                    if let Err(why) = given_up.await {
                        tracing::warn!(vhost, why, "a move can't be given up yet");
                    }
                });
                Ok(String::new())
            }
        }
    }

    /// The broker of a group, if this node leads it.
    pub(super) fn admin_of(&self, group: GroupNumber) -> Result<Admin, String> {
        match self.groups.get(group).map(|group| group.serves()) {
            Some(Serves::Here(service)) => Ok(service.shared.broker.admin()),
            _ => Err(format!("this node does not lead group {group}")),
        }
    }
}

/// Number 0 is of a version that has none, and means any move.
pub(super) fn give_up(
    admin: &Admin,
    (vhost, number): (&str, u64),
    group: GroupNumber,
    keeps_arrival: bool,
) -> Result<(), Fault> {
    if !keeps_arrival {
        admin.forget_arrival(vhost, if number == 0 { u64::MAX } else { number })?;
    }
    // In another group than home says it may stand still, and is about to be removed.
    let goes_on = keeps_arrival || number == 0;
    // Also before it stands still: it shall not begin to.
    if goes_on && admin.vhost(vhost).is_some_and(|vhost| vhost.group == group.0) {
        // Moves to come have not ended.
        let number = if number == 0 { admin.vhost_mover(vhost)? } else { number };
        admin.start_vhost(vhost, number)?;
    }
    Ok(())
}
