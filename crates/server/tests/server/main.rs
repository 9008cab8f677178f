//! The broker as a whole: settings, the command, and what sockets see of it.

mod support;

mod accounts;
mod admin;
mod auth_http;
mod changes_of_memory;
mod cluster;
mod cluster_certificates;
mod cluster_clients;
mod cluster_commits;
mod cluster_damage;
mod cluster_freed;
mod cluster_groups;
mod cluster_leaderless;
mod cluster_leaving;
mod cluster_lost_pages;
mod cluster_members;
mod cluster_operated;
mod cluster_paused;
mod cluster_recovered;
mod cluster_settings;
mod cluster_slow_world;
mod cluster_sockets;
mod cluster_vanished;
mod command;
mod config;
mod config_listen;
mod config_mistakes;
mod confirms;
mod connections;
mod ctl;
mod ctl_consuming;
mod ctl_messages;
mod ctl_names;
mod ctl_publishing;
mod ctl_refused;
mod ctl_table;
mod ctl_target;
mod data_dir;
// It counts what the kernel was asked to write.
#[cfg(target_os = "linux")]
mod durable_answers;
#[cfg(feature = "gateway")]
mod gateway;
#[cfg(feature = "gateway")]
mod gateway_peers;
#[cfg(feature = "gateway")]
mod gateway_push;
#[cfg(feature = "gateway")]
mod gateway_xpub;
mod gather;
mod inside;
mod journal_command;
mod lifecycle;
mod loaded_definitions;
mod log;
mod management;
mod oauth;
mod oauth_http;
mod oauth_login;
mod oauth_renewal;
mod open_files;
mod permissions;
mod policies;
mod pressure;
mod proxies;
mod rabbitmq_conf;
mod runtime_settings;
mod scrub;
mod slow_appends;
mod slow_disk;
mod slow_readers;
mod slow_reads;
mod slow_world;
mod suspended_listeners;
mod timers;
mod tls;
mod tls_clients;
mod top;
mod unfinished;
mod upgrade;
mod websocket;
