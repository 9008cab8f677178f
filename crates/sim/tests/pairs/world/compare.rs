//! Whether the broker has what the model says.

use super::World;
use crate::topology::{self, DEAD, LATER};

impl World {
    /// What waits in a queue, as its operator sees it: number, and whether it was delivered before.
    pub(super) fn ids(&mut self, name: &str) -> Result<Vec<(u64, bool)>, String> {
        let admin = self.running().broker.admin();
        let id = |body: &[u8]| body.first_chunk().map_or(0, |id| u64::from_le_bytes(*id));
        let mut ids = Vec::new();
        loop {
            // As many as are shown at once.
            let page = admin.peek("/", name.as_bytes(), ids.len(), usize::MAX, 8);
            let page = page.map_err(|why| why.to_string())?;
            if page.is_empty() {
                return Ok(ids);
            }
            ids.extend(page.iter().flatten().map(|view| (id(&view.body), view.redelivered)));
        }
    }

    /// Everything that was sent is explained, and everything is where it should be.
    pub(super) fn compare(&mut self) -> Result<(), String> {
        self.model.observed.check_rest()?;
        let vhost = self.running().broker.vhost("/").expect("always there");
        for declared in topology::queues(&self.features) {
            let name = declared.name;
            let found = vhost.queue(name.as_bytes()).map(|queue| queue.status());
            let found =
                found.map(|one| (one.ready, one.delayed.messages, one.unacked, one.consumers));
            let stream = self.model.streams.get(name);
            stream.map_or(Ok(()), |stream| stream.check(self.model.now_ms))?;
            let stream = stream.map(|one| (one.len(), 0, 0, one.reader_channels().len()));
            let expected = self.model.queues.get(name).map(|queue| queue.counts()).or(stream);
            if found != expected {
                return Err(format!(
                    "{name} has {found:?}, not {expected:?}: ready, delayed, unacknowledged, consumers"
                ));
            }
            if self.model.queues.contains_key(name) {
                self.compare_queue(name)?;
            }
        }
        let later = vhost.exchange(LATER.as_bytes()).map_or(0, |later| later.messages_delayed());
        match self.model.exchanges.delayed_len() {
            expected if expected == later => Ok(()),
            expected => Err(format!("{later} messages wait for their time, not {expected}")),
        }
    }

    fn compare_queue(&mut self, name: &str) -> Result<(), String> {
        let found = self.ids(name)?;
        if name == DEAD {
            self.model.follow_letters(&found.iter().map(|(id, _)| *id).collect::<Vec<_>>());
        }
        let expected = self.model.queues[name].ready();
        let expected: Vec<_> =
            expected.map(|entry| (entry.message.id, entry.redelivered)).collect();
        let same = found.iter().zip(&expected).all(|((id, redelivered), (other, is))| {
            id == other && is.is_none_or(|is| is == *redelivered)
        });
        if same && found.len() == expected.len() {
            return Ok(());
        }
        Err(format!("in {name} wait {found:?}, not {expected:?}"))
    }
}
