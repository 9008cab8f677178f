//! Limits of control groups as systemd, containers and the first version lay them out.

use super::machine_memory_bytes_under;
use std::{fs, path::Path};

const MIB: u64 = 1 << 20;
const SECOND: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
const FIRST: &str = "33 32 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                     34 32 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";

/// What is found on a machine of 1 GiB with these groups, mounts and files of control groups.
fn found(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<u64> {
    let root = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a folder");
        fs::write(path, text).expect("written");
    };
    write("proc/meminfo", "MemTotal:        1048576 kB\nMemFree:          524288 kB\n");
    write("proc/self/cgroup", groups);
    write("proc/self/mountinfo", mounts);
    for (name, text) in files {
        write(&format!("sys/fs/cgroup/{name}"), text);
    }
    machine_memory_bytes_under(root.path())
}

#[test]
fn a_process_without_limits_has_the_whole_machine() {
    let unlimited = [("memory.max", "max\n"), ("system.slice/memory.max", "max\n")];
    assert_eq!(found("0::/system.slice\n", SECOND, &unlimited), Some(1024 * MIB));
    assert_eq!(found("", "", &[]), Some(1024 * MIB), "a system without control groups");
    let unlimited = [("memory/memory.limit_in_bytes", "9223372036854771712\n")];
    assert_eq!(found("7:memory:/\n", FIRST, &unlimited), Some(1024 * MIB));
}

#[test]
fn the_group_of_the_process_counts() {
    let limited = [("system.slice/courser.service/memory.max", "268435456\n")];
    assert_eq!(found("0::/system.slice/courser.service\n", SECOND, &limited), Some(256 * MIB));
}

#[test]
fn the_lowest_limit_above_the_process_counts() {
    let files = [
        ("team.slice/memory.max", "134217728\n"),
        ("team.slice/courser.service/memory.max", "268435456\n"),
    ];
    assert_eq!(found("0::/team.slice/courser.service\n", SECOND, &files), Some(128 * MIB));
}

#[test]
fn a_group_of_others_does_not_count() {
    let files = [("other.slice/memory.max", "134217728\n"), ("own.slice/memory.max", "max\n")];
    assert_eq!(found("0::/own.slice\n", SECOND, &files), Some(1024 * MIB));
}

#[test]
fn a_group_that_is_slowed_down_counts() {
    let files = [("own.slice/memory.max", "268435456\n"), ("own.slice/memory.high", "201326592\n")];
    assert_eq!(found("0::/own.slice\n", SECOND, &files), Some(192 * MIB));
}

#[test]
fn a_container_sees_its_group_at_the_top() {
    let files = [("memory.max", "268435456\n")];
    assert_eq!(found("0::/\n", SECOND, &files), Some(256 * MIB));
    let mounts = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw";
    assert_eq!(found("0::/docker/abc\n", mounts, &files), Some(256 * MIB));
    assert_eq!(found("0::/elsewhere\n", mounts, &files), Some(256 * MIB));
}

#[test]
fn the_first_version_counts() {
    let files = [("memory/system.slice/memory.limit_in_bytes", "268435456\n")];
    let groups = "8:cpu,cpuacct:/\n7:memory:/system.slice\n0::/user.slice\n";
    assert_eq!(found(groups, FIRST, &files), Some(256 * MIB));
}
