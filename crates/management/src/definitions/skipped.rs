//! What an import leaves out and goes on, and says so.

/// Rows that the log names.
const NAMED_MAX: usize = 20;

/// Rows that were left out, by the reason.
#[derive(Default)]
pub(super) struct Skipped {
    /// Their names are the broker's own.
    pub reserved: Rows,
    /// They are bindings of what there is not: exports of RabbitMQ have those of exclusive queues without the queues.
    pub without_end: Rows,
}

/// The first of some rows, and how many there are.
#[derive(Default)]
pub(super) struct Rows {
    first: Vec<String>,
    count: usize,
}

impl Rows {
    pub fn push(&mut self, row: String) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(row);
        }
    }
}

impl Skipped {
    pub fn rows(&self) -> usize {
        self.reserved.count + self.without_end.count
    }

    /// However many there were, the log has one line for each reason.
    pub fn tell(&self) {
        let Skipped { reserved, without_end } = self;
        if reserved.count > 0 {
            let (rows, first) = (reserved.count, reserved.first.join(", "));
            tracing::warn!(rows, first, "definitions not imported: their names are reserved");
        }
        if without_end.count > 0 {
            let (rows, first) = (without_end.count, without_end.first.join(", "));
            tracing::warn!(
                rows,
                first,
                "bindings not imported: their queues or exchanges are neither here nor in the file"
            );
        }
    }
}
