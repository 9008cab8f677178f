//! Waking at a moment of the monotonic clock, to within microseconds.
//!
//! The runtime's timers count whole milliseconds, too coarse to pace thousands of messages a second. On Linux a timer of
//! the kernel's does it; elsewhere the runtime's has to do.

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// Wakes one task at given moments.
    pub struct Alarm(AsyncFd<OwnedFd>);

    impl Alarm {
        /// An alarm that is not set.
        ///
        /// # Errors
        /// When the system has no more timers or descriptors.
        #[allow(unsafe_code)]
        pub fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // SAFETY: an `OwnedFd` is an open descriptor, always the same one, for as long as it lives; no other code
            // gets at this one, and it is dropped with the `AsyncFd`.
            Ok(Self(unsafe { AsyncFd::register(timer) }?))
        }

        /// Waits until this moment, in monotonic nanoseconds. A moment in the past is over at once.
        ///
        /// # Errors
        /// When the system does not take the setting.
        pub async fn wait_until(&mut self, time_ns: u64) -> io::Result<()> {
            let it_value = Timespec {
                tv_sec: (time_ns / 1_000_000_000) as i64,
                tv_nsec: (time_ns % 1_000_000_000) as i64,
            };
            let never_again = Timespec { tv_sec: 0, tv_nsec: 0 };
            let setting = Itimerspec { it_interval: never_again, it_value };
            // What an earlier setting has left ready is of no interest: only time counts.
            timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &setting)?;
            while crate::clock::now_ns() < time_ns {
                self.0.readable().await?.clear_ready();
            }
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::io;
    use std::time::Duration;

    /// Wakes one task at given moments.
    pub struct Alarm;

    impl Alarm {
        /// An alarm that is not set.
        ///
        /// # Errors
        /// Never.
        pub fn new() -> io::Result<Self> {
            Ok(Self)
        }

        /// Waits until this moment, in monotonic nanoseconds.
        ///
        /// # Errors
        /// Never.
        pub async fn wait_until(&mut self, time_ns: u64) -> io::Result<()> {
            let wait_ns = time_ns.saturating_sub(crate::clock::now_ns());
            tokio::time::sleep(Duration::from_nanos(wait_ns)).await;
            Ok(())
        }
    }
}

pub use kernel::Alarm;
