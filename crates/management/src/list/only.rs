//! What of a page's list is wanted besides a name: `type`, `state`, and `has`, a column that says
//! something.

use super::order::Key;
use crate::call::Call;
use crate::json::{Columns, Fields};

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Only {
    pub kind: Option<String>,
    pub state: Option<String>,
    /// The path of a member that is neither missing nor empty, 0 or false.
    pub has: Option<String>,
}

impl Only {
    /// What is asked for.
    pub fn asked(call: &Call) -> Self {
        let word = |name: &str| call.query(name).filter(|word| !word.is_empty()).map(str::to_owned);
        Only { kind: word("type"), state: word("state"), has: word("has") }
    }

    /// Whether everything is wanted.
    pub fn is_everything(&self) -> bool {
        self.kind.is_none() && self.state.is_none() && self.has.is_none()
    }

    /// The columns that decide.
    pub fn columns(&self) -> Columns {
        let wanted = [self.kind.as_ref().map(|_| "type"), self.state.as_ref().map(|_| "state")];
        let wanted = wanted.into_iter().flatten().chain(self.has.as_deref());
        Columns::parse(&wanted.collect::<Vec<&str>>().join(","))
    }

    /// Whether an item is wanted that `render` writes.
    pub fn lets_through<T>(
        &self,
        item: &T,
        columns: &Columns,
        render: &impl Fn(&T, &mut Fields),
    ) -> bool {
        let mut fields = Fields::new(columns);
        render(item, &mut fields);
        let object = fields.finish();
        let is = |member: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| object[member].as_str() == Some(wanted))
        };
        is("type", &self.kind)
            && is("state", &self.state)
            && self.has.as_ref().is_none_or(|column| Key::of(&object, column).says_something())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_column_says_something_unless_it_is_missing_or_empty() {
        let object = json!({
            "zero": 0, "one": 1, "null": null, "no": false, "yes": true, "empty": "", "text": "x",
            "list": [], "inner": { "x": { "rate": 0.5 } },
        });
        for column in ["zero", "null", "no", "empty", "list", "none", "inner.y", "one.x"] {
            assert!(!Key::of(&object, column).says_something(), "{column}");
        }
        for column in ["one", "yes", "text", "inner", "inner.x", "inner.x.rate"] {
            assert!(Key::of(&object, column).says_something(), "{column}");
        }
    }
}
