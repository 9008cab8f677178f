//! Names of RabbitMQ's for what is done to a node before it is stopped, and after it was started again.

use super::cluster;
use crate::client::{good, segment};
use crate::failure::{Failure, UNAVAILABLE};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, option};
use bytes::Bytes;
use hyper::Method;

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "drain",
        about: "Have this node of a cluster give up its clients, to be stopped: cluster drain",
        arguments: &[
            option("group", "Connections to close at a time, 1 to 250 [default: 100]"),
            option("pause-ms", "Milliseconds between two groups, 0 to 60000 [default: 1000]"),
        ],
        examples: &["drain"],
        intent: "Will put this node into maintenance mode. The node will no longer serve any client traffic!",
        action: Action::Run(drain),
    },
    Spec {
        name: "revive",
        about: "Have this node of a cluster take clients again: cluster resume",
        arguments: &[],
        examples: &["revive"],
        intent: "Will take this node out of maintenance mode ...",
        action: Action::Run(revive),
    },
    Spec {
        name: "suspend_listeners",
        about: "Take no new connections of clients until the listeners are resumed",
        arguments: &[],
        examples: &["suspend_listeners"],
        intent: "Will suspend client connection listeners: no new connections will be accepted ...",
        action: Action::Run(suspend_listeners),
    },
    Spec {
        name: "resume_listeners",
        about: "Take connections of clients again",
        arguments: &[],
        examples: &["resume_listeners"],
        intent: "Will resume client connection listeners ...",
        action: Action::Run(resume_listeners),
    },
];

/// The node that is asked. A broker by itself has no other node that its clients could go to.
fn own(session: &mut Session, instead: &str) -> Result<String, Failure> {
    let status = session.client.find("/api/cluster")?.ok_or_else(|| {
        let text = format!(
            "this broker is not a node of a cluster, so no other one takes over: {instead}"
        );
        Failure::error(UNAVAILABLE, text)
    })?;
    let node = status["node"].as_str().ok_or_else(|| Failure::answer("it names no node"))?;
    Ok(node.to_owned())
}

fn drain(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let instead = "stop it as it is (systemctl stop courser); clients come back when it runs again. To close connections \
                   alone, use 'courser ctl close_all_connections'";
    let node = own(session, instead)?;
    cluster::drain(session, input, &node)
}

fn revive(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let node = own(session, "it was not drained, and takes clients as long as it runs")?;
    cluster::resume(session, &node)
}

fn suspend_listeners(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    change_listeners(session, "suspend")
}

fn resume_listeners(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    change_listeners(session, "resume")
}

/// A node of a cluster has others that its clients can go to: there, listeners go with the drain.
fn change_listeners(session: &mut Session, what: &str) -> Result<Output, Failure> {
    if session.client.find("/api/cluster")?.is_some() {
        let text = "this is a node of a cluster: use 'courser ctl drain' and 'courser ctl revive', which close and open the \
                    listeners for clients too";
        return Err(Failure::error(UNAVAILABLE, text));
    }
    let node = super::node::name(session)?;
    let path = format!("/api/nodes/{}/listeners/{what}", segment(&node));
    good(session.client.call(Method::PUT, &path, Bytes::new())?)?;
    Ok(Output::Text(String::new()))
}
