//! Clients, and vhosts that go with their test.

use courser_client::Connection;
use rabbitmq_http_client::blocking_api::Client;
use rabbitmq_http_client::requests::{Permissions, VirtualHostParams};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

pub type Api = Client<&'static str, &'static str, &'static str>;

pub fn api() -> Api {
    Client::new("http://127.0.0.1:15672/api", "guest", "guest")
}

/// A vhost that guest may use.
pub struct Vhost {
    pub api: Api,
    pub name: &'static str,
}

impl Vhost {
    pub fn new(name: &'static str) -> Self {
        let api = api();
        api.create_vhost(&VirtualHostParams::named(name)).expect("a vhost");
        api.declare_permissions(&Permissions::full_access("guest", name)).expect("permissions");
        Vhost { api, name }
    }
}

impl Drop for Vhost {
    fn drop(&mut self) {
        let deleted = self.api.delete_vhost(self.name, true);
        if !std::thread::panicking() {
            deleted.expect("the vhost is deleted");
        }
    }
}

/// A connection of an AMQP client, with what its futures run on.
pub struct Amqp {
    pub runtime: Runtime,
    pub connection: Connection,
}

impl Amqp {
    pub fn open(vhost: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let uri = format!("amqp://guest:guest@127.0.0.1:5672/{}", vhost.replace('/', "%2F"));
        let connection = runtime.block_on(Connection::open(&uri)).expect("a connection");
        Amqp { runtime, connection }
    }
}

/// What `look` finds, as soon as it finds something.
pub fn await_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The members of an object.
pub fn members(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}
