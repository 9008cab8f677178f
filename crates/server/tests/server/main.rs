//! The broker as a whole: settings, the command, and what sockets see of it.

mod support;

mod command;
mod config;
mod confirms;
mod connections;
mod lifecycle;
mod policies;
mod pressure;
mod timers;
