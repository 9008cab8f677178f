//! Data folders that released versions have written are opened by this one, with everything that was in them.
//!
//! `crates/server/tests/fixtures` has a folder for each version: what was defined, the broker's data folder, and
//! when that was made. Nothing of a release is ever made anew: it is what people have on their disks.
//!
//! What is added to `make` after a release, older fixtures don't have: the checks of that begin with the version.

mod archive;
mod broker;
mod clients;
mod contents;
mod make;
mod standing;
mod time;

use broker::Opened;
use contents::VHOSTS;
use courser::Clock;
use std::fs;
use std::path::{Path, PathBuf};

const DEFINITIONS: &str = "definitions.json";
const ARCHIVE: &str = "data.tar.gz";
const MADE_MS: &str = "made_ms";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Makes a fixture by the binary of this version.
async fn make(fixture: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    let names = include_str!("definitions.json");
    let made_ms = Clock::system().now_ms();
    make::make(folder.path(), names).await;
    fs::create_dir_all(fixture).expect("a new folder");
    fs::write(fixture.join(DEFINITIONS), names).expect("written");
    archive::pack(&folder.path().join("data"), &fixture.join(ARCHIVE));
    fs::write(fixture.join(MADE_MS), format!("{made_ms}\n")).expect("written");
}

/// Opens a fixture, and sees that all of it is there: at once, after a restart, for clients, and in its time.
async fn check(fixture: &Path) {
    let read = |name| fs::read_to_string(fixture.join(name)).expect("a text");
    let (names, made_ms) = (read(DEFINITIONS), read(MADE_MS));
    let folder = tempfile::tempdir().expect("a folder");
    archive::unpack(&fixture.join(ARCHIVE), folder.path());
    let made_ms = made_ms.trim().parse().expect("a number");
    let mut opened = Opened::start(folder, made_ms).await;
    for _ in 0..2 {
        for vhost in VHOSTS {
            standing::check(opened.at(), vhost, &names, made_ms).await;
        }
        // What this version writes of it is complete, too.
        opened = opened.restart().await;
    }
    for vhost in VHOSTS {
        clients::check(opened.at(), vhost).await;
    }
    time::check(&opened).await;
    opened.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_released_versions_have_kept_is_all_there_after_an_upgrade() {
    let mut versions = 0;
    for fixture in fs::read_dir(fixtures()).expect("fixtures") {
        let fixture = fixture.expect("a fixture").path();
        println!("{}", fixture.display());
        check(&fixture).await;
        versions += 1;
    }
    assert!(versions > 0, "there are fixtures");
}

/// With this variable the fixture of this version is made where it stays, for a release.
const FOR_RELEASE: &str = "COURSER_WRITE_FIXTURE";

#[tokio::test(flavor = "multi_thread")]
async fn what_this_version_keeps_is_all_there_for_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let fixture = match std::env::var_os(FOR_RELEASE) {
        Some(_) => fixtures().join(courser::VERSION),
        None => folder.path().join(courser::VERSION),
    };
    let shown = fixture.display();
    assert!(!fixture.exists(), "{shown} is there: remove it if this version is not released yet");
    make(&fixture).await;
    check(&fixture).await;
}
