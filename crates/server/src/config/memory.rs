//! How much memory the process may take: what the machine has, or what the control group of the process is limited to.

#[cfg(target_os = "linux")]
use std::{
    fs,
    path::{Path, PathBuf},
};

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

/// The machine's memory in bytes, or the limit of the process's control group or of one above it where that is less. `None`
/// where the system does not say.
#[cfg(target_os = "linux")]
pub(super) fn machine_memory_bytes() -> Option<u64> {
    machine_memory_bytes_under(Path::new("/"))
}

/// The machine's memory in bytes.
#[cfg(not(target_os = "linux"))]
pub(super) fn machine_memory_bytes() -> Option<u64> {
    // SAFETY: the call takes a number and returns one.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    Some(u64::try_from(pages).ok()? * rustix::param::page_size() as u64)
}

/// The same with `proc` and the control groups' file systems in this folder.
#[cfg(target_os = "linux")]
fn machine_memory_bytes_under(root: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let total = line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024;
    Some(group_limit(root).map_or(total, |limit| limit.min(total)))
}

/// The lowest limit of the process's memory group and of those above it, of either version of control groups.
#[cfg(target_os = "linux")]
fn group_limit(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    groups.lines().filter_map(Group::read).filter_map(|group| group.limit(root, &mounts)).min()
}

/// A line of `/proc/self/cgroup` that is about memory.
#[cfg(target_os = "linux")]
struct Group<'a> {
    path: &'a str,
    /// The first version, where memory has a hierarchy of its own.
    first_version: bool,
}

#[cfg(target_os = "linux")]
impl<'a> Group<'a> {
    /// Reads `0::/path`, or `7:memory:/path` of the first version (`cgroups(7)`).
    fn read(line: &'a str) -> Option<Self> {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let first_version = controllers.split(',').any(|controller| controller == "memory");
        (first_version || number == "0").then_some(Group { path, first_version })
    }

    /// The lowest limit from this group up to the top of what is mounted.
    fn limit(&self, root: &Path, mounts: &str) -> Option<u64> {
        let (top, shown) = mounts.lines().find_map(|line| self.mount(line))?;
        // A container sees its own group as the top, whatever the path says.
        let below = Path::new(self.path).strip_prefix(shown).unwrap_or(Path::new(""));
        let top = root.join(top.trim_start_matches('/'));
        below.ancestors().filter_map(|group| self.limit_of(&top.join(group))).min()
    }

    /// Where this line of `mountinfo` mounts the hierarchy, and which group is at its top.
    fn mount<'m>(&self, line: &'m str) -> Option<(&'m str, &'m str)> {
        let (mount, system) = line.split_once(" - ")?;
        let (kind, options) = (system.split(' ').next()?, system.rsplit(' ').next()?);
        let same = match self.first_version {
            true => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
            false => kind == "cgroup2",
        };
        let mut fields = mount.split(' ').skip(3);
        let shown = fields.next()?;
        same.then_some((fields.next()?, shown))
    }

    /// What this one group is limited to. From `memory.high` on the system slows the process down.
    fn limit_of(&self, group: &Path) -> Option<u64> {
        let files: &[&str] = if self.first_version {
            &["memory.limit_in_bytes"]
        } else {
            &["memory.max", "memory.high"]
        };
        let read = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
        files.iter().filter_map(|name| read(group.join(name))).min()
    }
}
