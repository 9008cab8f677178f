//! What clients do, and what becomes of those that do not do their part.

use super::client::{Client, Gone, Lives};
use super::pages;
use super::route::Route;
use super::socket::{Cut, Network};
use super::world::{END_LIMIT, QUEUES, World};
use courser_codec::{Method, ShortStr, basic};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of a message for a client that is slow.
const SLOW_BYTES: usize = 8000;

/// How a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    /// It publishes, consumes and says goodbye.
    Good,
    /// It takes what it is sent slowly.
    Slow,
    /// It publishes all the time.
    Floods,
    /// It says nothing any more.
    FallsSilent,
    /// It reads nothing any more.
    TurnsDeaf,
    /// It is gone, in the middle of a frame.
    Drops,
    /// So is its machine, and no packet says so.
    Vanishes,
    /// It never says enough to log in.
    Idles,
}

impl Conduct {
    fn any(world: &World) -> Self {
        match world.chance.below(14) {
            0 | 1 => Conduct::Slow,
            2 => Conduct::Floods,
            3 => Conduct::FallsSilent,
            4 | 5 => Conduct::TurnsDeaf,
            6 => Conduct::Drops,
            7 => Conduct::Vanishes,
            8 => Conduct::Idles,
            _ => Conduct::Good,
        }
    }

    fn heartbeat_s(self, route: Route, world: &World) -> u16 {
        let some = [1, 2, 10, 60][world.chance.below(4) as usize];
        match self {
            Conduct::FallsSilent if route.is_web_socket && world.chance.one_in(2) => 0,
            // Nothing else tells that it is gone.
            Conduct::FallsSilent | Conduct::Vanishes | Conduct::Idles => some,
            Conduct::Floods => 1,
            // A heartbeat may be behind a large message.
            Conduct::Slow => 60 * world.chance.below(2) as u16,
            _ if world.chance.one_in(3) => some,
            _ => 0,
        }
    }
}

/// The life of a client, which comes after a while.
pub(super) async fn live(world: Arc<World>, number: u64, comes_in: Duration) {
    tokio::time::sleep(comes_in).await;
    if world.chance.one_in(6) {
        return pages::ask(world, number).await;
    }
    let (conduct, route) = (Conduct::any(&world), Route::any(&world.chance));
    let name = format!("{number}, {conduct:?} by {route:?}");
    let mut network = world.network.clone();
    if conduct == Conduct::Slow {
        network.window = 20_000;
    }
    if conduct == Conduct::Floods {
        // More than is read at once is always there.
        network = Network { latency_ms: 0..=0, window: 64 << 10, segment: 2048, ..network };
    }
    let came_at = Instant::now();
    let (wire, cut) = match world.connect(route, &network, &name).await {
        Ok(connected) => connected,
        Err(_) if world.may_end(route, came_at) => return,
        Err(Gone(why)) => panic!("{name}: it is not let in at {:?}: {why}", world.age()),
    };
    let heartbeat_s = conduct.heartbeat_s(route, &world);
    let mut client = Client::new(&world, name.clone(), (wire, route), heartbeat_s);
    let life = match conduct {
        Conduct::Good => good(&mut client).await,
        Conduct::Slow => slow(&mut client, route, &network, &cut).await,
        Conduct::Floods => flood(&mut client).await,
        other => return end_badly(other, client, heartbeat_s, cut).await,
    };
    if let Err(Gone(why)) = life
        && !world.may_end(route, came_at)
    {
        panic!("{name}: its connection is gone at {:?}: {why}", world.age());
    }
}

async fn begin(client: &mut Client) -> Lives<()> {
    client.open().await?;
    for queue in QUEUES {
        client.declare(queue, true).await?;
    }
    Ok(())
}

async fn good(client: &mut Client) -> Lives<()> {
    begin(client).await?;
    let chance = client.world.chance.clone();
    if chance.one_in(2) {
        let queue = QUEUES[chance.below(3) as usize];
        client.consume(queue, chance.within(0..=20) as u16).await?;
    }
    for _ in 0..chance.within(1..=20) {
        act(client).await?;
    }
    client.confirmed().await?;
    client.close().await
}

/// One of the things that clients do.
async fn act(client: &mut Client) -> Lives<()> {
    let chance = client.world.chance.clone();
    let queue = QUEUES[chance.below(3) as usize];
    match chance.below(8) {
        0..=2 => {
            for _ in 0..chance.within(1..=20) {
                let bytes = if chance.one_in(20) { 60_000 } else { 200 };
                client.publish(queue, chance.below(bytes) as usize, chance.one_in(2));
            }
        }
        3 => client.confirmed().await?,
        4 => client.settle(client.unacknowledged(), false),
        5 => client.settle(chance.within(1..=5) as usize, chance.one_in(3)),
        6 => {
            let get = basic::Get { queue: ShortStr::cut(queue), no_ack: false };
            client.request(&Method::BasicGet(get)).await?;
        }
        _ => {
            client.read_no_more();
            client.rest(chance.ms(0..=2000)).await?;
            client.read_again();
        }
    }
    let time = if chance.one_in(5) { chance.ms(0..=5000) } else { chance.ms(0..=20) };
    client.rest(time).await
}

/// Takes what it has published itself, slowly: a message of a WebSocket takes longer than a socket may take nothing. What is on
/// its way to it when nothing more waits is taken in less than half a minute: a ping may be behind it.
async fn slow(client: &mut Client, route: Route, network: &Network, cut: &Cut) -> Lives<()> {
    begin(client).await?;
    let chance = client.world.chance.clone();
    let name = format!("slow {}", client.name);
    client.declare(&name, false).await?;
    let count = 4 * route.bytes_on_its_way(network) / SLOW_BYTES;
    for _ in 0..count {
        client.publish(&name, SLOW_BYTES, false);
    }
    client.confirmed().await?;
    client.acknowledges = false;
    client.consume(&name, 0).await?;
    let is_slow_network = chance.below(4) < if route.is_web_socket { 3 } else { 2 };
    if is_slow_network {
        cut.slow_down(if route.is_relayed { 6000 } else { 1200 });
    }
    let portion = route.bytes_on_its_way(network) / 6;
    while client.received < count as u64 {
        if is_slow_network {
            client.rest(Duration::from_secs(1)).await?;
            continue;
        }
        client.read_no_more();
        client.rest(chance.ms(500..=4000)).await?;
        client.read_again();
        client.read_some(portion).await?;
    }
    cut.slow_down(0);
    client.close().await
}

/// Publishes as fast as it can what goes nowhere, and hears nothing but heartbeats.
async fn flood(client: &mut Client) -> Lives<()> {
    client.open().await?;
    client.open_channel().await?;
    let until = Instant::now() + Duration::from_secs(3);
    let is_over = Arc::new(());
    // Time goes on though there is always something to do.
    let (chance, goes_on) = (client.world.chance.clone(), Arc::downgrade(&is_over));
    tokio::spawn(async move {
        while goes_on.strong_count() > 0 {
            tokio::time::advance(chance.ms(1..=3)).await;
        }
    });
    let flooded = client.flood(until).await;
    drop(is_over);
    flooded?;
    client.close().await
}

/// Does not do its part any more, at some moment.
async fn end_badly(conduct: Conduct, mut client: Client, heartbeat_s: u16, cut: Cut) {
    let world = Arc::clone(&client.world);
    if conduct == Conduct::Idles {
        let until = Instant::now() + world.chance.ms(0..=100);
        client.is_silent = world.chance.one_in(2);
        let begun = client.go_on(until, |_| false).await;
        client.is_silent = true;
        return wait_for_end(begun.map(drop), client, cut).await;
    }
    let life = async {
        begin(&mut client).await?;
        client.consume(QUEUES[0], world.chance.within(0..=20) as u16).await?;
        for _ in 0..world.chance.within(0..=10) {
            act(&mut client).await?;
        }
        match conduct {
            Conduct::FallsSilent => {
                client.is_silent = true;
                if heartbeat_s == 0 {
                    // Nor does it answer a ping.
                    client.read_no_more();
                }
            }
            Conduct::TurnsDeaf => turn_deaf(&mut client).await?,
            Conduct::Vanishes => {
                client.is_silent = true;
                cut.cut();
            }
            _ if world.chance.one_in(2) => client.say_half().await?,
            _ => {}
        }
        Ok(())
    }
    .await;
    match conduct {
        // What is not read of it is lost.
        Conduct::Drops => drop(client),
        _ => wait_for_end(life, client, cut).await,
    }
}

/// Has more sent to it than fits between it and the broker, or a node on its way.
async fn turn_deaf(client: &mut Client) -> Lives<()> {
    let (name, window) = (format!("deaf {}", client.name), client.world.network.window);
    client.declare(&name, false).await?;
    client.acknowledges = false;
    client.consume(&name, 0).await?;
    client.read_no_more();
    let more = if client.world.chance.one_in(2) { 50_000 } else { 3 * window + 300_000 };
    for _ in 0..(window + more) / 5000 {
        client.publish(&name, 5000, false);
    }
    Ok(())
}

/// Holds its end of the connection until the broker ends it.
async fn wait_for_end(life: Lives<()>, mut client: Client, cut: Cut) {
    let until = Instant::now() + END_LIMIT;
    let mut is_over = life.is_err();
    while !is_over {
        if Instant::now() > until {
            client.fail("is still served");
        }
        let next = Instant::now() + Duration::from_secs(1);
        // Who does not read may have nothing to write either.
        is_over = client.go_on(next, |_| false).await.is_err() || cut.is_over();
    }
}
