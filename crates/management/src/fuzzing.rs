//! What fuzz targets try by itself, which is otherwise behind a connection. No part of the crate's interface.

use crate::api;
use crate::path;
use crate::routes::Routes;
use std::sync::LazyLock;

/// Names in a path and what stands there for them.
pub type Params = Vec<(&'static str, Vec<u8>)>;

static ROUTES: LazyLock<Routes> = LazyLock::new(|| Routes::new(api::TABLE));

/// What a path is for: the pattern that it matches, and what stands for the names in it.
pub fn resource(path: &str) -> Option<(&'static str, Params)> {
    let segments = path::split(path)?;
    let resource = ROUTES.find(&segments)?;
    Some((resource.routes.first()?.pattern, resource.params(segments)))
}

/// Names and values of a query string.
pub fn query(text: &str) -> Option<Vec<(String, String)>> {
    path::query(text)
}

/// A text as a query string has it.
pub fn encode_form(text: &str) -> String {
    path::encode_form(text)
}
