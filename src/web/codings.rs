//! The transfer codings of a body (RFC 9112, 6.1): chunked, and nothing else.
//!
//! The protocol's library checks only the last coding. A body that has another one, too, would be
//! misread; and a proxy that reads the header differently would find another end of it, and another
//! request after it.

use axum::http::HeaderMap;
use axum::http::header::TRANSFER_ENCODING;

use super::header_lists::entries;
use super::problem::{Problem, Slug};

/// Refuses a body in an unknown coding.
///
/// # Errors
/// `unknown-transfer-coding`; the connection ends with it.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Problem> {
    let sent = headers.get_all(TRANSFER_ENCODING).iter().flat_map(entries);
    let mut codings = sent.filter(|coding| !coding.is_empty());
    let is_known = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(only), None) if is_known(only) => Ok(()),
        _ => {
            let detail = "the only transfer coding here is `chunked`, once";
            Err(Problem::new(Slug::UnknownTransferCoding, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn chunks_alone_are_known_in_however_many_headers_it_is_said() {
        let is_let_in = |sent: &[&'static [u8]]| {
            let lines = sent.iter().map(|line| HeaderValue::from_bytes(line).expect("a value"));
            check(&lines.map(|line| (TRANSFER_ENCODING, line)).collect()).is_ok()
        };
        for known in
            [&[][..], &[&b"chunked"[..]], &[b"CHUNKED"], &[b" , chunked ,"], &[b"", b"chunked"]]
        {
            assert!(is_let_in(known), "{known:?}");
        }
        for unknown in [
            &[&b"x, chunked"[..]][..],
            &[b"gzip", b"chunked"],
            &[b"chunked", b"chunked"],
            &[b"chunked, chunked"],
            &[b"chunked;a=b"],
            &[b"identity"],
            &[b"\xff, chunked"],
            &[b"chunked\xff"],
        ] {
            assert!(!is_let_in(unknown), "{unknown:?}");
        }
    }
}
