//! What an exchange or a queue remembers to drop what has been there before.

use std::collections::VecDeque;

/// The marks of the last messages that were taken in.
#[derive(Clone, Debug)]
pub struct Marks {
    size: usize,
    /// The oldest first.
    marks: VecDeque<u8>,
}

impl Marks {
    pub fn new(size: usize) -> Self {
        Marks { size, marks: VecDeque::new() }
    }

    pub fn has(&self, mark: u8) -> bool {
        self.marks.contains(&mark)
    }

    /// A message was taken in: what is refused leaves nothing behind.
    pub fn remember(&mut self, mark: u8) {
        if self.marks.len() == self.size {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }
}
