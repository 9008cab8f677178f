//! What a person sees when the broker has started.

use crate::{Config, Server, VERSION};
use std::fmt::Write;

/// Where the broker listens, what it does with messages, and what to try next.
pub fn banner(server: &Server, config: &Config) -> String {
    let mut text = format!("\n  Courser {VERSION}, an AMQP 0-9-1 broker\n\n");
    for address in server.addresses() {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  Listening   amqp://{address}");
    }
    for (endpoint, address) in server.gateway().iter().flat_map(|gateway| gateway.addresses()) {
        let socket = endpoint.split(' ').next().unwrap_or_default();
        let _ = writeln!(text, "  ZeroMQ      {socket} {address}");
    }
    let user = &config.auth.user;
    let from = if config.auth.loopback_only { " (from this machine only)" } else { "" };
    let _ = writeln!(text, "  User        {user}{from}");
    let _ = writeln!(text, "  Data        {}", config.data_dir.display());
    text.push('\n');
    let port = server.addresses().first().map_or(5672, |address| address.port());
    let _ = writeln!(text, "  Try         perftest --uri amqp://{user}:PASSWORD@localhost:{port}/");
    text.push_str("  Stop        Ctrl-C\n");
    text
}
