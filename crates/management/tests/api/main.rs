//! The HTTP API against a broker in this process.

mod accounts;
mod bodies;
mod conventions;
mod definitions;
mod documented;
mod lists;
mod login;
mod matrix;
mod messages;
mod objects;
mod support;
mod writes;
