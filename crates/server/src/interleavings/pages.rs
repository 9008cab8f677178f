//! Clients that ask over HTTP, by way of a node that does not lead, for pages of the one that does.

use super::nodes::PassedOn;
use super::route::Route;
use super::socket::{Cut, Network, Socket};
use super::world::{END_LIMIT, World};
use std::io;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;
/// Requests of a client that takes no answer: of the large page, more than fits on its way.
const UNREAD_MAX: usize = 4;
/// As others that wait for an answer of the node that leads.
const ROUTE: Route = Route { is_web_socket: true, is_relayed: true, is_redirected: false };

/// The first page, and the largest that it names: their paths, and what they are.
static PAGES: LazyLock<[(String, Vec<u8>); 2]> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../management/page");
    let read = |path: &str| std::fs::read(format!("{folder}/{path}")).expect("a page");
    let first = read("index.html");
    let text = String::from_utf8_lossy(&first);
    let named = text.split('"').filter_map(|text| text.strip_prefix("./"));
    let named = named.map(|path| (format!("/{path}"), read(path)));
    let largest = named.max_by_key(|(_, bytes)| bytes.len()).expect("a page that is named");
    [("/".to_owned(), first), largest]
});

/// How a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    /// It takes all answers.
    Good,
    /// It takes them slowly, but more of them in half a minute than the node that passes them on has of them.
    Slow,
    /// It takes none.
    TurnsDeaf,
    /// It is gone in the middle of an answer.
    Drops,
    /// So is its machine, and no packet says so.
    Vanishes,
}

/// A client, and its connection.
struct Asker {
    world: Arc<World>,
    name: String,
    network: Network,
    socket: Socket,
    cut: Cut,
}

/// The life of a client.
pub(super) async fn ask(world: Arc<World>, number: u64) {
    let conduct = match world.chance.below(8) {
        0 => Conduct::Slow,
        1 => Conduct::TurnsDeaf,
        2 => Conduct::Drops,
        3 => Conduct::Vanishes,
        _ => Conduct::Good,
    };
    let (name, network) = (format!("{number}, {conduct:?} over HTTP"), world.network.clone());
    let (socket, cut) = connect(&world, &network, &name);
    let mut asker = Asker { world, name, network, socket, cut };
    if conduct == Conduct::TurnsDeaf {
        return asker.turn_deaf().await;
    }
    for _ in 0..asker.world.chance.within(1..=8) {
        let asked_at = Instant::now();
        let page = &PAGES[asker.world.chance.below(2) as usize];
        let answered = match conduct {
            Conduct::Drops | Conduct::Vanishes if asker.world.chance.one_in(3) => {
                return asker.leave(page, conduct).await;
            }
            _ => asker.request(page, conduct == Conduct::Slow).await,
        };
        if let Err(error) = answered {
            asker.check_may_fail(asked_at, &error);
            (asker.socket, asker.cut) = connect(&asker.world, &asker.network, &asker.name);
        }
        let most = if asker.world.chance.one_in(3) { 4000 } else { 20 };
        tokio::time::sleep(asker.world.chance.ms(0..=most)).await;
    }
}

fn connect(world: &Arc<World>, network: &Network, name: &str) -> (Socket, Cut) {
    let (client, server) = network.connect();
    world.pass_on((server, network), PassedOn::Http, name);
    let cut = client.cutter();
    (client, cut)
}

impl Asker {
    /// Asks for a page, and sees that it gets this, or that there is a reason why not.
    async fn request(&mut self, (path, page): &(String, Vec<u8>), is_slow: bool) -> io::Result<()> {
        self.send(path).await?;
        let asked_at = Instant::now();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.in_time(async |socket| socket.read_u8().await).await?);
        }
        let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
        let length = head.split_once("content-length: ").and_then(|(_, rest)| rest.lines().next());
        let length: usize = length.expect("a length").parse().expect("a number");
        let mut body = Vec::new();
        while body.len() < length {
            let most = READ_BYTES.min(length - body.len());
            let mut bytes = vec![0; most];
            let read = self.in_time(async |socket| socket.read(&mut bytes).await).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            body.extend_from_slice(&bytes[..read]);
            if is_slow && self.world.chance.one_in(2) {
                tokio::time::sleep(self.world.chance.ms(0..=500)).await;
            }
        }
        if head.starts_with("http/1.1 503 ") {
            self.check_may_fail(asked_at, &String::from_utf8_lossy(&body));
            return Ok(());
        }
        assert!(head.starts_with("http/1.1 200 "), "{}: {head}", self.name);
        assert!(body == *page, "{}: it got something else than {path}", self.name);
        self.world.chance.note(length as u64);
        Ok(())
    }

    async fn send(&mut self, path: &str) -> io::Result<()> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.in_time(async |socket| socket.write_all(request.as_bytes()).await).await
    }

    /// Reads or writes, which takes no longer than it may.
    async fn in_time<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Socket) -> io::Result<T>,
    ) -> io::Result<T> {
        let (since, world) = (Instant::now(), Arc::clone(&self.world));
        let mut working = pin!(work(&mut self.socket));
        loop {
            match tokio::time::timeout(world.limit(), working.as_mut()).await {
                Ok(done) => return done,
                Err(_) if since.elapsed() < world.limit_to_enter(since) => {}
                Err(_) => panic!("{} waits for an answer at {:?}", self.name, world.age()),
            }
        }
    }

    fn check_may_fail(&self, asked_at: Instant, why: &dyn std::fmt::Display) {
        let (name, age) = (&self.name, self.world.age());
        assert!(self.world.may_end(ROUTE, asked_at), "{name} is not answered at {age:?}: {why}");
    }

    /// Asks for more than it takes, and waits until its connection is ended.
    async fn turn_deaf(&mut self) {
        let (path, _) = &PAGES[1];
        for _ in 0..UNREAD_MAX {
            if self.send(path).await.is_err() {
                return;
            }
        }
        let until = Instant::now() + END_LIMIT;
        while !self.cut.is_over() {
            assert!(Instant::now() < until, "{} is still served", self.name);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Asks for a page, and goes without taking all of it.
    async fn leave(mut self, (path, _): &(String, Vec<u8>), conduct: Conduct) {
        if self.send(path).await.is_err() {
            return;
        }
        let most = if self.world.chance.one_in(2) { 20 } else { 1000 };
        tokio::time::sleep(self.world.chance.ms(0..=most)).await;
        if conduct == Conduct::Vanishes {
            self.cut.cut();
        }
    }
}
