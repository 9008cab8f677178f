//! What is defined and deleted on a disk without room.

use crate::{
    MESSAGES, ack_next, declare_limited, give_room, make_checkpoints, on_a_full_disk, publish,
    ready, start, start_with, wait_for,
};
use courser_auth::{PasswordHash, Permission, User};
use courser_broker::admin::NewQueue;
use courser_codec::{Method, ShortStr, queue};
use courser_journal::testing::FakeDisk;
use courser_sim::{Client, PLAIN, checkpoint, use_up_all_room};
use courser_store::Log;

fn bind_to_fanout(client: &mut Client) {
    let bind = queue::Bind {
        queue: ShortStr::from_static("q"),
        exchange: ShortStr::from_static("amq.fanout"),
        ..Default::default()
    };
    client.request(PLAIN, &Method::QueueBind(bind)).expect("there is room");
}

fn delete(client: &mut Client, name: &str) {
    let queue = ShortStr::try_from(name).expect("short");
    let delete = queue::Delete { queue, ..Default::default() };
    client.request(PLAIN, &Method::QueueDelete(delete)).expect("it is taken even now");
}

#[test]
fn a_new_queue_does_not_inherit_what_a_deleted_one_had() {
    let disk = FakeDisk::new(6);
    let (store, broker, mut client) = on_a_full_disk(&disk);
    give_room(&disk, &store);
    bind_to_fanout(&mut client);
    assert!(checkpoint(&store, &broker));
    use_up_all_room(&disk, &store);
    delete(&mut client, "q");
    assert!(client.declare("q", None).is_err());
    give_room(&disk, &store);
    client.declare("q", None).expect("there is room");
    store.journal().flush_once();
    disk.kill();
    drop((client, broker, store));
    let (store, broker, mut client) = start(&disk);
    client.publish(PLAIN, "amq.fanout", "", &[(300, 20)], true).expect("there is room");
    assert_eq!(ready(&broker), 0);
    // What neither of two checkpoints needs is freed.
    assert!(checkpoint(&store, &broker) && checkpoint(&store, &broker));
    assert!(store.journal().usage().segments <= 2, "its messages are still held");
}

#[test]
fn a_new_queue_inherits_nothing_after_a_restart_that_is_followed_by_damage_to_a_checkpoint() {
    let disk = FakeDisk::new(12);
    let (store, broker, mut client) = start(&disk);
    declare_limited(&mut client, "q");
    bind_to_fanout(&mut client);
    assert!(checkpoint(&store, &broker));
    use_up_all_room(&disk, &store);
    delete(&mut client, "q");
    assert!(store.journal().has_unlogged());
    give_room(&disk, &store);
    assert!(checkpoint(&store, &broker));
    store.journal().close().expect("nothing fails");
    drop((client, broker, store));

    let (store, broker, mut client) = start_with(true, &disk);
    let checkpoints = make_checkpoints(&store, &broker);
    wait_for(&|| !store.journal().awaits_checkpoint());
    client.declare("q", None).expect("there is room");
    store.journal().wait_durable(store.end()).expect("nothing fails");
    store.stop_checkpoints();
    checkpoints.join().expect("it does not panic");
    disk.kill();
    drop((client, broker, store));
    let names = disk.names().into_iter();
    let newest = names.filter(|path| path.extension().is_some_and(|it| it == "checkpoint")).max();
    disk.corrupt(&newest.expect("there are two"), 40, 1);
    let (_store, broker, mut client) = start(&disk);
    client.publish(PLAIN, "amq.fanout", "", &[(300, 20)], true).expect("there is room");
    assert_eq!(ready(&broker), 0);
}

#[test]
fn definitions_leave_the_last_room_to_acknowledgements() {
    let disk = FakeDisk::new(13);
    let (store, broker, mut client) = start(&disk);
    declare_limited(&mut client, "q");
    publish(&store, &mut client, 1..=MESSAGES);
    disk.set_capacity(disk.used_bytes());
    let mut made = 0;
    let refused = loop {
        let name = format!("{made}{}", "-".repeat(200));
        match client.declare(&name, None) {
            Ok(_) => made += 1,
            Err(refused) => break refused.to_string(),
        }
        delete(&mut client, &name);
        store.journal().flush_once();
        store.journal().maintain_once();
        assert!(made < 10_000 && !store.journal().has_unlogged());
    };
    assert_eq!(refused, "506 RESOURCE_ERROR - the disk of the broker's data folder is full");
    let mut client = Client::new(&broker);
    // No less than what was refused.
    let value = format!("\"{}\"", "-".repeat(1000));
    assert!(broker.admin().set_global_parameter("g", &value).is_err());
    ack_next(&mut client, MESSAGES);
    assert!(!store.journal().has_unlogged(), "there is no room left for them");
}

#[test]
fn what_is_made_under_a_name_does_not_inherit_what_was_deleted_under_it() {
    let disk = FakeDisk::new(11);
    let (store, broker, client) = on_a_full_disk(&disk);
    give_room(&disk, &store);
    let admin = broker.admin();
    let make = || {
        admin.create_user(User::new("bob", PasswordHash::none())).expect("there is room");
        admin.change_vhost("v", |_| {}).expect("there is room");
        admin.set_global_parameter("g", "1").expect("there is room");
    };
    make();
    admin.set_permission("bob", "/", Permission::all()).expect("there is room");
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue("v", "old", queue).expect("there is room");
    assert!(checkpoint(&store, &broker));
    use_up_all_room(&disk, &store);
    admin.delete_user("bob").expect("it is taken even now");
    admin.delete_vhost("v").expect("it is taken even now");
    admin.clear_global_parameter("g").expect("it is taken even now");
    give_room(&disk, &store);
    make();
    store.journal().flush_once();
    disk.kill();
    drop((admin, client, broker, store));
    let (_store, broker, _client) = start(&disk);
    let accounts = broker.accounts();
    assert!(accounts.directory().user("bob").is_some() && broker.vhost("v").is_some());
    assert!(broker.admin().global_parameter("g").is_some());
    assert!(accounts.access("bob", "/").enter().is_err(), "another one's permission");
    assert!(broker.admin().queue("v", b"old").is_err(), "another one's queue");
}
