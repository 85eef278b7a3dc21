//! Entity tags: whether a reader already has an answer, and which version a change builds on.
//!
//! A version of a configuration is tagged by its id and its number: a code that is free again names
//! another configuration, whose versions begin at 1 again. A list is tagged by its bytes.

use axum::http::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use numbering::hexadecimal;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::header_lists::entries;
use super::problem::{Problem, Slug};
use crate::ledger::SeriesVersion;

/// Bytes of a hash that distinguish one list from another.
const HASH_BYTES: usize = 16;

/// The tag of a version of a configuration.
pub(crate) fn tag_of(config_id: i64, version: u32) -> HeaderValue {
    value(&format!("{config_id}-{version}"))
}

fn value(tag: &str) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{tag}\"")).expect("letters, digits, - and quotes")
}

/// The content of a version, or 304 for a reader that has it.
pub(crate) fn tagged(
    headers: &HeaderMap,
    version: &SeriesVersion,
    body: &impl Serialize,
) -> Response {
    let tag = tag_of(version.series_id, version.version);
    answer(headers, tag, || axum::Json(body).into_response())
}

/// A list, tagged by its bytes, or 304 for a reader that has it.
pub(crate) fn tagged_by_bytes(headers: &HeaderMap, body: &impl Serialize) -> Response {
    tagged_from("", headers, body)
}

/// The same for a list of reference data, whose tag begins with the stamp of these.
pub(crate) fn tagged_at(stamp: i64, headers: &HeaderMap, body: &impl Serialize) -> Response {
    tagged_from(&format!("{stamp}-"), headers, body)
}

fn tagged_from(head: &str, headers: &HeaderMap, body: &impl Serialize) -> Response {
    let bytes = match serde_json::to_vec(body) {
        Ok(bytes) => bytes,
        Err(error) => return Problem::internal_taking_nothing(&error).into_response(),
    };
    let hash = hexadecimal(&Sha256::digest(&bytes)[..HASH_BYTES]);
    let tag = value(&format!("{head}{hash}"));
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    answer(headers, tag, || (kind, bytes).into_response())
}

fn answer(headers: &HeaderMap, tag: HeaderValue, whole: impl FnOnce() -> Response) -> Response {
    if is_known(headers, &tag) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    ([(ETAG, tag)], whole()).into_response()
}

/// Whether the reader has the answer with this tag. A weak tag is enough for reading: a proxy that
/// compresses an answer makes its tag weak.
fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let mut sent = headers.get_all(IF_NONE_MATCH).iter().flat_map(entries);
    sent.any(|one| one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == tag.as_bytes())
}

/// The version in the header `If-Match`, if it is sent. The number of the version alone, the tag of
/// earlier releases, is accepted.
pub(crate) fn if_match(headers: &HeaderMap, series_id: i64) -> Result<Option<u32>, Problem> {
    let Some(tag) = tag_sent(headers) else { return Ok(None) };
    let read = tag.and_then(|tag| match tag.split_once('-') {
        None => Some((series_id, tag.parse().ok()?)),
        Some((id, version)) => Some((id.parse().ok()?, version.parse().ok()?)),
    });
    match read {
        Some((id, version)) if id == series_id => Ok(Some(version)),
        Some((id, _)) => {
            let detail = format!("the ETag is of configuration {id}, not of {series_id}");
            let problem = Problem::new(Slug::VersionConflict, detail);
            Err(problem.of_field("If-Match"))
        }
        None => {
            let why = "must be one ETag of the configuration, as \"23-3\"";
            Err(Problem::field("If-Match", why))
        }
    }
}

/// The stamp of reference data in the header `If-Match`, if it is sent.
pub(crate) fn stamp_if_match(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(tag) = tag_sent(headers) else { return Ok(None) };
    let stamp = tag.and_then(|tag| tag.split_once('-')?.0.parse().ok());
    let refused = || Problem::field("If-Match", "must be one ETag of the table, as it was given");
    stamp.map(Some).ok_or_else(refused)
}

/// The content of the header `If-Match`, if it is sent: one strong tag, or nothing usable.
fn tag_sent(headers: &HeaderMap) -> Option<Option<&str>> {
    let mut sent = headers.get_all(IF_MATCH).iter();
    let first = sent.next()?;
    let tag = first.to_str().ok().filter(|_| sent.next().is_none());
    Some(tag.and_then(|tag| tag.trim().strip_prefix('"')?.strip_suffix('"')))
}

/// The version that a change must build on: a change of an unread version would undo what another
/// caller has just saved.
pub(crate) fn needed_if_match(headers: &HeaderMap, series_id: i64) -> Result<u32, Problem> {
    if_match(headers, series_id)?.ok_or_else(|| {
        Problem::new(
            Slug::PreconditionRequired,
            "send the header If-Match with the ETag of the configuration that you have read",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_the_version_that_it_builds_on_by_one_tag() {
        let read = |tag: &'static str| {
            let headers = HeaderMap::from_iter([(IF_MATCH, HeaderValue::from_static(tag))]);
            if_match(&headers, 23)
        };
        for known in ["\"3\"", "\"23-3\""] {
            assert_eq!(read(known).ok().flatten(), Some(3), "{known}");
        }
        for wrong in ["3", "*", "W/\"3\"", "\"\"", "\"3\", \"4\"", "\"-1\"", "\"23-\"", "23-3"] {
            let refused = read(wrong).expect_err(wrong);
            assert_eq!(refused.slug(), Slug::InvalidField, "{wrong}");
        }
        assert_eq!(read("\"24-3\"").expect_err("another's").slug(), Slug::VersionConflict);
        assert!(needed_if_match(&HeaderMap::new(), 23).is_err());
    }

    #[test]
    fn who_has_what_is_asked_for_is_told_so_and_nobody_else() {
        let status = |sent: Option<&str>, body: &str| {
            let tag = sent.map(|tag| HeaderValue::from_str(tag).expect("a tag"));
            let headers = tag.into_iter().map(|tag| (IF_NONE_MATCH, tag)).collect();
            let answer = tagged_by_bytes(&headers, &body);
            (answer.status().as_u16(), answer.headers()[ETAG].to_str().expect("a tag").to_owned())
        };
        let (first, tag) = status(None, "a");
        assert_eq!(first, 200);
        let several = format!("\"x\", W/{tag}");
        for known in [&*tag, &*several, "*"] {
            assert_eq!(status(Some(known), "a"), (304, tag.clone()), "{known}");
        }
        assert_eq!(status(Some("\"x\""), "a").0, 200);
        let (changed, other) = status(Some(&tag), "b");
        assert!(changed == 200 && other != tag);
    }
}
