//! One file of the fake disk.

use crate::testing::Rng;

/// Bytes that a disk writes at once or not at all.
pub const SECTOR: u64 = 512;

/// A change of a file that was not synced.
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Size(u64),
}

/// A file's two images.
#[derive(Default)]
pub struct Image {
    /// What a process reads.
    pub live: Vec<u8>,
    durable: Vec<u8>,
    changes: Vec<Change>,
    /// Bytes that were punched out of the live image, or never written.
    pub punched_bytes: u64,
}

impl Image {
    /// Writes, in memory.
    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        self.punched_bytes += offset.saturating_sub(self.live.len() as u64);
        if self.live.len() as u64 > offset + bytes.len() as u64 {
            self.changes.push(Change::Write { offset, bytes: bytes.to_vec() });
        } else {
            self.changes.push(Change::Size(offset + bytes.len() as u64));
            self.changes.push(Change::Write { offset, bytes: bytes.to_vec() });
        }
        put(&mut self.live, bytes, offset);
    }

    /// Cuts everything off, in memory.
    pub fn truncate(&mut self) {
        self.live.clear();
        self.punched_bytes = 0;
        self.changes.push(Change::Size(0));
    }

    /// Makes the changes durable. Only those: bytes that an earlier failed sync lost stay lost.
    pub fn sync(&mut self) {
        for change in self.changes.drain(..) {
            match change {
                Change::Write { bytes, offset } => put(&mut self.durable, &bytes, offset),
                Change::Size(size) => self.durable.resize(size as usize, 0),
            }
        }
    }

    /// Makes any part of the changes durable and forgets the rest, as a failed sync does and a
    /// loss of power.
    pub fn sync_partly(&mut self, rng: &mut Rng) {
        // Sometimes nothing, sometimes everything, sometimes all up to a point.
        let keep_all_up_to = match rng.below(4) {
            0 => rng.below(self.changes.len() as u64 + 1),
            1 if rng.one_in(2) => self.changes.len() as u64,
            _ => 0,
        };
        let mut choice = Rng::new(rng.number());
        let chance = 1 + rng.below(4);
        // Some disks keep or lose what was written at once as a whole.
        let whole_writes = rng.one_in(3);
        for (index, change) in self.changes.drain(..).enumerate() {
            let keep = (index as u64) < keep_all_up_to;
            match change {
                Change::Size(size) if keep || choice.one_in(chance) => {
                    self.durable.resize(size as usize, 0);
                }
                Change::Size(_) => {}
                Change::Write { offset, bytes } => {
                    let keep = keep || (whole_writes && choice.one_in(chance));
                    let mut at = if whole_writes && !keep { bytes.len() } else { 0 };
                    while at < bytes.len() {
                        let sector_end = SECTOR - (offset + at as u64) % SECTOR;
                        let end = bytes.len().min(at + sector_end as usize);
                        if keep || choice.one_in(chance) {
                            put_within(&mut self.durable, &bytes[at..end], offset + at as u64);
                        }
                        at = end;
                    }
                }
            }
        }
    }

    /// After a loss of power: what is durable is all there is.
    pub fn lose_power(&mut self, rng: &mut Rng) {
        self.sync_partly(rng);
        self.live = self.durable.clone();
    }

    /// Changes a byte on the medium itself.
    pub fn corrupt(&mut self, offset: usize, mask: u8) {
        for image in [&mut self.live, &mut self.durable] {
            if let Some(byte) = image.get_mut(offset) {
                *byte ^= mask;
            }
        }
    }
}

fn put(image: &mut Vec<u8>, bytes: &[u8], offset: u64) {
    let end = offset as usize + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset as usize..end].copy_from_slice(bytes);
}

/// Like `put`, but what lies beyond the image's size is lost.
fn put_within(image: &mut [u8], bytes: &[u8], offset: u64) {
    let Some(room) = image.get_mut(offset as usize..) else { return };
    let len = room.len().min(bytes.len());
    room[..len].copy_from_slice(&bytes[..len]);
}
