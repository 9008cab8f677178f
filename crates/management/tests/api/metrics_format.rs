//! Reads pages of metrics, and complains of what the text format does not allow.

use std::collections::{BTreeMap, HashSet};

/// What a page says.
#[derive(Debug, Default)]
pub struct Metrics {
    /// The type of each metric.
    pub types: BTreeMap<String, String>,
    /// Values by series, as `name{labels}`.
    pub rows: BTreeMap<String, f64>,
}

impl Metrics {
    pub fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let mut metrics = Metrics::default();
        let (mut current, mut closed) = (String::new(), HashSet::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a type");
                assert!(closed.insert(name.to_owned()), "{name} stands there twice");
                let kinds = ["gauge", "counter", "untyped", "histogram", "summary"];
                assert!(kinds.contains(&kind), "{line}");
                metrics.types.insert(name.to_owned(), kind.to_owned());
                name.clone_into(&mut current);
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                assert!(rest.starts_with(&format!("{current} ")), "{line} is behind {current}");
            } else {
                let (series, value) = line.rsplit_once(' ').expect("a row");
                let value = value.parse().unwrap_or_else(|_| panic!("{line}: no number"));
                let name = series.split('{').next().unwrap_or_default();
                let is_part = ["_bucket", "_count", "_sum"]
                    .iter()
                    .any(|suffix| name.strip_suffix(suffix) == Some(&current));
                assert!(name == current || is_part, "{line} is behind {current}");
                assert!(is_name(name), "{line}: no name");
                let before = metrics.rows.insert(series.to_owned(), value);
                assert_eq!(before, None, "{series} stands there twice");
            }
        }
        metrics
    }

    /// The value of a series.
    pub fn value(&self, series: &str) -> f64 {
        *self.rows.get(series).unwrap_or_else(|| panic!("no {series} in {:#?}", self.rows))
    }

    pub fn kind(&self, name: &str) -> &str {
        self.types.get(name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// How many rows there are of a metric.
    pub fn count(&self, name: &str) -> usize {
        self.rows.keys().filter(|series| series.split('{').next() == Some(name)).count()
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    !name.is_empty() && name.bytes().all(is_part) && !name.as_bytes()[0].is_ascii_digit()
}
