//! What serves clients, with simulated sockets, disk and time: which task goes on first, what a read or a write takes, when
//! a socket blocks or ends and how long a sync takes is determined by a seed.
//!
//! Clients of all kinds come by sockets, WebSockets and relays; at some moment the broker is stopped, or its node vanishes from
//! the cluster. A client that does its part never waits longer than it may, and keeps its connection; one that does not is sent away;
//! what was confirmed is delivered or still there; and nothing is left of any of them in the end.
//!
//! Everything is on one thread, and nothing waits for another one: time leaps only when there is nothing to do.
//! `COURSER_SIM_SEED=N` repeats one seed; `COURSER_SIM_SECONDS=N` goes on through seeds for so long, from that one on.

mod chance;
mod client;
mod conduct;
mod disk;
mod signal;
mod socket;
mod wire;
mod world;

use client::Client;
use conduct::live;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use world::{END_LIMIT, QUEUES, Route, World};

/// Seeds that are tried where neither a time nor a seed is given.
const SEEDS: u64 = 80;

/// Seeds that are run twice.
const REPEATED: u64 = 40;

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
    let mut failed = Vec::new();
    let mut seed = first;
    while !is_over(seed) {
        if catch_unwind(AssertUnwindSafe(|| run(seed))).is_err() {
            println!("COURSER_SIM_SEED={seed} fails");
            failed.push(seed);
        }
        seed += 1;
    }
    println!("{} seeds, {:?}", seed - first, begun.elapsed());
    assert!(failed.is_empty(), "of {} seeds fail: {failed:?}", seed - first);
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    let differ: Vec<u64> = (0..REPEATED).filter(|seed| run(*seed) != run(*seed)).collect();
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
    let clients = world.chance.within(1..=6);
    let clients: Vec<_> =
        (0..clients).map(|number| tokio::spawn(live(Arc::clone(world), number))).collect();
    tokio::time::sleep(world.chance.ms(0..=6000)).await;
    match world.chance.below(4) {
        0 => world.stop(),
        1 => world.vanish().await,
        _ => {}
    }
    for client in clients {
        if let Err(error) = client.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    world.all_over().await;
    world.resume();
    for route in [Route::default(), Route { is_redirected: true, ..Route::default() }] {
        take_all(world, route).await;
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
    let (wire, _) = world.connect(route, &world.network, "last").await;
    let mut client = Client::new(world, "last".into(), wire, 0);
    let taken = async {
        client.open().await?;
        for queue in QUEUES {
            client.declare(queue, true).await?;
            client.consume(queue, 0).await?;
        }
        let vhost = world.brokers[usize::from(route.is_redirected)]
            .broker
            .vhost("/")
            .expect("the default vhost");
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
