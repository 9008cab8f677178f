//! What serves clients, with simulated sockets, disk and time: which task goes on first, what a read or a write takes, when
//! a socket blocks or ends and how long a sync takes is determined by a seed.
//!
//! Clients of all kinds come by sockets and WebSockets, to the node that leads or by way of another one, which passes on
//! requests over HTTP as well. At some moment the broker is stopped, or the node that passes on; or another node leads, as the
//! first one wants it or has vanished from the cluster. A client that does its part never waits longer than it may, and keeps
//! its connection; one that does not is sent away; what was confirmed is delivered or still there; and nothing is left of any of them in the end.
//!
//! Everything is on one thread, and nothing waits for another one: time leaps only when there is nothing to do.
//! `COURSER_SIM_SEED=N` repeats one seed; `COURSER_SIM_SECONDS=N` goes on through seeds for so long, from that one on.

mod chance;
mod client;
mod conduct;
mod copies;
mod disk;
mod led;
mod nodes;
mod pages;
mod route;
mod signal;
mod socket;
mod wire;
mod world;

pub(crate) use wire::ClientWebSocket;

use client::Client;
use conduct::live;
use route::Route;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use world::{END_LIMIT, QUEUES, World};

/// Seeds that are tried where neither a time nor a seed is given.
const SEEDS: u64 = 80;

/// One besides: an alarm holds back a client that is to be told so before it is read.
const MORE_SEEDS: [u64; 1] = [5647];

/// Seeds that are run twice.
const REPEATED: u64 = 40;
/// One besides: an alarm holds two publishers back, which are woken at once when it is over.
const MORE_REPEATED: [u64; 1] = [1507];

/// Turns of tasks between two looks at the time, where they always have something to do.
const TURNS_BEFORE_TIME: u32 = 3;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn clients_are_served_whatever_comes_first() {
    let begun = Instant::now();
    let seconds = number("COURSER_SIM_SECONDS").map(Duration::from_secs);
    let one = number("COURSER_SIM_SEED");
    let first = one.unwrap_or(0);
    let is_over = |seed| match (seconds, one) {
        (Some(seconds), _) => begun.elapsed() >= seconds,
        (None, Some(one)) => seed > one,
        (None, None) => seed >= SEEDS,
    };
    let more = if one.is_none() { &MORE_SEEDS[..] } else { &[] };
    let (mut failed, mut count) = (Vec::new(), 0);
    for seed in more.iter().copied().chain((first..).take_while(|seed| !is_over(*seed))) {
        count += 1;
        if catch_unwind(AssertUnwindSafe(|| run(seed))).is_err() {
            println!("COURSER_SIM_SEED={seed} fails");
            failed.push(seed);
        }
    }
    println!("{count} seeds, {:?}", begun.elapsed());
    assert!(failed.is_empty(), "of {count} seeds fail: {failed:?}");
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    let seeds = (0..REPEATED).chain(MORE_REPEATED);
    let differ: Vec<u64> = seeds.filter(|seed| run(*seed) != run(*seed)).collect();
    assert!(differ.is_empty(), "two runs of a seed differ: {differ:?}");
}

/// Runs a seed, and says by a number what has happened.
fn run(seed: u64) -> u64 {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).event_interval(TURNS_BEFORE_TIME);
    let runtime = builder.build();
    runtime.expect("a runtime").block_on(async {
        let world = World::new(seed);
        tokio::time::timeout(END_LIMIT * 10, turn_of(&world)).await.expect("an end");
        world.chance.digest()
    })
}

async fn turn_of(world: &Arc<World>) {
    let before = World::task_count();
    let (clients, turn_ms) = (world.chance.within(1..=6), world.chance.within(0..=6000));
    let clients = (0..clients).map(|number| {
        // Some come when something may have happened.
        let is_late = world.chance.one_in(3);
        let comes_ms = if is_late { turn_ms..=turn_ms + 4000 } else { 0..=1000 };
        tokio::spawn(live(Arc::clone(world), number, world.chance.ms(comes_ms)))
    });
    let clients: Vec<_> = clients.collect();
    tokio::time::sleep(Duration::from_millis(turn_ms)).await;
    match world.chance.below(5) {
        0 => world.stop(),
        1 => world.change_leader().await,
        2 => world.stop_follower().await,
        _ => {}
    }
    for client in clients {
        if let Err(error) = client.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    world.all_over().await;
    world.resume();
    for is_redirected in [false, true] {
        let is_relayed = world.chance.one_in(2);
        take_all(world, Route { is_relayed, is_redirected, ..Route::default() }).await;
    }
    let missing = world.missing();
    assert!(missing.is_empty(), "confirmed, and neither delivered nor there: {missing:?}");
    world.all_over().await;
    for _ in 0..END_LIMIT.as_secs() {
        if World::task_count() == before && world.left().is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("left: {:?}, {} tasks, not {before}", world.left(), World::task_count());
}

/// Takes what is left in the queues of the broker that is on this way.
async fn take_all(world: &Arc<World>, route: Route) {
    let connected = world.connect(route, &world.network, "last").await;
    let (wire, _) = connected.expect("a connection");
    let mut client = Client::new(world, "last".into(), (wire, route), 0);
    let taken = async {
        client.open().await?;
        for queue in QUEUES {
            client.declare(queue, true).await?;
            client.consume(queue, 0).await?;
        }
        let [home, away] = world.brokers();
        let broker = &if route.is_redirected { away } else { home }.broker;
        let vhost = broker.vhost("/").expect("the default vhost");
        let queues = QUEUES.map(|name| vhost.queue(name.as_bytes()).expect("a queue"));
        let until = tokio::time::Instant::now() + world.limit() * 2;
        while queues.iter().any(|queue| queue.status().messages() > 0) {
            client.settle(client.unacknowledged(), false);
            client.rest(Duration::from_millis(20)).await?;
            if tokio::time::Instant::now() > until {
                let left = queues.each_ref().map(|queue| queue.status());
                panic!("messages are not delivered: {left:?}");
            }
        }
        for queue in QUEUES {
            client.delete(queue).await?;
        }
        client.close().await
    };
    taken.await.expect("a connection");
}
