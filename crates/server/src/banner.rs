//! What a person sees when the broker has started.

use crate::{Addresses, Config, Node, Server, VERSION};
use std::fmt::Write;
use std::path::PathBuf;

/// Where the broker listens, what it does with messages, and what to try next.
pub fn banner(server: &Server, config: &Config) -> String {
    let mut text = listening(server.all_addresses(), config);
    for (endpoint, address) in server.gateway().iter().flat_map(|gateway| gateway.addresses()) {
        let socket = endpoint.split(' ').next().unwrap_or_default();
        let _ = writeln!(text, "  ZeroMQ      {socket} {address}");
    }
    let (user, what) = user(server, config);
    let _ = writeln!(text, "  User        {user}{what}");
    let _ = writeln!(text, "  Data        {}", config.data_dir.display());
    text.push('\n');
    if config.management.local_socket {
        let data_dir = config.data_dir.display();
        let _ = writeln!(text, "  Try         {} top --data-dir {data_dir}", program());
    }
    text.push_str("  Stop        Ctrl-C\n");
    text
}

/// The same for a node of a cluster, which need not be there yet.
pub fn node_banner(node: &Node, config: &Config) -> String {
    let mut text = listening(node.addresses(), config);
    let (cluster, name) = (&config.cluster.name, node.name());
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "  Cluster     node {name} of {cluster}, for other nodes at {}",
        node.address()
    );
    let _ = writeln!(text, "  Data        {}", config.data_dir.display());
    let data_dir = config.data_dir.display();
    let _ =
        writeln!(text, "\n  Try         {} ctl --data-dir {data_dir} cluster status", program());
    text.push_str("  Stop        Ctrl-C\n");
    text
}

/// How to call this program: by the path it was called by, as a shell does not find it then by its name alone.
fn program() -> String {
    match std::env::args_os().next().map(PathBuf::from) {
        Some(path) if path.components().count() > 1 => path.display().to_string(),
        _ => "courser".to_owned(),
    }
}

fn listening(at: &Addresses, config: &Config) -> String {
    let mut text = format!("\n  Courser {VERSION}, an AMQP 0-9-1 broker\n\n");
    for address in &at.amqp {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  Listening   amqp://{address}");
    }
    for address in &at.amqp_tls {
        let _ = writeln!(text, "              amqps://{address}");
    }
    let http = at.http.iter().map(|address| format!("http://{address}"));
    let https = at.https.iter().map(|address| format!("https://{address}"));
    let prefix = &config.management.path_prefix;
    for root in http.chain(https) {
        if config.management.page {
            let _ = writeln!(text, "  Web page    {root}{prefix}/");
        }
        let _ = writeln!(text, "  HTTP API    {root}{prefix}/api/");
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
        // Others may know users.
        None => ("none".into(), " of the broker's own: 'courser ctl add_user' makes one"),
    }
}
