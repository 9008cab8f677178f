//! How many questions of logins the program has at a time, and how many connections it keeps.

use super::*;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(60);
/// Half of them is for logins, and a quarter of that for each address.
const SOCKETS: usize = 8;
const LOGINS: usize = 4;
const ADDRESSES: u8 = 6;
const LOGINS_OF_EACH: usize = 5;

/// What the program has in its hands.
#[derive(Default)]
struct Hands {
    /// Questions without an answer, by what is before the dot in the user's name.
    questions: HashMap<String, usize>,
    questions_most: usize,
    of_one_most: usize,
    connections: usize,
}

/// A program that denies each login, a moment after it may.
#[derive(Clone)]
struct Program {
    hands: Arc<watch::Sender<Hands>>,
    may_answer: Arc<watch::Sender<bool>>,
}

impl Program {
    async fn start() -> (Self, Arc<HttpUsers>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let user_path = format!("http://{}/user", listener.local_addr().expect("an address"));
        let program = Program { hands: Arc::default(), may_answer: Arc::default() };
        let serving = program.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let program = serving.clone();
                tokio::spawn(async move {
                    program.hands.send_modify(|hands| hands.connections += 1);
                    program.answer_all(stream).await;
                    program.hands.send_modify(|hands| hands.connections -= 1);
                });
            }
        });
        let timeout_ms = 30_000;
        let settings = AuthHttp { user_path, timeout_ms, ..AuthHttp::default() };
        (program, HttpUsers::new(&settings, SOCKETS).expect("a thread"))
    }

    async fn answer_all(&self, mut stream: TcpStream) -> Option<()> {
        loop {
            let of = question(&mut stream).await?;
            self.hands.send_modify(|hands| hands.take(&of));
            self.may_answer.subscribe().wait_for(|may| *may).await.ok()?;
            tokio::time::sleep(Duration::from_millis(50)).await;
            // It is out of its hands before the broker can know of the answer.
            self.hands.send_modify(|hands| hands.give_back(&of));
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndeny").await.ok()?;
        }
    }

    async fn wait_until(&self, what: &str, is_so: impl FnMut(&Hands) -> bool) {
        let mut hands = self.hands.subscribe();
        let waited = tokio::time::timeout(PATIENCE, hands.wait_for(is_so)).await;
        assert!(waited.is_ok(), "{what}");
    }
}

impl Hands {
    fn take(&mut self, of: &str) {
        let of_one = self.questions.entry(of.to_owned()).or_default();
        *of_one += 1;
        self.of_one_most = self.of_one_most.max(*of_one);
        self.questions_most = self.questions_most.max(self.questions.values().sum());
    }

    fn give_back(&mut self, of: &str) {
        *self.questions.get_mut(of).expect("it was taken") -= 1;
    }
}

/// Reads a question; gives what is before the dot in the user's name.
async fn question(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read);
        let of = text.split_once("username=").and_then(|(_, rest)| rest.split_once('.'));
        if let Some((of, _)) = of.filter(|_| text.ends_with("password=x")) {
            return Some(of.to_owned());
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

fn log_in(logins: &mut JoinSet<bool>, users: &Arc<HttpUsers>, from: u8, nth: usize) {
    let users = Arc::clone(users);
    logins.spawn(async move {
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, from));
        let come_to = users.log_in(&format!("{from}.{nth}"), b"x", address).await;
        matches!(come_to, Err(NotLetIn::Refused(_)))
    });
}

#[tokio::test]
async fn questions_of_logins_are_bounded_and_no_address_keeps_the_others_out() {
    let (program, users) = Program::start().await;
    let mut logins = JoinSet::new();
    for nth in 0..LOGINS_OF_EACH {
        log_in(&mut logins, &users, 0, nth);
    }
    program.wait_until("one is asked", |hands| hands.questions.contains_key("0")).await;
    log_in(&mut logins, &users, 1, 0);
    program
        .wait_until("another address is kept out", |hands| hands.questions.contains_key("1"))
        .await;
    for from in 2..ADDRESSES {
        (0..LOGINS_OF_EACH).for_each(|nth| log_in(&mut logins, &users, from, nth));
    }
    program.wait_until("all places are taken", |hands| hands.questions_most >= LOGINS).await;
    program.may_answer.send_replace(true);
    while let Some(is_denied) = logins.join_next().await {
        assert!(is_denied.expect("no panic"), "it is answered, though it has waited");
    }
    let most = |hands: &Hands| (hands.questions_most, hands.of_one_most);
    assert_eq!(most(&program.hands.borrow()), (LOGINS, 1), "questions, and those of one address");
    program.wait_until("connections end", |hands| hands.connections <= SOCKETS / 4).await;
}
