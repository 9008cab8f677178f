//! One look at the broker: what is asked for it, and what came back.

use super::detail::{Detail, Subject};
use super::view::View;
use crate::client::{Client, segment};
use crate::failure::{Failure, NO_PERMISSION};
use serde_json::Value;

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ask {
    /// The list.
    pub view: View,
    /// In this vhost; in all if none.
    pub vhost: Option<String>,
    /// The column that it is sorted by.
    pub sort: usize,
    /// Largest or last first.
    pub is_descending: bool,
    /// What names have to contain.
    pub filter: String,
    /// The page, from 1.
    pub page: u64,
    /// Rows of a page.
    pub rows: u16,
    /// One thing, besides.
    pub subject: Option<Subject>,
}

/// What the broker answered.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// What was asked.
    pub ask: Ask,
    /// The overview.
    pub overview: Value,
    /// The node; null for those who may not see it.
    pub node: Value,
    /// What needs attention, in words.
    pub attention: Vec<String>,
    /// Rows of the list.
    pub rows: Vec<Value>,
    /// Pages of it.
    pub pages: u64,
    /// Rows on all pages.
    pub count: u64,
    /// The one thing; nothing if it is not there any more.
    pub detail: Option<Detail>,
}

impl Look {
    /// Asks the broker.
    ///
    /// # Errors
    /// If it does not answer, or refuses.
    pub fn take(client: &mut Client, ask: &Ask) -> Result<Self, Failure> {
        client.restart_clock();
        let overview = client.get("/api/overview?columns=node,product_name,product_version,cluster_name,message_stats,queue_totals,object_totals")?;
        let node = permitted(client.get("/api/nodes"))?[0].take();
        let attention = permitted(client.get("/api/attention"))?;
        // The page may be gone since the last look.
        let list = match client.find(&path(ask))? {
            Some(list) => list,
            None => client.get(&path(&Ask { page: 1, ..ask.clone() }))?,
        };
        let detail = match &ask.subject {
            Some(subject) => subject.look(client)?,
            None => None,
        };
        let texts = attention.as_array().into_iter().flatten();
        Ok(Look {
            ask: ask.clone(),
            overview,
            node,
            attention: texts.filter_map(|one| one["text"].as_str().map(str::to_owned)).collect(),
            pages: list["page_count"].as_u64().unwrap_or(1).max(1),
            count: list["filtered_count"].as_u64().unwrap_or_default(),
            rows: match list {
                Value::Object(mut list) => match list.remove("items") {
                    Some(Value::Array(rows)) => rows,
                    _ => return Err(Failure::answer("a page without items")),
                },
                _ => return Err(Failure::answer("it is not a page")),
            },
            detail,
        })
    }
}

/// Nothing where the user may not see it.
pub(crate) fn permitted(answer: Result<Value, Failure>) -> Result<Value, Failure> {
    match answer {
        Err(failure) if failure.code == NO_PERMISSION => Ok(Value::Null),
        answer => answer,
    }
}

fn path(ask: &Ask) -> String {
    let name = ask.view.name();
    let list = match (&ask.vhost, ask.view) {
        (None, _) => format!("/api/{name}"),
        (Some(vhost), View::Queues | View::Exchanges) => format!("/api/{name}/{}", segment(vhost)),
        (Some(vhost), _) => format!("/api/vhosts/{}/{name}", segment(vhost)),
    };
    let columns = ask.view.columns();
    let mut members: Vec<_> = columns.iter().map(|column| column.member).collect();
    members.extend(ask.view.keys());
    members.sort_unstable();
    members.dedup();
    format!(
        "{list}?page={}&page_size={}&sort={}&sort_reverse={}&name={}&columns={}",
        ask.page,
        ask.rows,
        columns[ask.sort].member,
        ask.is_descending,
        segment(&ask.filter),
        members.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(view: View) -> Ask {
        Ask {
            view,
            vhost: None,
            sort: 0,
            is_descending: true,
            filter: "a&b".to_owned(),
            page: 3,
            rows: 20,
            subject: None,
        }
    }

    #[test]
    fn the_broker_sorts_filters_and_pages() {
        let path = path(&ask(View::Exchanges));
        assert!(path.starts_with(
            "/api/exchanges?page=3&page_size=20&sort=name&sort_reverse=true&name=a%26b&columns="
        ));
    }

    #[test]
    fn a_vhost_narrows_each_list() {
        let inside = |view| path(&Ask { vhost: Some("/".to_owned()), ..ask(view) });
        assert!(inside(View::Queues).starts_with("/api/queues/%2F?"));
        assert!(inside(View::Channels).starts_with("/api/vhosts/%2F/channels?"));
    }
}
