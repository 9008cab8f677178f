//! Commands as a whole, against servers that stand in for a broker.

mod arguments;
mod cluster;
mod one_by_one;
mod other_servers;
mod publishing;
mod rabbitmq_conf;
mod refusals;
mod report;
mod support;
mod waiting;
