//! The client, against a server made of the connection machine that does what each test writes down.

mod batch;
mod closing;
mod connection;
mod consume;
mod dropped;
mod publish;
mod recovered;
mod request;
mod support;
mod uri;
