//! The HTTP API against a broker in this process.

mod accounts;
mod audit;
mod bodies;
mod browsers;
mod conventions;
mod definitions;
mod direct;
mod documented;
mod events;
mod floods;
mod groups;
mod insight;
mod lists;
mod log;
mod login;
mod matrix;
mod messages;
mod metrics;
mod metrics_format;
mod objects;
mod pairs;
mod pause;
mod searches;
mod streams;
mod support;
mod writes;
