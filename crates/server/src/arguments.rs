//! The command line of `courser`.

use clap::Parser;
use courser::{Config, ConfigError};
use courser_ctl::{Ctl, Top};
use std::net::SocketAddr;
use std::path::PathBuf;

/// An AMQP 0-9-1 broker. Without options it serves on 127.0.0.1:5672 for user guest, password
/// guest, from this machine only.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "courser",
    version,
    after_help = "Examples:\n  courser\n  courser --listen 127.0.0.1:5673 --data-dir /var/lib/courser\n  \
                  courser --generate-config courser.yaml && courser --config courser.yaml\n  \
                  courser journal verify --data-dir /var/lib/courser\n\n\
                  Settings can also be given in the environment, as COURSER_<SECTION>_<KEY>:\n  \
                  COURSER_AMQP_HEARTBEAT_S=30 courser"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Take settings from this YAML file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Write a file with every setting, its default and what it means, and exit; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "data_dir", "listen"])]
    pub generate_config: Option<PathBuf>,

    /// The data folder of the broker [default: ./courser-data]
    #[arg(long, value_name = "DIR", global = true)]
    pub data_dir: Option<PathBuf>,

    /// Listen here; may be given more than once [default: 127.0.0.1:5672]
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address)]
    pub listen: Vec<SocketAddr>,

    /// The name of the cluster that this broker is a node of [default: courser]
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,

    /// The name of this node [default: the machine's]
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,

    /// Be a node of a cluster, reached by the others at this address
    #[arg(long, value_name = "HOST:PORT")]
    pub cluster_listen: Option<String>,

    /// The nodes that form the cluster, or that this one joins; this one may be among them
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',')]
    pub join: Vec<String>,
}

impl Arguments {
    /// Whether there is an option that only a broker that serves has.
    pub fn serves(&self) -> bool {
        let cluster = [&self.cluster_name, &self.node_name, &self.cluster_listen];
        !self.listen.is_empty() || !self.join.is_empty() || cluster.iter().any(|one| one.is_some())
    }

    /// What the file, the environment and the command line say.
    pub fn settings(&self) -> Result<Config, ConfigError> {
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let mut config = Config::load(self.config.as_deref(), environment)?;
        if let Some(data_dir) = &self.data_dir {
            config.data_dir.clone_from(data_dir);
        }
        if !self.listen.is_empty() {
            config.listen.clone_from(&self.listen);
        }
        if let Some(name) = &self.cluster_name {
            config.cluster.name.clone_from(name);
        }
        if let Some(name) = &self.node_name {
            config.cluster.node_name.clone_from(name);
        }
        if let Some(address) = &self.cluster_listen {
            config.cluster.listen.clone_from(address);
        }
        if !self.join.is_empty() {
            config.cluster.join.clone_from(&self.join);
        }
        config.check()?;
        Ok(config)
    }
}

#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Inspect, verify or repair the journal of a stopped broker
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Recover a cluster of which no majority is left, from a stopped node
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Operate a running broker: inspect, change and check it
    Ctl(Ctl),
    /// Watch a running broker: queues, exchanges, connections, channels
    Top(Top),
    /// Convert the settings of another broker
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a shell completion script
    #[command(
        after_help = "Examples:\n  courser completions bash > /etc/bash_completion.d/courser\n  \
                            courser completions fish > ~/.config/fish/completions/courser.fish"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages, courser.1 and one for each command, into a folder
    Man {
        /// The folder; it must exist
        folder: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
pub(crate) enum JournalCommand {
    /// Show what is in each file
    Inspect,
    /// Check every checksum; fails if anything is damaged
    Verify,
    /// Repair a damaged journal as far as possible and list what is lost; fails if anything is
    Repair,
}

#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show what the copies of this stopped node have, and make a cluster of this node alone of them
    #[command(
        after_help = "Give it the options, the settings file and the environment that the node is started with.\n\n\
                      Example:\n  courser --config /etc/courser/courser.yaml cluster recover\n  \
                      courser --config /etc/courser/courser.yaml cluster recover --from-this-copy\n\n\
                      Without --from-this-copy it changes nothing that a start would not. It is refused while another member \
                      answers. What other members confirmed and this one does not have is lost: read 'The worst day' in docs/cluster.md first."
    )]
    Recover {
        /// Leave the other members behind, with what only they have
        #[arg(long)]
        from_this_copy: bool,
        /// Have a group begin anew whose copy can't be used, without its messages; may be repeated
        #[arg(long, value_name = "GROUP", requires = "from_this_copy")]
        without_group: Vec<u16>,
    },
}

#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum ConfigCommand {
    /// Convert a rabbitmq.conf to settings of this broker, and report on each of its lines
    #[command(
        after_help = "Example:\n  courser config from-rabbitmq /etc/rabbitmq/rabbitmq.conf > courser.yaml\n\n\
                      The report on each line goes to standard error. Exits with 1 if a line can't be read."
    )]
    FromRabbitmq {
        /// The file
        file: PathBuf,
    },
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let help = "expected an IP address and a port, such as 127.0.0.1:5672 or 0.0.0.0:5672";
    text.parse().map_err(|_| help.to_owned())
}
