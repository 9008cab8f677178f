//! What the system says of this process.

use rustix::param::{clock_ticks_per_second, page_size};
use std::fs;
use std::path::Path;

/// What the process uses; 0 where the system does not say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessFigures {
    pub resident_bytes: u64,
    pub virtual_bytes: u64,
    pub open_files: u64,
    pub open_files_max: u64,
    pub threads: u64,
    pub cpu_seconds: f64,
    /// Since 1970.
    pub started_seconds: f64,
}

impl ProcessFigures {
    pub fn read() -> Self {
        let (virtual_bytes, resident_bytes) = memory_bytes();
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name before it may have spaces in it.
        let fields = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        let field = |at: usize| -> u64 {
            let found = fields.split_whitespace().nth(at).and_then(|text| text.parse().ok());
            found.unwrap_or_default()
        };
        let ticks = clock_ticks_per_second().max(1) as f64;
        ProcessFigures {
            resident_bytes,
            virtual_bytes,
            open_files: open_files(),
            open_files_max: open_files_max(),
            threads: field(17),
            cpu_seconds: (field(11) + field(12)) as f64 / ticks,
            started_seconds: boot_seconds() + field(19) as f64 / ticks,
        }
    }
}

fn memory_bytes() -> (u64, u64) {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = statm.split_whitespace().map(|text| text.parse::<u64>().unwrap_or_default());
    let mut next = || pages.next().unwrap_or_default() * page_size() as u64;
    (next(), next())
}

/// What the process has of the machine's memory.
pub(crate) fn resident_bytes() -> u64 {
    memory_bytes().1
}

pub(crate) fn open_files() -> u64 {
    fs::read_dir("/dev/fd").map_or(0, |files| files.count() as u64)
}

pub(crate) fn open_files_max() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn boot_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
    line.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// Bytes that are free on the disk of a folder.
pub(crate) fn disk_free_bytes(folder: &Path) -> u64 {
    let stat = rustix::fs::statvfs(folder);
    stat.map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_all_of_it() {
        let figures = ProcessFigures::read();
        assert!(figures.resident_bytes > 0 && figures.virtual_bytes > figures.resident_bytes);
        assert!(figures.open_files > 2 && figures.open_files_max >= figures.open_files);
        assert!(figures.threads >= 1);
        // After 2020.
        assert!(figures.started_seconds > 1.577e9, "{}", figures.started_seconds);
        assert!(disk_free_bytes(Path::new("/")) > 0);
    }
}
