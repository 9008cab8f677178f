//! Three nodes in this process with three groups, and a vhost that goes through all of them while clients use it.

mod left;

use super::super::testing::{PATIENCE, Three, wait_until};
use super::*;
use crate::Node;
use crate::accounts::let_guest_into;
use courser_broker::admin::{NewQueue, VhostSettings};
use courser_broker::{Broker, Limits};
use courser_client::{Connection, Options, Outgoing, QueueOptions};
use courser_connection::Credentials;
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::atomic::AtomicBool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const V: &str = "orders";
const GROUPS: u16 = 3;

/// With the vhost in home.
async fn start() -> Three {
    let three = Three::start_with(|config| {
        config.cluster.groups = GROUPS;
        config.journal.segment_bytes = 4 << 20;
    })
    .await;
    for group in 0..GROUPS {
        three.leader(GroupNumber(group)).await;
    }
    let home = three.service(GroupNumber::HOME).await;
    home.shared.broker.admin().change_vhost(V, |_| {}).expect("a vhost");
    let_guest_into(&home.shared.broker, V).expect("a permission");
    three
}

impl Three {
    async fn home(&self) -> Arc<Front> {
        Arc::clone(&self.nodes[self.leader(GroupNumber::HOME).await].inner.front)
    }

    /// Moves the vhost, and waits until it is there.
    async fn move_to(&self, group: u16) {
        let home = self.home().await;
        home.begin_move(V, group).expect("begun");
        wait_until("the move", async || match home.moved(V).expect("begun") {
            Progress::Running => false,
            Progress::Done(_) => true,
            Progress::Failed(why) => panic!("not moved to {group}: {why}"),
        })
        .await;
    }

    /// A connection through any node, as soon as there is one.
    async fn connect(&self, nth: usize) -> Connection {
        let mut opened = None;
        wait_until("a connection", async || {
            let address = self.nodes[nth % 3].addresses().amqp[0];
            let Ok(stream) = TcpStream::connect(address).await else { return false };
            let options = Options {
                virtual_host: V.try_into().expect("a short name"),
                credentials: Credentials::Plain { user: b"guest".into(), password: "guest".into() },
                ..Options::default()
            };
            let opening = tokio::time::timeout(PATIENCE, Connection::open_on(stream, options));
            opened = opening.await.ok().and_then(Result::ok);
            opened.is_some()
        })
        .await;
        opened.expect("opened above")
    }

    /// Lists the vhosts of all groups as long as it may: this one is there once, wherever it is. Returns how often.
    async fn list(&self, goes_on: &AtomicBool) -> usize {
        let mut count = 0;
        while goes_on.load(Ordering::Relaxed) {
            let address = self.nodes[count % 3].addresses().http[0];
            let mut stream = TcpStream::connect(address).await.expect("a listener");
            // guest:guest
            let request = "GET /api/vhosts?columns=name HTTP/1.1\r\nHost: test\r\n\
                           Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).await.expect("a listener");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            assert_eq!(answer.matches(V).count(), 1, "{answer}");
            count += 1;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        count
    }

    /// Publishes numbers as long as it may, and again what was not confirmed. Returns the numbers that were.
    async fn publish(&self, goes_on: &AtomicBool) -> u64 {
        let mut next = 0;
        let mut nth = 0;
        while goes_on.load(Ordering::Relaxed) {
            nth += 1;
            let connection = self.connect(nth).await;
            let Ok(channel) = connection.open_channel().await else { continue };
            if channel.queue_declare("q", QueueOptions::durable()).await.is_err()
                || channel.confirm_select().await.is_err()
            {
                continue;
            }
            while goes_on.load(Ordering::Relaxed) {
                let body = next.to_string();
                let message = Outgoing::new(body.as_bytes()).persistent();
                let Ok(confirm) = channel.publish("", "q", message).await else { break };
                match confirm.await {
                    Ok(confirm) if confirm.is_ack() => next += 1,
                    _ => break,
                }
            }
        }
        next
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_confirmed_is_lost_while_a_vhost_goes_through_all_groups() {
    let three = start().await;
    let goes_on = AtomicBool::new(true);
    let moving = async {
        for to in [1, 2, 0, 2, 1] {
            tokio::time::sleep(Duration::from_millis(300)).await;
            three.move_to(to).await;
            let home = three.home().await;
            let view = home.home_admin().expect("it leads").vhost(V).expect("it is there");
            assert_eq!(view.group, to);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        goes_on.store(false, Ordering::Relaxed);
    };
    let (confirmed, (), lists) =
        tokio::join!(three.publish(&goes_on), moving, three.list(&goes_on));
    assert!(confirmed > 0 && lists > 0);
    let connection = three.connect(0).await;
    let channel = connection.open_channel().await.expect("a channel");
    let mut next = 0;
    while let Some(message) = channel.get("q", true).await.expect("the queue") {
        let number: u64 = String::from_utf8_lossy(message.body()).parse().expect("a number");
        // One whose confirm was lost with a connection comes twice.
        assert!(number == next || number + 1 == next, "{number} after {next}");
        next = next.max(number + 1);
    }
    assert!(next >= confirmed, "{next} of {confirmed}");
    connection.close().await.expect("a good end");
    // No other group has anything of it any more.
    wait_until("the groups that had it", async || {
        let mut all = Vec::new();
        for group in 0..GROUPS {
            let front = three.front(three.leader(GroupNumber(group)).await);
            let Ok(admin) = front.admin_of(GroupNumber(group)) else { return false };
            let is_clean = admin.arrivals().is_empty() && admin.held_vhosts().is_empty();
            all.push(is_clean && admin.queue(V, b"q").is_ok() == (group == 1));
        }
        all.into_iter().all(|is_right| is_right)
    })
    .await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_moved_is_refused_and_stays() {
    let three = start().await;
    let home = three.home().await;
    let refused =
        |vhost: &str, to: u16| home.begin_move(vhost, to).expect_err("refused").to_string();
    assert_eq!(refused("none", 1), "no vhost 'none'");
    assert_eq!(refused(V, 0), "vhost 'orders' is in group 0 already");
    assert_eq!(refused(V, 9), "no group 9 of the cluster");
    let other = (three.leader(GroupNumber::HOME).await + 1) % 3;
    let elsewhere = three.front(other).begin_move(V, 1).expect_err("not home");
    assert!(matches!(elsewhere, ClusterError::Unavailable(_)), "{elsewhere}");
    drop(home);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vhost_made_anew_while_the_one_of_its_name_was_moved_stays_and_goes_on() {
    let three = start().await;
    let home = three.home().await;
    let admin = home.home_admin().expect("it leads");
    let known = admin.vhost_handle(V).expect("it is there");
    admin.delete_vhost(V).expect("it may be deleted");
    admin.change_vhost(V, |_| {}).expect("a new one");
    let service = three.service(GroupNumber::HOME).await;
    let_guest_into(&service.shared.broker, V).expect("a permission");
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue(V, "new", queue).expect("a queue");
    let term = home.home_term().expect("it leads");
    let moved = home.run_move(&admin, (&known, term), GroupNumber::HOME, GroupNumber(1)).await;
    let why = moved.expect_err("another vhost has that name");
    assert!(why.contains("is deleted"), "{why}");
    assert_eq!(admin.vhost(V).expect("it is there").group, 0);
    let connection = three.connect(1).await;
    let channel = connection.open_channel().await.expect("a channel");
    assert!(channel.get("new", true).await.expect("it is still there").is_none());
    connection.close().await.expect("a good end");
    drop((service, admin, home));
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_leader_has_left_in_the_middle_is_given_up_by_the_next() {
    let three = start().await;
    let home = three.home().await;
    // As if the leader had gone before it said where the vhost is.
    let turn = home.moves.turn.lock().await;
    let number = home.next_number().expect("it leads");
    let taken = home.have_it_taken((V, number), GroupNumber::HOME, GroupNumber(1)).await;
    assert_eq!(taken, Ok(0));
    let admin = home.home_admin().expect("it leads");
    assert_eq!(admin.held_vhosts(), [V]);
    drop(turn);
    wait_until("the vhost goes on", async || {
        let group = GroupNumber(1);
        let front = three.front(three.leader(group).await);
        let arrived = front.admin_of(group).map(|admin| admin.arrivals());
        admin.held_vhosts().is_empty() && arrived.is_ok_and(|all| all.is_empty())
    })
    .await;
    let connection = three.connect(1).await;
    connection.close().await.expect("a good end");
    drop((admin, home));
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_vhost_has_left_in_home_is_removed_though_its_move_did_not_come_to_that() {
    let three = start().await;
    let home = three.home().await;
    let admin = home.home_admin().expect("it leads");
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue(V, "left", queue).expect("a queue");
    let turn = home.moves.turn.lock().await;
    let number = home.next_number().expect("it leads");
    let known = admin.vhost_handle(V).expect("it is there");
    let taken = home.have_it_taken((V, number), GroupNumber::HOME, GroupNumber(1)).await;
    assert_eq!(taken, Ok(0));
    admin.set_vhost_group(&known, 1).expect("said");
    let service = three.service(GroupNumber::HOME).await;
    let queues = || service.shared.broker.vhost(V).map(|vhost| vhost.queues().len());
    assert_eq!(queues(), Some(1));
    drop(turn);
    wait_until("it is removed", async || queues() == Some(0)).await;
    three.move_to(0).await;
    assert_eq!(queues(), Some(1));
    drop((admin, home, known, service));
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vhost_goes_on_once_its_move_is_given_up_though_it_is_just_read_out() {
    let three = start().await;
    let home = three.home().await;
    let admin = home.home_admin().expect("it leads");
    let goes_on = async || wait_until("it goes on", async || admin.still_vhosts().is_empty()).await;
    let turn = home.moves.turn.lock().await;
    let number = home.next_number().expect("it leads");
    // It is read out for a node that takes nothing.
    admin.stop_vhost(V, number).expect("it is there");
    let mut export = admin.export_vhost(V).expect("no client is in it");
    let (vhost, group) = (V.to_owned(), GroupNumber::HOME);
    let given_up = Request::GiveUp { vhost, group, number, keeps_arrival: true };
    home.answer_move(given_up).expect("it leads");
    goes_on().await;
    export.next_piece().expect_err("it may have changed");
    // One that no node gives up is found.
    let number = home.next_number().expect("it leads");
    admin.stop_vhost(V, number).expect("it is there");
    drop(turn);
    goes_on().await;
    drop((admin, home));
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_fails_forgets_nothing_of_a_vhost_whose_group_has_not_adopted_it_yet() {
    let three = start().await;
    three.move_to(1).await;
    let connection = three.connect(0).await;
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("kept", QueueOptions::durable()).await.expect("a queue");
    connection.close().await.expect("a good end");
    let group = |node: &Node| node.inner.groups.get(GroupNumber(2)).expect("it is there");
    let groups: Vec<_> = three.nodes.iter().map(group).collect();
    let mut late = Vec::new();
    for group in &groups {
        late.push(group.adopting.lock().await);
    }
    three.move_to(2).await;
    let home = three.home().await;
    home.begin_move(V, 0).expect("home knows where it is");
    wait_until("the end of the next move", async || {
        let how = home.moved(V).expect("begun");
        assert!(!matches!(how, Progress::Done(_)), "moved from where it was not adopted");
        how != Progress::Running
    })
    .await;
    drop(late);
    let connection = three.connect(0).await;
    let channel = connection.open_channel().await.expect("a channel");
    assert!(channel.get("kept", true).await.expect("it is still there").is_none());
    connection.close().await.expect("a good end");
    drop(home);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_waits_while_those_before_it_are_settled() {
    let three = start().await;
    let home = three.home().await;
    let turn = home.moves.turn.lock().await;
    home.begin_move(V, 1).expect("begun");
    tokio::time::sleep(2 * ASK_INTERVAL).await;
    assert_eq!(home.moved(V).expect("begun"), Progress::Running);
    drop(turn);
    wait_until("the move", async || matches!(home.moved(V), Ok(Progress::Done(_)))).await;
    drop(home);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_waits_is_not_given_up_with_those_before_it() {
    let three = start().await;
    let home = three.home().await;
    let admin = home.home_admin().expect("it leads");
    let turn = home.moves.turn.lock().await;
    // As an earlier leader of home has left it.
    admin.stop_vhost(V, home.next_number().expect("it leads")).expect("it is there");
    home.begin_move(V, 1).expect("begun");
    let number = home.next_number().expect("it leads");
    let (vhost, group) = (V.to_owned(), GroupNumber::HOME);
    let given_up = Request::GiveUp { vhost, group, number, keeps_arrival: true };
    home.answer_move(given_up).expect("it leads");
    wait_until("it goes on", async || admin.still_vhosts().is_empty()).await;
    drop(turn);
    let now = || home.moved(V).expect("begun");
    wait_until("the end of the move", async || now() != Progress::Running).await;
    assert!(matches!(now(), Progress::Done(_)), "{:?}", now());
    drop((admin, home));
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_knows_no_numbers_gives_up_any_move() {
    let three = start().await;
    let home = three.home().await;
    let turn = home.moves.turn.lock().await;
    let give_up = |group: u16| {
        let text = format!(r#"{{"give_up":{{"vhost":"{V}","group":{group}}}}}"#);
        serde_json::from_str::<Request>(&text).expect("a request")
    };
    let number = home.next_number().expect("it leads");
    let admin = home.home_admin().expect("it leads");
    admin.stop_vhost(V, number).expect("it is there");
    home.answer_move(give_up(0)).expect("it leads");
    wait_until("it goes on", async || admin.still_vhosts().is_empty()).await;
    admin.stop_vhost(V, number).expect_err("that move has ended");
    let next = home.next_number().expect("it leads");
    admin.stop_vhost(V, next).expect("the next one has not");
    let front = three.front(three.leader(GroupNumber(1)).await);
    let other = front.admin_of(GroupNumber(1)).expect("it leads");
    let import = other.import_vhost(V, number, &VhostSettings::default()).expect("it begins");
    front.answer_move(give_up(1)).expect("it leads");
    wait_until("it is forgotten", async || other.arrivals().is_empty()).await;
    tokio::task::spawn_blocking(move || drop(import)).await.expect("no panic");
    drop(turn);
    drop((admin, other, home));
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leads_home_again_says_nothing_of_the_moves_before() {
    let three = start().await;
    three.move_to(1).await;
    let (home, first) = (three.home().await, three.leader(GroupNumber::HOME).await);
    assert!(matches!(home.moved(V), Ok(Progress::Done(_))));
    three.move_lead(GroupNumber::HOME, (first + 1) % 3).await;
    assert!(matches!(home.moved(V), Err(ClusterError::Unavailable(_))));
    three.move_lead(GroupNumber::HOME, first).await;
    let now = home.moved(V);
    assert!(matches!(now, Err(ClusterError::NotFound(_))), "{now:?}");
    three.move_to(2).await;
    assert!(matches!(home.moved(V), Ok(Progress::Done(_))));
    drop(home);
    three.stop().await;
}
