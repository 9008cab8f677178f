//! What a person sees when the broker has started.

use crate::{Addresses, Config, Node, Server, VERSION};
use std::fmt::Write;

/// Where the broker listens, what it does with messages, and what to try next.
pub fn banner(server: &Server, config: &Config) -> String {
    let mut text = listening(server.all_addresses());
    for (endpoint, address) in server.gateway().iter().flat_map(|gateway| gateway.addresses()) {
        let socket = endpoint.split(' ').next().unwrap_or_default();
        let _ = writeln!(text, "  ZeroMQ      {socket} {address}");
    }
    let (user, what) = user(server, config);
    let _ = writeln!(text, "  User        {user}{what}");
    let _ = writeln!(text, "  Data        {}", config.data_dir.display());
    text.push('\n');
    let port = server.addresses().first().map_or(5672, |address| address.port());
    let _ = writeln!(text, "  Try         perftest --uri amqp://{user}:PASSWORD@localhost:{port}/");
    text.push_str("  Stop        Ctrl-C\n");
    text
}

/// The same for a node of a cluster, which need not be there yet.
pub fn node_banner(node: &Node, config: &Config) -> String {
    let mut text = listening(node.addresses());
    let (cluster, name) = (&config.cluster.name, node.name());
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "  Cluster     node {name} of {cluster}, for other nodes at {}",
        node.address()
    );
    let _ = writeln!(text, "  Data        {}", config.data_dir.display());
    let data_dir = config.data_dir.display();
    let _ = writeln!(text, "\n  Try         courser ctl --data-dir {data_dir} cluster status");
    text.push_str("  Stop        Ctrl-C\n");
    text
}

fn listening(at: &Addresses) -> String {
    let mut text = format!("\n  Courser {VERSION}, an AMQP 0-9-1 broker\n\n");
    for address in &at.amqp {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  Listening   amqp://{address}");
    }
    for address in &at.amqp_tls {
        let _ = writeln!(text, "              amqps://{address}");
    }
    for address in &at.http {
        let _ = writeln!(text, "  HTTP API    http://{address}/api/");
    }
    for address in &at.https {
        let _ = writeln!(text, "  HTTP API    https://{address}/api/");
    }
    for address in &at.metrics {
        let _ = writeln!(text, "  Metrics     http://{address}/metrics");
    }
    for address in &at.metrics_tls {
        let _ = writeln!(text, "  Metrics     https://{address}/metrics");
    }
    text
}

/// A user who can log in, and what is to be known of it.
fn user(server: &Server, config: &Config) -> (String, &'static str) {
    let accounts = server.admin().accounts();
    let own = &config.auth.user;
    let others = accounts.user_count() > 1;
    match accounts.user(own).or_else(|| accounts.users(None).next()) {
        Some(user) => {
            let from = match (user.name == *own && config.auth.loopback_only, others) {
                (true, false) => " (from this machine only)",
                (true, true) => " (from this machine only), and others",
                (false, true) => ", and others",
                (false, false) => "",
            };
            (user.name.clone(), from)
        }
        None => ("NOBODY".into(), " can log in: name a user in the configuration"),
    }
}
