//! Users of the broker: who gets in, how much of it, and what a restart leaves.

use super::support::{Heard, World, WorldOnDisk};
use courser_auth::{Login, PasswordHash, Permission, Tags, TopicPermission, User};
use courser_broker::AccountsError;
use courser_broker::admin::Admin;
use courser_journal::testing::Call;
use courser_store::StoreError;
use std::sync::Arc;

fn with_user(world: &World) {
    let admin = world.broker.admin();
    admin.create_user(User::new("u", PasswordHash::none())).expect("a user");
    admin.set_permission("u", "/", Permission::all()).expect("a permission");
}

fn refused(world: &World, user: &str, vhost: &str) -> String {
    match world.admit(user, vhost) {
        Ok(_) => panic!("'{user}' was let into '{vhost}'"),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn a_vhost_is_entered_with_a_permission_only() {
    let world = World::new();
    with_user(&world);
    world.broker.define_vhost("other", Default::default()).expect("a vhost");
    world.admit("u", "/").expect("let in");
    assert_eq!(
        refused(&world, "u", "other"),
        "530 NOT_ALLOWED - access to vhost 'other' refused for user 'u'"
    );
    assert_eq!(refused(&world, "u", "novh"), "530 NOT_ALLOWED - vhost novh not found");
    assert_eq!(
        refused(&world, "stranger", "/"),
        "530 NOT_ALLOWED - access to vhost '/' refused for user 'stranger'"
    );
}

#[test]
fn connections_of_a_user_are_limited_over_all_vhosts() {
    let world = World::new();
    with_user(&world);
    let admin = world.broker.admin();
    world.broker.define_vhost("other", Default::default()).expect("a vhost");
    admin.set_permission("u", "other", Permission::all()).expect("a permission");
    admin.set_user_limit("u", "max-connections", 1).expect("a limit");
    let mut first = world.admit("u", "/").expect("let in");
    let text = "530 NOT_ALLOWED - connection refused for user 'u': user connection limit (1) is \
                reached";
    assert_eq!(refused(&world, "u", "other"), text);
    first.disconnect();
    let mut second = world.admit("u", "other").expect("let in");
    admin.set_user_limit("u", "max-connections", 0).expect("a limit");
    second.declare("still-there");
    assert!(refused(&world, "u", "/").contains("(0)"));
    admin.clear_user_limit("u", "max-connections").expect("lifted");
    world.admit("u", "/").expect("let in");
}

#[test]
fn channels_of_a_user_are_limited_over_all_connections() {
    let world = World::new();
    with_user(&world);
    world.broker.admin().set_user_limit("u", "max-channels", 2).expect("a limit");
    let (mut one, mut other) = (world.connect_user("u"), world.connect_user("u"));
    one.session().admit_channel().expect("the first");
    other.session().admit_channel().expect("the second");
    let fault = one.session().admit_channel().expect_err("the third");
    assert_eq!(
        fault.to_string(),
        "530 NOT_ALLOWED - number of channels opened for user 'u' has reached the maximum allowed \
         user limit of 2"
    );
    other.disconnect();
    one.session().admit_channel().expect("a channel went with its connection");
    one.close_channel(1);
    one.open_channel(1);
    one.session().admit_channel().expect("a channel was closed");
}

#[test]
fn a_deleted_user_loses_its_connections_at_once() {
    let world = World::new();
    with_user(&world);
    let mut client = world.connect_user("u");
    let mut other = world.connect();
    world.broker.admin().delete_user("u").expect("deleted");
    let closed = Heard::ConnectionClosed("320 CONNECTION_FORCED - user 'u' was deleted".into());
    assert_eq!(client.heard(), [closed]);
    assert!(!client.is_connected());
    other.declare("still-connected");
    assert!(refused(&world, "u", "/").contains("access to vhost '/' refused"));
}

#[test]
fn a_permission_needs_a_vhost_and_a_user() {
    let world = World::new();
    with_user(&world);
    let admin = world.broker.admin();
    let set = admin.set_permission("u", "novh", Permission::all());
    assert!(matches!(set, Err(AccountsError::NoVhost(name)) if name == "novh"));
    let set = admin.set_permission("stranger", "/", Permission::all());
    assert_eq!(set.expect_err("refused").to_string(), "user 'stranger' does not exist");
}

#[test]
fn a_user_is_made_once_and_with_all_that_it_may_do_or_not_at_all() {
    let world = World::new();
    with_user(&world);
    let admin = world.broker.admin();
    let again = admin.create_user(User::new("u", PasswordHash::none()));
    assert_eq!(again.expect_err("refused").to_string(), "user 'u' exists already");
    let permissions = ["/", "novh"].map(|vhost| (vhost.to_owned(), Permission::all()));
    let refused = admin.put_user("new", &permissions, |_| Ok(()));
    assert!(matches!(refused, Err(AccountsError::NoVhost(name)) if name == "novh"));
    assert!(admin.accounts().user("new").is_none());
    assert!(admin.put_user("new", &permissions[..1], |_| Ok(())).expect("a user"));
    assert!(admin.accounts().permission("new", "/").is_some());
}

#[test]
fn a_change_in_a_users_name_is_made_as_long_as_the_user_is_as_it_was() {
    let world = World::new();
    let admin = world.broker.admin();
    let mut boss = User::new("boss", PasswordHash::none());
    boss.tags = Tags::administrator();
    admin.create_user(boss).expect("a user");
    let made = |asked: &Admin, name: &str| {
        asked.create_user(User::new(name, PasswordHash::none())).map_err(|why| why.to_string())
    };
    let boss = || admin.on_behalf_of(Arc::clone(admin.accounts().user("boss").expect("a user")));
    let (asked, also_asked) = (boss(), boss());
    made(&asked, "one").expect("made");
    let password = |user: &mut User| {
        user.password = PasswordHash::quick(b"new").expect("a hash");
        Ok(())
    };
    asked.change_user("boss", password).expect("its own password");
    made(&asked, "two").expect("what it has done itself changes nothing");
    let gone = "the user who asks for this has been changed or deleted meanwhile";
    assert_eq!(made(&also_asked, "three"), Err(gone.to_owned()));
    let asked = boss();
    admin.delete_user("boss").expect("deleted");
    assert_eq!(made(&asked, "four"), Err(gone.to_owned()));
    assert_eq!(admin.accounts().user_count(), 2);
}

#[test]
fn a_login_that_makes_the_hash_stronger_changes_no_user() {
    let world = World::new();
    let admin = world.broker.admin();
    let hash = || PasswordHash::quick(b"secret").expect("a hash");
    let mut boss = User::new("boss", hash());
    boss.tags = Tags::administrator();
    admin.create_user(boss).expect("a user");
    let boss = || Arc::clone(admin.accounts().user("boss").expect("a user"));
    let (before, asked) = (boss(), admin.on_behalf_of(boss()));
    let login = |user: &Arc<User>| {
        let account = admin.accounts().account_number(&user.name);
        Login { user: Arc::clone(user), account, rehashed: Some(hash()), grant: None }
    };
    admin.set_permission("boss", "/", Permission::all()).expect("a permission");
    let logged_in = login(&before);
    assert!(admin.keep_rehashed(&logged_in).expect("kept"));
    assert_ne!(boss().password, before.password);
    drop(world.broker.admit_login(&logged_in, "/").expect("the password is the same"));
    asked.check_author().expect("the password is the same");
    // Those of others are noted besides.
    admin.create_user(User::new("other", hash())).expect("a user");
    admin.keep_rehashed(&login(admin.accounts().user("other").expect("a user"))).expect("kept");
    asked.create_user(User::new("made", PasswordHash::none())).expect("the password is the same");
    let password = |user: &mut User| {
        user.password = hash();
        Ok(())
    };
    admin.change_user("boss", password).expect("another password");
    asked.check_author().expect_err("the password is another one");
    let Err(fault) = world.broker.admit_login(&logged_in, "/") else { panic!("let in") };
    let text = "530 NOT_ALLOWED - access to vhost '/' refused for user 'boss': it has been deleted or has got another password \
                since it logged in";
    assert_eq!(fault.to_string(), text);
}

/// `with_user` after the user has been deleted, as an operator does to shut out those who have its password.
fn make_anew(world: &World) {
    world.broker.admin().delete_user("u").expect("deleted");
    with_user(world);
}

#[test]
fn who_has_logged_in_before_its_user_was_made_anew_is_not_let_in() {
    let world = World::new();
    with_user(&world);
    let admin = world.broker.admin();
    let user = Arc::clone(admin.accounts().user("u").expect("a user"));
    let account = admin.accounts().account_number("u");
    let login = Login { user, account, rehashed: None, grant: None };
    drop(world.broker.admit_login(&login, "/").expect("let in"));
    make_anew(&world);
    let Err(fault) = world.broker.admit_login(&login, "/") else { panic!("let in") };
    assert_eq!(fault.code, 530);
}

#[test]
fn a_user_made_anew_while_a_connection_of_the_old_one_opens_does_not_get_it() {
    let world = World::new();
    with_user(&world);
    let admission = world.broker.admit("u", "/").expect("let in");
    make_anew(&world);
    let mut client = world.connect_to(admission);
    let closed = Heard::ConnectionClosed("320 CONNECTION_FORCED - user 'u' was deleted".into());
    assert_eq!(client.heard(), [closed]);
}

#[test]
fn only_a_vhost_that_is_there_is_changed() {
    let world = World::new();
    with_user(&world);
    let admin = world.broker.admin();
    admin.change_known_vhost("v", |_| {}).expect_err("there is none");
    assert!(admin.vhost("v").is_none());
}

fn check_what_is_kept(world: &World) {
    let accounts = world.broker.admin().accounts();
    let user = accounts.user("u").expect("a user");
    assert!(user.password.verify(b"secret"));
    assert!(user.tags.iter().eq(["management"]));
    assert_eq!(user.limits.max_channels, Some(7));
    assert_eq!(accounts.permission("u", "/").expect("a permission").read, "^r");
    assert_eq!(accounts.topic_permissions("u", "/").len(), 1);
    assert!(accounts.user("gone").is_none());
    assert!(accounts.permission("u", "other").is_none());
    assert_eq!(accounts.permission_rows().count(), 1);
}

#[test]
fn accounts_survive_restarts_crashes_and_checkpoints() {
    let mut world = WorldOnDisk::new();
    let admin = world.broker.admin();
    let mut user = User::new("u", PasswordHash::quick(b"secret").expect("a hash"));
    user.tags = Tags::parse("management").expect("tags");
    admin.create_user(user).expect("a user");
    admin.set_user_limit("u", "max-channels", 7).expect("a limit");
    let permission = Permission { read: "^r".into(), ..Permission::all() };
    admin.set_permission("u", "/", permission).expect("a permission");
    world.broker.define_vhost("other", Default::default()).expect("a vhost");
    admin.set_permission("u", "other", Permission::all()).expect("a permission");
    admin.clear_permission("u", "other").expect("cleared");
    let topic = TopicPermission { write: "^{username}".into(), read: String::new() };
    admin.set_topic_permission("u", "/", "amq.topic", topic).expect("a permission");
    admin.create_user(User::new("gone", PasswordHash::none())).expect("a user");
    admin.set_permission("gone", "/", Permission::all()).expect("a permission");
    admin.delete_user("gone").expect("deleted");
    drop(admin);
    check_what_is_kept(&world);
    world.restart();
    check_what_is_kept(&world);
    world.restart_from_checkpoint();
    check_what_is_kept(&world);
    world.sync();
    world.lose_power();
    check_what_is_kept(&world);
}

/// Compiling takes time, in which no change of accounts would get on, and no checkpoint of home.
#[test]
fn patterns_are_compiled_while_others_change_accounts() {
    let world = World::new();
    with_user(&world);
    let admin = world.broker.admin();
    let (said, heard) = std::sync::mpsc::channel();
    let meanwhile = move |admin: Admin| {
        let wrong = || Permission { read: "(".to_owned(), ..Permission::default() };
        let of_topic = TopicPermission { read: "(".to_owned(), write: String::new() };
        let permissions = [("/".to_owned(), wrong())];
        let refused = [
            admin.set_permission("u", "/", wrong()).err(),
            admin.set_topic_permission("u", "/", "amq.topic", of_topic).err(),
            admin.put_user("new", &permissions, |_| Ok(())).err(),
        ];
        let refused =
            refused.map(|error| error.is_some_and(|error| error.to_string().contains("pattern")));
        said.send(refused).expect("it is waited for");
    };
    let changed = admin.change_user("u", |_| {
        let admin = world.broker.admin();
        let thread = std::thread::Builder::new().spawn(move || meanwhile(admin));
        thread.expect("a thread");
        let refused = heard.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(refused, Ok([true; 3]), "it waits for a lock");
        Ok(())
    });
    changed.expect("the user is changed");
}

/// After a crash between the two, no user could enter it.
#[test]
fn a_vhost_and_the_permission_of_who_makes_it_are_kept_together() {
    let mut world = WorldOnDisk::new();
    with_user(&world);
    let admin = world.broker.admin();
    let room_for = |mut appends: usize| {
        move |call| {
            let has_room = call != Call::Append || appends > 0;
            appends = appends.saturating_sub(1);
            (!has_room).then_some(StoreError::Full)
        }
    };
    world.store().set_faults(room_for(0));
    admin.place_vhost("none", &[0], Some("u"), |_| ()).expect_err("there is no room");
    assert_eq!(admin.accounts().permission("u", "none"), None);
    world.store().set_faults(room_for(1));
    assert!(admin.place_vhost("v", &[0], Some("u"), |_| ()).expect("room for one change"));
    admin.place_vhost("stranger's", &[0], Some("stranger"), |_| ()).expect_err("no such user");
    world.store().heal();
    drop(admin);
    world.restart();
    world.admit("u", "v").expect("let in").disconnect();
    for none in ["none", "stranger's"] {
        assert!(refused(&world, "u", none).contains("not found"));
    }
}

#[test]
fn a_login_does_not_wait_until_the_log_has_room_for_a_stronger_hash() {
    let world = WorldOnDisk::new();
    let admin = world.broker.admin();
    let hash = || PasswordHash::quick(b"secret").expect("a hash");
    admin.create_user(User::new("boss", hash())).expect("a user");
    let user = || Arc::clone(admin.accounts().user("boss").expect("a user"));
    let account = admin.accounts().account_number("boss");
    let login = Login { user: user(), account, rehashed: Some(hash()), grant: None };
    let store = world.store();
    let appends = || store.before_next_append(|| panic!("it may wait here"));
    let without_room: [(&str, &dyn Fn(bool)); 2] = [
        ("the disk is full", &|is_full| store.set_full(is_full)),
        ("much waits to be written", &|may_block| store.set_may_block(may_block)),
    ];
    for (why, set) in without_room {
        set(true);
        appends();
        assert!(!admin.keep_rehashed(&login).expect("nothing is tried"), "{why}");
        assert_eq!(user().password, login.user.password, "{why}");
        set(false);
        store.call_nothing();
    }
    assert!(admin.keep_rehashed(&login).expect("there is room"));
    assert_ne!(user().password, login.user.password);
}
