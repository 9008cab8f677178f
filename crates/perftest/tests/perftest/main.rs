//! The load tool: its options, its arithmetic, its reports, and whole runs against a broker that fails on purpose.

mod broker;
mod churn;
mod command;
mod compare;
mod latency;
mod ledger;
mod loads;
mod options;
mod prometheus;
mod reconnect;
mod report;
mod runs;
mod stamp;
mod tls;
mod topology;
mod window;
mod work;
