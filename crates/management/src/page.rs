//! The web page: files that need no login, as nothing in them is secret. What it shows it asks
//! the API for.

use crate::reply::Reply;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, HeaderMap, IF_NONE_MATCH};

/// A file of the page.
pub(crate) struct File {
    /// As `/` or `/assets/NAME`.
    pub path: &'static str,
    pub content_type: &'static str,
    pub bytes: &'static [u8],
    /// The same, compressed; empty if that gains nothing.
    pub gzip: &'static [u8],
    /// With quotes.
    pub etag: &'static str,
    /// Its name changes with its content, so a browser need not ask for it twice.
    pub is_immutable: bool,
}

/// The files, which `build.rs` lists.
static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The file of this path, or that the client has it already. `None` if there is none.
pub(crate) fn answer(path: &str, headers: &HeaderMap, is_gzip_wanted: bool) -> Option<Reply> {
    serve(FILES, path, headers, is_gzip_wanted)
}

fn serve(files: &[File], path: &str, headers: &HeaderMap, is_gzip_wanted: bool) -> Option<Reply> {
    let file = files.iter().find(|file| file.path == path)?;
    let known = headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let is_known = known.is_some_and(|tags| tags.split(',').any(|one| one.trim() == file.etag));
    let reply = match (is_known, is_gzip_wanted && !file.gzip.is_empty()) {
        (true, _) => Reply::done().with_status(StatusCode::NOT_MODIFIED),
        (false, true) => {
            Reply::text(file.gzip, file.content_type).with_header(CONTENT_ENCODING, "gzip")
        }
        (false, false) => Reply::text(file.bytes, file.content_type),
    };
    let cache = match file.is_immutable {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    Some(reply.with_header(ETAG, file.etag).with_header(CACHE_CONTROL, cache))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_the_page_begins_with_is_there() {
        let index = FILES.iter().find(|file| file.path == "/").expect("the page");
        let index = String::from_utf8_lossy(index.bytes);
        let named = index.split('"').filter_map(|text| text.strip_prefix("./assets/"));
        let named: Vec<&str> = named.collect();
        assert!(named.len() >= 3, "script, style and icon: {named:?}");
        for name in named {
            let path = format!("/assets/{name}");
            assert!(FILES.iter().any(|file| file.path == path), "{name} is missing");
        }
    }

    #[test]
    fn all_of_the_page_is_small() {
        let bytes: usize = FILES.iter().map(|file| file.gzip.len()).sum();
        assert!(bytes < 200_000, "{bytes} bytes");
    }

    const PAGE: &[File] = &[File {
        path: "/",
        content_type: "text/html; charset=utf-8",
        bytes: b"<p>long</p>",
        gzip: b"short",
        etag: "\"1\"",
        is_immutable: false,
    }];

    fn status(path: &str, tags: Option<&str>) -> Option<StatusCode> {
        let mut headers = HeaderMap::new();
        if let Some(tags) = tags {
            headers.insert(IF_NONE_MATCH, tags.parse().expect("a value"));
        }
        serve(PAGE, path, &headers, true).map(|reply| reply.status)
    }

    #[test]
    fn a_file_is_sent_unless_the_client_has_it() {
        assert_eq!(status("/", None), Some(StatusCode::OK));
        assert_eq!(status("/", Some("\"0\", \"1\"")), Some(StatusCode::NOT_MODIFIED));
        assert_eq!(status("/", Some("\"0\"")), Some(StatusCode::OK));
        assert_eq!(status("/assets/none", None), None);
    }
}
