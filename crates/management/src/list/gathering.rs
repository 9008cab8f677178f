//! Items that are gathered before a list of them is answered: they have their share of the memory for lists as they come,
//! so that many lists at once can't take more before they are looked at.

use super::owned::Owned;
use crate::call::Call;
use crate::fetches::Fetch;
use crate::refusal::Refusal;

/// Bytes by which the share grows.
const STEP_BYTES: usize = 256 << 10;

/// The share of items that are being gathered.
pub(crate) struct Gathering<'c> {
    call: &'c Call,
    fetch: Fetch,
    bytes: usize,
    granted: usize,
    /// Why there is no room for more.
    refused: Option<Refusal>,
}

impl<'c> Gathering<'c> {
    /// The share of no items yet.
    pub fn new(call: &'c Call) -> Result<Self, Refusal> {
        let fetch = call.api.fetches.of(call.admin(), call.user(), 0)?;
        Ok(Gathering { call, fetch, bytes: 0, granted: 0, refused: None })
    }

    /// Whether there is room for one more item, which is to be left out otherwise.
    pub fn admits<T: Owned>(&mut self, item: &T) -> bool {
        if self.refused.is_some() {
            return false;
        }
        // A vector has room for up to twice as many as are in it.
        self.bytes += 2 * size_of::<T>() + item.owned_bytes();
        if self.bytes > self.granted {
            let bytes = self.bytes.next_multiple_of(STEP_BYTES);
            let (fetches, user) = (&self.call.api.fetches, self.call.user());
            match fetches.resize(&mut self.fetch, user, bytes) {
                Ok(()) => self.granted = bytes,
                Err(refused) => self.refused = Some(refused),
            }
        }
        self.refused.is_none()
    }

    /// The share that they have.
    ///
    /// # Errors
    /// When some had to be left out.
    pub fn finish(self) -> Result<Fetch, Refusal> {
        match self.refused {
            None => Ok(self.fetch),
            Some(refused) => Err(refused),
        }
    }
}
