//! What each system has a way of its own for: making a file durable, giving room back, reading ahead.

#[cfg_attr(target_vendor = "apple", path = "apple.rs")]
#[cfg_attr(target_os = "freebsd", path = "freebsd.rs")]
#[cfg_attr(not(any(target_vendor = "apple", target_os = "freebsd")), path = "linux.rs")]
mod this;

pub use this::{forget, punch, read_cached, sync_data, sync_dir, will_need};
