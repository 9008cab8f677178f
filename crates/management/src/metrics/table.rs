//! The form of the tables of metrics, and how their rows are written: bit by bit, so that what is in
//! memory of a page is bounded, however many queues there are.

use super::text::{Kind, Labels, Text, Value, border};
use courser_broker::admin::{Listing, PageRequest, Start};
use std::collections::HashSet;

/// Items that are looked at before others get their turn, as they may make no text at all; and connections with their channels,
/// of which each may have thousands.
const SOME_ITEMS: usize = 100;
const SOME_CONNECTIONS: usize = 1;

/// A metric of what a `T` describes: a queue, a connection, or all of them together.
pub(crate) struct Metric<T: 'static> {
    /// Its name, without the prefix that all of a page have.
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    /// What is not counted has none, and no rows.
    pub value: Option<fn(&T) -> Value>,
}

impl<T> Metric<T> {
    fn of(&self, row: &T) -> Value {
        self.value.map_or(Value::Unknown, |value| value(row))
    }
}

/// Metrics that are asked for together (`/metrics/detailed?family=`).
pub(crate) struct Family<T: 'static> {
    pub name: &'static str,
    pub metrics: &'static [Metric<T>],
}

/// A gauge, for a table.
pub(crate) const fn gauge<T>(
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Value,
) -> Metric<T> {
    Metric { name, kind: Kind::Gauge, help, value: Some(value) }
}

/// A counter, for a table.
pub(crate) const fn counter<T>(
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Value,
) -> Metric<T> {
    Metric { name, kind: Kind::Counter, help, value: Some(value) }
}

/// A number that says whether something is so, for a table.
pub(crate) const fn flag<T>(
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Value,
) -> Metric<T> {
    Metric { name, kind: Kind::Untyped, help, value: Some(value) }
}

/// A metric that is not counted here, for a table.
pub(crate) const fn uncounted<T>(name: &'static str, kind: Kind, help: &'static str) -> Metric<T> {
    Metric { name, kind, help, value: None }
}

/// For a table: what there is nothing of here.
pub(crate) fn none<T>(_: &T) -> Value {
    Value::Whole(0)
}

/// A part of a page.
trait Section: Send {
    /// Bytes of memory that it has until it is written.
    fn bytes(&self) -> usize;

    /// Writes some of it. Returns whether there is more.
    fn write_some(&mut self, text: &mut Text) -> bool;
}

/// A page, which is written while it is read.
#[derive(Default)]
pub(crate) struct Page {
    sections: std::collections::VecDeque<Box<dyn Section>>,
    /// No metric may stand on a page twice.
    names: HashSet<(&'static str, &'static str)>,
}

impl Page {
    fn is_new(&mut self, prefix: &'static str, name: &'static str) -> bool {
        self.names.insert((prefix, name))
    }

    /// Metrics of a few things.
    pub fn rows<T>(
        &mut self,
        prefix: &'static str,
        metrics: &'static [Metric<T>],
        rows: &[(Labels, T)],
    ) {
        let mut text = Text::default();
        for metric in metrics {
            if self.is_new(prefix, metric.name) {
                let name = (prefix, metric.name);
                text.header(name, metric.kind, metric.help);
                for (labels, row) in rows {
                    text.row(name, labels, metric.of(row));
                }
            }
        }
        self.sections.push_back(Box::new(Written(text)));
    }

    /// Metrics of one thing that needs no labels.
    pub fn plain<T>(&mut self, prefix: &'static str, metrics: &'static [Metric<T>], row: T) {
        self.rows(prefix, metrics, &[(Labels::default(), row)]);
    }

    /// Metrics of everything in lists that `each` tells of.
    pub fn listed<V: 'static, R>(
        &mut self,
        prefix: &'static str,
        metrics: &'static [Metric<R>],
        listings: Vec<impl Pages<V> + 'static>,
        each: Each<V, R>,
    ) {
        let fresh = metrics.iter().filter(|metric| self.is_new(prefix, metric.name));
        // What is not counted is told once, on the page of sums.
        let metrics: Vec<&'static Metric<R>> =
            fresh.filter(|metric| metric.value.is_some()).collect();
        let (at, list, rank) = (0, 0, 0);
        let listed = Listed { prefix, metrics, listings, each, at, list, rank };
        self.sections.push_back(Box::new(listed));
    }

    /// A row that is there for its labels.
    pub fn info(&mut self, prefix: &'static str, name: &'static str, help: &str, rows: &[Labels]) {
        if self.is_new(prefix, name) {
            let mut text = Text::default();
            text.header((prefix, name), Kind::Untyped, help);
            rows.iter().for_each(|labels| text.row((prefix, name), labels, Value::Whole(1)));
            self.sections.push_back(Box::new(Written(text)));
        }
    }

    /// A histogram.
    pub fn histogram(
        &mut self,
        (prefix, name): (&'static str, &'static str),
        help: &str,
        rows: &[(Labels, Histogram)],
    ) {
        if !self.is_new(prefix, name) {
            return;
        }
        let mut text = Text::default();
        text.header((prefix, name), Kind::Histogram, help);
        for (labels, histogram) in rows {
            let mut sum = 0;
            let borders = histogram.borders.iter().map(|limit| border(*limit));
            for (limit, count) in borders.chain(["+Inf".to_owned()]).zip(&histogram.counts) {
                sum += count;
                let labels = labels.clone().with("le", limit);
                text.row_of((prefix, name, "_bucket"), &labels, sum.into());
            }
            text.row_of((prefix, name, "_count"), labels, sum.into());
            text.row_of((prefix, name, "_sum"), labels, histogram.sum.into());
        }
        self.sections.push_back(Box::new(Written(text)));
    }

    /// A text that is ready, of metrics that nothing else on the page has.
    pub fn text(&mut self, text: Text) {
        self.sections.push_back(Box::new(Written(text)));
    }

    /// Bytes of memory that it has until it is written.
    pub fn bytes(&self) -> usize {
        self.sections.iter().map(|section| section.bytes()).sum()
    }

    /// Writes some of the page. Returns whether there is more.
    pub fn write_some(&mut self, text: &mut Text) -> bool {
        if let Some(section) = self.sections.front_mut()
            && !section.write_some(text)
        {
            self.sections.pop_front();
        }
        !self.sections.is_empty()
    }
}

/// How many things there are of each size.
pub(crate) struct Histogram {
    /// The largest that still belongs to each place but the last.
    pub borders: Vec<f64>,
    /// How many in each place.
    pub counts: Vec<u64>,
    pub sum: f64,
}

struct Written(Text);

impl Section for Written {
    fn bytes(&self) -> usize {
        self.0.0.capacity()
    }

    fn write_some(&mut self, text: &mut Text) -> bool {
        text.0.push_str(&self.0.0);
        false
    }
}

/// Calls back with what there is to be told of an item, and with its labels.
pub(crate) type Each<V, R> = Box<dyn Fn(&V, &mut Labels, &mut dyn FnMut(&Labels, &R)) + Send>;

/// A list that is read page by page.
pub(crate) trait Pages<V>: Send {
    /// How many items are looked at before others get their turn.
    const SOME: usize;

    /// Looks at the items from this rank on, `limit` at most. Returns how many these are, and which are wanted.
    fn some(&self, rank: usize, limit: usize) -> (usize, Vec<V>);
}

macro_rules! pages {
    ($($view:ty: $some:expr),*) => {
        $(impl Pages<$view> for Listing<$view> {
            const SOME: usize = $some;

            fn some(&self, rank: usize, limit: usize) -> (usize, Vec<$view>) {
                let start = Start::Rank(rank);
                let items = self.page(&PageRequest { start, limit, filter: None }).items;
                (items.len(), items)
            }
        })*
    };
}

pages!(
    courser_broker::admin::QueueFigures: SOME_ITEMS,
    courser_broker::admin::ConnectionFigures: SOME_ITEMS,
    courser_broker::admin::ChannelsView: SOME_CONNECTIONS,
    courser_broker::admin::ExchangeView: SOME_ITEMS
);

struct Listed<L, V, R: 'static> {
    prefix: &'static str,
    metrics: Vec<&'static Metric<R>>,
    listings: Vec<L>,
    each: Each<V, R>,
    /// The metric, and of which list which item, that comes next.
    at: usize,
    list: usize,
    rank: usize,
}

impl<L: Pages<V>, V, R> Section for Listed<L, V, R> {
    fn bytes(&self) -> usize {
        // What it lists is the broker's.
        0
    }

    fn write_some(&mut self, text: &mut Text) -> bool {
        let Some(metric) = self.metrics.get(self.at) else { return false };
        let name = (self.prefix, metric.name);
        if (self.list, self.rank) == (0, 0) {
            text.header(name, metric.kind, metric.help);
        }
        let items = self.listings.get(self.list).map(|list| list.some(self.rank, L::SOME));
        let (looked_at, items) = items.unwrap_or_default();
        let mut labels = Labels::default();
        for item in &items {
            labels.clear();
            (self.each)(item, &mut labels, &mut |labels, row| {
                text.row(name, labels, metric.of(row));
            });
        }
        self.rank += looked_at;
        if looked_at < L::SOME {
            (self.list, self.rank) = (self.list + 1, 0);
        }
        // All rows of a metric stand together, whichever list they are of.
        if self.list >= self.listings.len() {
            (self.at, self.list) = (self.at + 1, 0);
        }
        self.at < self.metrics.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::wanted::Wanted;
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A list of so many numbers.
    struct Numbers(usize);

    impl Pages<usize> for Numbers {
        const SOME: usize = SOME_ITEMS;

        fn some(&self, rank: usize, limit: usize) -> (usize, Vec<usize>) {
            let items: Vec<usize> = (rank..self.0).take(limit).collect();
            (items.len(), items)
        }
    }

    #[test]
    fn each_item_is_asked_about_once_for_all_metrics_and_families_of_a_page() {
        const METRICS: &[Metric<usize>] = &[
            gauge("first", "A number", |number| Value::Whole(*number as u64)),
            gauge("second", "A number", |number| Value::Whole(*number as u64)),
        ];
        const OTHERS: &[Metric<usize>] =
            &[gauge("third", "A number", |number| Value::Whole(*number as u64))];
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let wanted = Wanted::new(Numbers(300), move |number: &usize| {
            count.fetch_add(1, Ordering::Relaxed);
            number % 100 == 7
        });
        let wanted = Arc::new(wanted);
        let mut page = Page::default();
        for metrics in [METRICS, OTHERS] {
            let each: Each<usize, usize> = Box::new(|number, labels, tell| tell(labels, number));
            page.listed("", metrics, vec![Arc::clone(&wanted)], each);
        }
        let mut text = Text::default();
        while page.write_some(&mut text) {}
        for row in ["first 7\n", "first 207\n", "second 107\n", "third 207\n"] {
            assert!(text.0.contains(row), "{row} in {}", text.0);
        }
        assert!(!text.0.contains("first 8\n"), "{}", text.0);
        assert_eq!(asked.load(Ordering::Relaxed), 300);
    }

    #[test]
    fn items_without_rows_leave_their_place_to_others_from_time_to_time() {
        const METRICS: &[Metric<usize>] = &[gauge("some", "Some of it", none)];
        let counted = Arc::new(AtomicUsize::new(0));
        let looked_at = || counted.load(Ordering::Relaxed);
        let count = Arc::clone(&counted);
        let each: Each<_, _> = Box::new(move |_, _, _| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let mut page = Page::default();
        page.listed("", METRICS, vec![Numbers(300)], each);
        let mut text = Text::default();
        assert!(page.write_some(&mut text), "it goes on later");
        assert!((1..=100).contains(&looked_at()), "{}", looked_at());
        while page.write_some(&mut text) {}
        assert_eq!(looked_at(), 300);
    }
}
