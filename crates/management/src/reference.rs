//! The description of the API as a page for people, made from the table of routes: plain HTML that runs no script
//! and loads nothing from elsewhere.

use crate::openapi::needed;
use crate::routes::{Route, Routes};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How the page looks, as a file of its own: pages here have no styles within.
pub(crate) const STYLE: &str = "\
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 75rem; margin: 0 auto; padding: 1rem }
table { border-collapse: collapse; width: 100% }
td { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: .3rem .8rem .3rem 0; vertical-align: top }
code { font: .93em ui-monospace, monospace; overflow-wrap: anywhere }
td:first-child { width: 4.5rem; font-weight: 600 }
td:nth-child(2) { width: 40% }
td:last-child { width: 15%; opacity: .75 }
nav a { margin-right: .8rem }
";

/// The page.
pub(crate) fn html(routes: &Routes, version: &str) -> String {
    let mut groups: BTreeMap<&str, Vec<&Route>> = BTreeMap::new();
    for route in routes.iter() {
        groups.entry(group(route.pattern)).or_default().push(route);
    }
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Courser HTTP API</title>\
         <meta name=viewport content=\"width=device-width\"><link rel=stylesheet href=index.css>\
         <h1>Courser HTTP API</h1><p>Version {}. Paths, objects and errors are those of RabbitMQ's management API. \
         Names in paths are percent-encoded: the vhost <code>/</code> is <code>%2F</code>. \
         <a href=openapi.json>The same as OpenAPI</a>.<nav>",
        escaped(version)
    );
    // Writing to a String does not fail.
    for name in groups.keys() {
        let _ = write!(page, "<a href=\"#{name}\">{name}</a> ");
    }
    page.push_str("</nav>");
    for (name, mut routes) in groups {
        routes.sort_by_key(|route| (route.pattern, route.method));
        let _ = write!(page, "<h2 id=\"{name}\">{name}</h2><table>");
        for Route { method, pattern, needs, doc, .. } in routes {
            let method = method.name().to_uppercase();
            let (pattern, doc, needed) = (escaped(pattern), escaped(doc), needed(*needs));
            let _ = write!(page, "<tr><td>{method}<td><code>{pattern}</code><td>{doc}<td>{needed}");
        }
        page.push_str("</table>");
    }
    page
}

/// What a path is about: its first segment behind `api`.
fn group(pattern: &str) -> &str {
    let mut parts = pattern.split('/').skip(1);
    match parts.next() {
        Some("api") => parts.next().unwrap_or_default(),
        other => other.unwrap_or_default(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
