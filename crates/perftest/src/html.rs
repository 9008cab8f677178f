//! The report as one web page that needs nothing else: style, script and figures are in it.

use crate::report::Report;

const PAGE: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/style.css");
const SCRIPT: &str = include_str!("../page/charts.js");

/// The page.
///
/// # Errors
/// When the report cannot be written as JSON, which none of its types allows.
pub fn render(report: &Report) -> serde_json::Result<String> {
    // Inside of a script element only `<` could end it.
    let report = serde_json::to_string(report)?.replace('<', "\\u003c");
    Ok(PAGE
        .replace("/*{{style}}*/", STYLE)
        .replace("/*{{script}}*/", SCRIPT)
        .replace("/*{{report}}*/", &report))
}
