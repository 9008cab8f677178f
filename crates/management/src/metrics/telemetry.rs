//! What scrapes have cost.

use super::pages::Endpoint;
use super::text::{CONTENT_TYPE, Kind, Labels, Text, Value};
use parking_lot::Mutex;
use std::time::Duration;

const DURATION: &str = "telemetry_scrape_duration_seconds";
const SIZE: &str = "telemetry_scrape_size_bytes";

/// What the pages have cost so far, in the order of [`Endpoint::ALL`].
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    scrapes: Mutex<[Scrapes; Endpoint::ALL.len()]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Scrapes {
    count: u64,
    took: Duration,
    bytes: u64,
}

impl Telemetry {
    /// A page has been written.
    pub fn note(&self, endpoint: Endpoint, took: Duration, bytes: u64) {
        let scrapes = &mut self.scrapes.lock()[endpoint as usize];
        scrapes.count += 1;
        scrapes.took += took;
        scrapes.bytes += bytes;
    }

    pub fn write(&self, text: &mut Text) {
        let scrapes = *self.scrapes.lock();
        let durations = scrapes.map(|one| (one.count, one.took.into()));
        write(text, DURATION, "Time that pages took", &durations);
        let sizes = scrapes.map(|one| (one.count, one.bytes.into()));
        write(text, SIZE, "Bytes of pages", &sizes);
    }
}

/// Writes count and sum of each page.
fn write(text: &mut Text, name: &str, help: &str, rows: &[(u64, Value)]) {
    text.header(("", name), Kind::Summary, help);
    for (endpoint, (count, sum)) in Endpoint::ALL.iter().zip(rows) {
        let registry = match endpoint {
            Endpoint::Aggregated => "default",
            other => other.name(),
        };
        let labels =
            Labels::default().with("registry", registry).with("content_type", CONTENT_TYPE);
        text.row_of(("", name, "_count"), &labels, (*count).into());
        text.row_of(("", name, "_sum"), &labels, *sum);
    }
}
