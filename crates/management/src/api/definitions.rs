//! Exporting and importing definitions.

use super::get;
use crate::call::{Call, Outcome};
use crate::definitions::{
    Imported, compare, import_into, leave_out_foreign_hashes, of_broker, of_vhost,
};
use crate::groups;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use crate::values::read_bytes;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::StatusCode;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use memchr::memmem::{self, Finder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Bytes of memory that a file may take once it is read. A usual one that is as long as a body may be takes half of that.
const READ_BYTES_MAX: usize = 256 << 20;
/// Bytes of what separates the parts of a form (RFC 2046, 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;

pub(crate) const ROUTES: &[Route] = &[
    get("/api/definitions", Needs::Administrator, export, "What the broker is made of."),
    get("/api/all-configuration", Needs::Administrator, export, "The same, by its old name."),
    get("/api/definitions/{vhost}", Needs::Administrator, export_vhost, "What a vhost is made of."),
    Route {
        method: Verb::Post,
        pattern: "/api/definitions",
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: import_all,
        doc: "Makes what a file describes; with dry_run says what that would change.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/definitions/{vhost}",
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: import_vhost,
        doc: "Makes what a file describes, in a vhost; with dry_run says what that would change.",
    },
];

/// Whether a request has all definitions in memory, and changes nothing.
pub(crate) fn exports(route: &Route, call: &Call) -> bool {
    let is_of_definitions = ROUTES.iter().any(|one| one.pattern == route.pattern);
    is_of_definitions && (route.method == Verb::Get || call.is_set("dry_run"))
}

fn export(call: &Call) -> Outcome {
    exported_for(call, of_broker(&call.api)?)
}

fn export_vhost(call: &Call) -> Outcome {
    exported_for(call, of_vhost(call.admin(), &call.api.settings.node, call.text("vhost")?)?)
}

/// Hands a document out, on request as RabbitMQ can read all of it.
fn exported_for(call: &Call, mut document: Value) -> Outcome {
    if call.is_set("for_rabbitmq") {
        leave_out_foreign_hashes(&mut document);
    }
    exported(call, &document)
}

/// The document with a tag that tells it from others, or only that it is still the same.
pub(crate) fn exported(call: &Call, document: &Value) -> Outcome {
    let text = serde_json::to_vec(document).map_err(Refusal::internal)?;
    let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(&Sha256::digest(&text)[..12]));
    let known = call.headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    if known.is_some_and(|tags| tags.split(',').any(|one| one.trim() == tag)) {
        let unchanged = Reply::done().with_status(StatusCode::NOT_MODIFIED);
        return Ok(unchanged.with_header(ETAG, &tag));
    }
    let reply = Reply::text(text, "application/json").with_header(ETAG, &tag);
    Ok(match call.query("download").filter(|name| is_plain(name)) {
        Some(name) => {
            reply.with_header(CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\""))
        }
        None => reply,
    })
}

/// Whether a name can stand between quotes in a header.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
}

fn import_all(call: &Call) -> Outcome {
    imported(call, None)
}

fn import_vhost(call: &Call) -> Outcome {
    let vhost = call.text("vhost")?;
    if !call.admin().has_vhost(vhost) {
        return Err(Refusal::not_found());
    }
    imported(call, Some(vhost))
}

/// The file that a request carries.
pub(crate) fn definitions_file(call: &Call) -> Result<&[u8], Refusal> {
    let content_type = call.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let content_type = content_type.unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let file = match kind.as_str() {
        "application/json" => &call.body[..],
        "multipart/form-data" => {
            file_part(content_type, &call.body).map_err(Refusal::bad_request)?
        }
        _ => return Err(Refusal::empty(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
    };
    if read_bytes(file) > READ_BYTES_MAX {
        let most = READ_BYTES_MAX >> 20;
        let reason = format!(
            "The definitions would take more than {most} MiB of memory: import them in parts"
        );
        return Err(Refusal::bad_request(reason));
    }
    Ok(file)
}

/// Says what an import would change where there is this now.
pub(crate) fn tell_plan(call: &Call, now: &Value) -> Outcome {
    let plan = compare(now, definitions_file(call)?, groups::count(call));
    let plan = plan.map_err(|error| Refusal::bad_request(error.to_string()))?;
    Ok(Reply::json(&plan).settled())
}

fn imported(call: &Call, vhost: Option<&str>) -> Outcome {
    let file = definitions_file(call)?;
    if call.is_set("dry_run") {
        let now = match vhost {
            Some(vhost) => of_vhost(call.admin(), &call.api.settings.node, vhost)?,
            None => of_broker(&call.api)?,
        };
        return tell_plan(call, &now);
    }
    let done = import_of(call, file, vhost)?;
    Ok(imported_with(call, &done.warnings))
}

/// Imports a file for who asks for it.
pub(crate) fn import_of(
    call: &Call,
    file: &[u8],
    vhost: Option<&str>,
) -> Result<Imported, Refusal> {
    // The import may have waited long for its place.
    call.check_asker()?;
    let done = import_into(call, file, vhost).map_err(|error| {
        let refused = match call.check_asker() {
            Ok(()) => Refusal::bad_request(error.to_string()),
            Err(not_permitted) => not_permitted,
        };
        // What precedes the error stays.
        refused.partial()
    })?;
    tracing::info!(
        user = call.caller()?.name(),
        users = done.users,
        vhosts = done.vhosts,
        topology = done.topology,
        skipped = done.skipped,
        "definitions imported"
    );
    Ok(done)
}

/// The answer to an import: who asks for warnings gets them, all others get none, as from RabbitMQ.
pub(crate) fn imported_with(call: &Call, warnings: &[String]) -> Reply {
    match call.is_set("warnings") {
        true => Reply::json(&json!({ "warnings": warnings })),
        false => Reply::done(),
    }
}

/// The content of the part `file` of a form.
fn file_part<'b>(content_type: &str, body: &'b [u8]) -> Result<&'b [u8], &'static str> {
    const MISSING: &str = "the form has no part named file";
    let boundary = content_type.split(';').find_map(|part| part.trim().strip_prefix("boundary="));
    let boundary = boundary.ok_or(MISSING)?.trim_matches('"');
    if boundary.len() > BOUNDARY_BYTES_MAX {
        return Err("the boundary of the form has more than 70 characters");
    }
    let delimiter = [b"--", boundary.as_bytes()].concat();
    // In a time that is linear in the body, whatever is in it.
    let delimiter = Finder::new(&delimiter);
    let mut rest = &body[delimiter.find(body).ok_or(MISSING)? + delimiter.needle().len()..];
    while let Some(end) = delimiter.find(rest) {
        let part = &rest[..end];
        rest = &rest[end + delimiter.needle().len()..];
        let head_end = memmem::find(part, b"\r\n\r\n").ok_or(MISSING)?;
        let head = String::from_utf8_lossy(&part[..head_end]).to_ascii_lowercase();
        if head.contains("name=\"file\"") || head.contains("name=file") {
            let content = &part[head_end + 4..];
            return Ok(content.strip_suffix(b"\r\n").unwrap_or(content));
        }
    }
    Err(MISSING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_form_is_found() {
        let body = b"--x\r\ncontent-disposition: form-data; name=\"redirect\"\r\n\r\n/\r\n--x\r\n\
                     Content-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{}\r\n--x--\r\n";
        assert_eq!(file_part("multipart/form-data; boundary=x", body), Ok(&b"{}"[..]));
        assert_eq!(file_part("multipart/form-data; boundary=\"x\"", body), Ok(&b"{}"[..]));
        assert!(file_part("multipart/form-data; boundary=y", body).is_err());
        assert!(file_part("multipart/form-data", body).is_err());
    }
}
