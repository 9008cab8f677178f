use super::file::FILE_BYTES_MAX;
use super::*;
use rustix::fs::{Mode, OFlags, mkfifoat};
use serde_json::Value;
use std::io::Write;

fn entry(user: Option<&str>, at_ms: u64) -> Entry<'_> {
    let peer = SocketAddr::from(([127, 0, 0, 1], 1));
    Entry {
        at_ms,
        user,
        peer,
        method: "PUT",
        path: "/api/queues/%2F/q",
        status: 201,
        is_begun: true,
        is_partial: false,
    }
}

fn log() -> (tempfile::TempDir, Audit) {
    let folder = tempfile::tempdir().expect("a folder");
    let audit = Audit::new(folder.path().join("audit.log"), 0o600);
    (folder, audit)
}

/// Notes a request, and waits until its line is written or can't be.
fn note(audit: &Audit, entry: &Entry<'_>) {
    if let Some(written) = audit.note(entry) {
        written.blocking_recv().expect("the writer lives");
    }
}

fn newest(audit: &Audit, most: usize) -> Vec<Value> {
    audit.page(0, most, &|_| true).expect("lines").lines
}

#[test]
fn a_line_says_who_did_what() {
    let (_folder, audit) = log();
    assert!(newest(&audit, 10).is_empty());
    note(&audit, &entry(Some("me"), 5));
    note(&audit, &entry(Some("you"), 6));
    let last = newest(&audit, 10);
    let expected = json!({
        "at_ms": 6, "user": "you", "peer": "127.0.0.1:1", "method": "PUT",
        "path": "/api/queues/%2F/q", "status": 201,
    });
    assert_eq!((last.len(), &last[0]), (2, &expected));
    assert_eq!(newest(&audit, 1).len(), 1);
}

#[test]
fn strangers_do_not_drive_out_what_users_did() {
    let (_folder, audit) = log();
    for _ in 0..1000 {
        note(&audit, &entry(None, 5));
    }
    note(&audit, &entry(Some("me"), 6));
    let last = newest(&audit, 5000);
    assert_eq!(last.len(), IDLE_A_MINUTE as usize + 1);
    assert_eq!(last[0]["left_out"], 1000 - u64::from(IDLE_A_MINUTE));
}

#[test]
fn refused_requests_of_a_user_do_not_drive_out_what_others_did() {
    let (_folder, audit) = log();
    let refused = |user, status| Entry { status, ..entry(Some(user), 5) };
    for nth in 0..1000 {
        note(&audit, &refused("low", if nth % 2 == 0 { 401 } else { 404 }));
    }
    note(&audit, &refused("other", 401));
    note(&audit, &entry(Some("low"), 6));
    note(&audit, &refused("low", 499));
    let mut last = newest(&audit, 5000);
    assert_eq!(last.remove(0)["status"], 499, "what may have been done is noted");
    assert_eq!(last.len(), IDLE_A_MINUTE as usize + 2, "what another is refused is noted");
    assert_eq!(last[1]["left_out"], 1000 - u64::from(IDLE_A_MINUTE));
    assert_eq!(last[0]["user"], "low", "what it may do is noted as ever");
    note(&audit, &refused("low", 401));
    note(&audit, &Entry { at_ms: 60_005, ..refused("low", 401) });
    assert_eq!(newest(&audit, 1)[0]["at_ms"], 60_005, "a minute later there is room again");
}

#[test]
fn what_left_before_anything_was_begun_is_bounded_and_what_was_begun_is_not() {
    let (_folder, audit) = log();
    let left = |is_begun| Entry { status: 499, is_begun, ..entry(Some("low"), 5) };
    for _ in 0..1000 {
        note(&audit, &left(false));
    }
    assert_eq!(newest(&audit, 5000).len(), IDLE_A_MINUTE as usize);
    for _ in 0..100 {
        note(&audit, &left(true));
    }
    assert_eq!(newest(&audit, 5000).len(), IDLE_A_MINUTE as usize + 100);
}

#[test]
fn what_is_refused_when_some_of_it_may_be_done_is_noted_as_changes_are() {
    let (_folder, audit) = log();
    for is_partial in [false, true] {
        for _ in 0..100 {
            note(&audit, &Entry { status: 400, is_partial, ..entry(Some("me"), 5) });
        }
    }
    assert_eq!(newest(&audit, 5000).len(), IDLE_A_MINUTE as usize + 100);
}

#[test]
fn refusals_are_counted_for_so_many_users_at_most() {
    let (_folder, audit) = log();
    for nth in 0..10_000 {
        note(&audit, &Entry { status: 401, ..entry(Some(&nth.to_string()), 5) });
    }
    assert!(audit.without_effect.lock().counts.len() <= IDLE_USERS_MAX + 1);
    let most = IDLE_USERS_MAX + IDLE_A_MINUTE as usize;
    assert_eq!(newest(&audit, 20_000).len(), most);
}

#[test]
fn it_says_why_it_can_not_be_written_until_it_can() {
    let folder = tempfile::tempdir().expect("a folder");
    let audit = Audit::new(folder.path().join("sub/audit.log"), 0o600);
    assert_eq!(audit.failure(), None);
    note(&audit, &entry(Some("me"), 5));
    let why = audit.failure().expect("a failure");
    assert!(why.contains("sub/audit.log: No such file or directory"), "{why}");
    std::fs::create_dir(folder.path().join("sub")).expect("a folder");
    note(&audit, &entry(Some("me"), 6));
    assert_eq!(audit.failure(), None);
    let about = std::fs::metadata(folder.path().join("sub/audit.log")).expect("the file");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777, 0o600);
}

#[test]
fn there_is_a_bound_to_the_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.log");
    let mut file = LogFile::new(path.clone(), 0o600);
    for nth in 0..OLD_FILES + 3 {
        file.add(&entry(Some("me"), nth as u64).line(0)).expect("it is written");
        file.pretend_bytes(FILE_BYTES_MAX);
    }
    let files = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(files, OLD_FILES + 1);
    let lines = newest(&Audit::new(path, 0o600), 100);
    let ages: Vec<u64> = lines.iter().map(|line| line["at_ms"].as_u64().expect("a time")).collect();
    let expected: Vec<u64> = (2..OLD_FILES as u64 + 3).rev().collect();
    assert_eq!(ages, expected, "newest first, of all files");
}

#[test]
fn a_line_behind_one_that_was_written_in_part_is_kept() {
    let (folder, audit) = log();
    let torn = r#"{"at_ms":1,"user":"me""#;
    std::fs::write(folder.path().join("audit.log"), torn).expect("it is written");
    note(&audit, &entry(Some("me"), 2));
    note(&audit, &entry(Some("me"), 3));
    let lines = newest(&audit, 10);
    let ages: Vec<&Value> = lines.iter().map(|line| &line["at_ms"]).collect();
    assert_eq!(ages, [3, 2]);
}

#[test]
fn a_full_file_that_can_not_be_renamed_goes_on_and_is_bounded_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.log");
    // No file can take the place of a folder.
    std::fs::create_dir(file::old(&path, OLD_FILES)).expect("a folder");
    std::fs::write(file::old(&path, OLD_FILES - 1), "").expect("a file");
    let mut file = LogFile::new(path.clone(), 0o600);
    let mut add = |nth: u64, bytes| {
        let added = file.add(&entry(Some("me"), nth).line(0)).is_ok();
        if added {
            file.pretend_bytes(bytes);
        }
        (added, file.stuck().is_some())
    };
    assert_eq!(add(0, FILE_BYTES_MAX), (true, false));
    assert_eq!(add(1, FILE_BYTES_MAX), (true, true));
    assert_eq!(add(2, 20 * FILE_BYTES_MAX), (true, true));
    assert!(!add(3, 0).0, "as many bytes as all files may have");
    let audit = Audit::new(path.clone(), 0o600);
    assert_eq!(newest(&audit, 10).len(), 3);
    std::fs::remove_dir(file::old(&path, OLD_FILES)).expect("it is empty");
    file.pretend_reopened(FILE_BYTES_MAX);
    assert!(file.add(&entry(Some("me"), 4).line(0)).is_ok() && file.stuck().is_none());
    assert_eq!(newest(&audit, 10).len(), 4, "it has become an old one");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_takes_nothing_holds_up_no_request_for_long() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.log");
    mkfifoat(rustix::fs::CWD, &path, Mode::from_raw_mode(0o600)).expect("a pipe");
    let flags = OFlags::RDWR | OFlags::NONBLOCK;
    let pipe = rustix::fs::open(&path, flags, Mode::empty()).expect("it is opened");
    let mut pipe = std::fs::File::from(pipe);
    while pipe.write(&[b'x'; 4096]).is_ok() {}
    let audit = Audit::new(path, 0o600);
    assert_eq!(audit.failure(), None);
    let line = audit.note(&entry(Some("me"), 1)).expect("it waits");
    audit.wait_for(line).await;
    let why = audit.failure().expect("a failure");
    assert!(why.ends_with("audit.log: the disk takes nothing"), "{why}");
    let waiting = (0..10_000).filter_map(|_| audit.note(&entry(Some("me"), 2))).count();
    assert!((WAITING_LINES_MAX - 1..=WAITING_LINES_MAX).contains(&waiting), "{waiting}");
    let left_out = audit.shared.left_out.load(Ordering::Relaxed);
    assert_eq!(left_out as usize, 10_000 - waiting);
}

#[test]
fn lines_are_found_page_by_page_however_long_the_file_is() {
    let (_folder, audit) = log();
    for nth in 0..3000 {
        note(&audit, &entry(Some(if nth % 3 == 0 { "me" } else { "you" }), nth));
    }
    let mine = |line: &Value| line["user"] == "me";
    let page = audit.page(900, 60, &mine).expect("lines");
    let ages: Vec<u64> = page.lines.iter().filter_map(|line| line["at_ms"].as_u64()).collect();
    let expected: Vec<u64> = (0..1000).rev().skip(900).take(60).map(|nth| nth * 3).collect();
    assert!(page.has_more && ages == expected, "{ages:?}");
    let end = audit.page(990, 60, &mine).expect("lines");
    assert_eq!((end.lines.len(), end.has_more), (10, false));
}
