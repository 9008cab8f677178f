//! Support bundles of brokers that do not answer everything.

use crate::support::{LOST, Server};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The files of a bundle, and what is in them.
fn unpacked(bundle: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(bundle).expect("a bundle")));
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("a whole file");
        let path = entry.path().expect("a path").into_owned();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("text");
        files.insert(name, text);
    }
    files
}

#[test]
fn a_list_that_is_not_answered_is_missing_and_no_other() {
    let server = Server::start(|_, path| {
        let json = "application/json";
        match path.split('?').next().unwrap_or_default() {
            "/api/overview" => (200, json, r#"{"node":"n1"}"#),
            "/api/connections" => (LOST, "", ""),
            "/api/channels" => (503, json, r#"{"error":"Unavailable","reason":"no leader"}"#),
            "/api/consumers" => (200, json, "[tor"),
            "/api/health/checks/local-alarms" => {
                (503, json, r#"{"status":"failed","reason":"memory"}"#)
            }
            _ => (200, json, "[]"),
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("bundle.tar.gz");
    server.ctl(&["report", bundle.to_str().expect("text")]).expect("a bundle");
    let files = unpacked(&bundle);
    for missing in ["connections.json", "channels.json", "consumers.json"] {
        assert!(!files.contains_key(missing), "{missing}");
    }
    for there in
        ["overview.json", "bindings.json", "global-parameters.json", "status.json", "journal.txt"]
    {
        assert!(files.contains_key(there), "{there}");
    }
    assert!(files["alarms.json"].contains("memory"), "{}", files["alarms.json"]);
    let about: Vec<&str> = files["about.txt"].lines().skip(2).collect();
    let said = [
        ("/api/connections?", "was lost"),
        ("/api/channels?", "no leader"),
        ("/api/consumers?", "unexpected answer"),
    ];
    assert_eq!(about.len(), said.len(), "{about:?}");
    for (line, (path, why)) in about.iter().zip(said) {
        assert!(line.starts_with(path) && line.contains(why), "{line}");
    }
}

#[test]
fn no_list_is_asked_as_a_whole() {
    let server = Server::start(|_, path| match path {
        "/api/overview" => (200, "application/json", r#"{"node":"n1"}"#),
        _ => (200, "application/json", "[]"),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("bundle.tar.gz");
    server.ctl(&["report", bundle.to_str().expect("text")]).expect("a bundle");
    let asked = server.asked();
    for list in ["bindings", "consumers", "permissions", "policies", "users", "queues"] {
        let mut of_list = asked.iter().filter(|one| one.starts_with(&format!("GET /api/{list}?")));
        assert!(of_list.any(|one| one.contains("page=1&page_size=500")), "{list}: {asked:?}");
    }
}
