//! The clock that stamps are made of: monotonic nanoseconds, the same in all processes of a machine.

/// Nanoseconds since some moment before the machine's programs began.
#[cfg(unix)]
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds since some moment before the machine's programs began.
#[cfg(windows)]
#[must_use]
#[allow(unsafe_code)]
pub fn now_ns() -> u64 {
    use windows_sys::Win32::System::Performance::{
        QueryPerformanceCounter, QueryPerformanceFrequency,
    };
    let (mut ticks, mut ticks_per_s) = (0, 0);
    // SAFETY: each call writes one number, to where its pointer says.
    unsafe {
        QueryPerformanceCounter(&raw mut ticks);
        QueryPerformanceFrequency(&raw mut ticks_per_s);
    }
    (i128::from(ticks) * 1_000_000_000 / i128::from(ticks_per_s)) as u64
}
