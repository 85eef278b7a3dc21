//! What a caller asks for, as JSON and headers, and its way into an allocator's request.
//!
//! Checks what the numbering language does not see: document ids and idempotency keys.

use std::collections::BTreeMap;
use std::fmt;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderName};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use super::gate::Caller;
use super::problem::Problem;
use crate::allocator::{KEY_CHARS_MAX, Request, check_key};
use crate::number::Inputs;

/// The header that names a call for its retries.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A number to generate, or to preview.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NumberOrder {
    /// Document type.
    #[serde(rename = "type")]
    pub(super) type_code: String,
    /// Project, where the series needs one.
    #[serde(default)]
    pub(super) project: Option<String>,
    /// Document date: `2025-12-02` or a date-time with offset; now without one.
    #[serde(default)]
    pub(super) date: Option<String>,
    /// Phase, where the series has phases.
    #[serde(default)]
    pub(super) phase: Option<String>,
    /// Values of the series' variables.
    #[serde(default, deserialize_with = "context")]
    pub(super) context: BTreeMap<String, String>,
    /// Give a document that has a number already another one.
    #[serde(default)]
    pub(super) again: bool,
}

/// One document of a batch: what a single number takes, and the document.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DocumentOrder {
    /// The document.
    pub(super) document_id: String,
    /// Document type.
    #[serde(rename = "type")]
    pub(super) type_code: String,
    /// Project, where the series needs one.
    #[serde(default)]
    pub(super) project: Option<String>,
    /// Document date: `2025-12-02` or a date-time with offset; now without one.
    #[serde(default)]
    pub(super) date: Option<String>,
    /// Phase, where the series has phases.
    #[serde(default)]
    pub(super) phase: Option<String>,
    /// Values of the series' variables.
    #[serde(default, deserialize_with = "context")]
    pub(super) context: BTreeMap<String, String>,
    /// Give a document that has a number already another one.
    #[serde(default)]
    pub(super) again: bool,
}

impl NumberOrder {
    /// The request of a caller for one number.
    pub(super) fn request(
        self,
        document_id: Option<String>,
        idempotency_key: Option<String>,
        caller: &Caller,
    ) -> Request {
        let NumberOrder { type_code, project, date, phase, context, again } = self;
        Request {
            inputs: Inputs { type_code, project, date, phase, context },
            document_id,
            count: 1,
            again,
            idempotency_key,
            user_id: caller.user_id.clone(),
            ip_address: caller.ip_address.clone(),
        }
    }
}

impl DocumentOrder {
    /// The request of a caller for this document's number.
    pub(super) fn request(
        self,
        idempotency_key: Option<String>,
        caller: &Caller,
    ) -> Result<Request, Problem> {
        let document_id = check_document_id("document_id", &self.document_id)?;
        let DocumentOrder { type_code, project, date, phase, context, again, .. } = self;
        let order = NumberOrder { type_code, project, date, phase, context, again };
        Ok(order.request(Some(document_id), idempotency_key, caller))
    }
}

/// The document that a path names.
pub(super) fn document_of(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    let Path(document_id) =
        path.map_err(|refusal| Problem::field("documentId", refusal.body_text()))?;
    check_document_id("documentId", &document_id)
}

/// A document id, normalised like every input (R2.4).
pub(crate) fn check_document_id(field: &str, text: &str) -> Result<String, Problem> {
    let id: String = text.nfc().collect();
    check_key(&id, KEY_CHARS_MAX).map_err(|reason| Problem::field(field, reason))?;
    Ok(id)
}

/// The header `Idempotency-Key`, at most `chars_max` visible ASCII characters.
pub(super) fn idempotency_key(
    headers: &HeaderMap,
    chars_max: usize,
) -> Result<Option<String>, Problem> {
    let mut sent = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = sent.next() else { return Ok(None) };
    let refused = |reason: &str| Problem::field("Idempotency-Key", reason);
    if sent.next().is_some() {
        return Err(refused("must be sent once"));
    }
    let key = key.to_str().ok().filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic()));
    let key = key.ok_or_else(|| refused("must be visible ASCII characters without spaces"))?;
    check_key(key, chars_max).map_err(|reason| refused(&reason))?;
    Ok(Some(key.into()))
}

/// Reads `context` so that a wrong value is told by its own name, and a repeated one is refused
/// instead of lost.
pub(super) fn context<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    struct Context;

    impl<'de> Visitor<'de> for Context {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of variables and their values")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut context = BTreeMap::new();
            while let Some((name, value)) = map.next_entry::<String, serde_json::Value>()? {
                let serde_json::Value::String(value) = value else {
                    return Err(de::Error::custom(format!("`context.{name}` must be a string")));
                };
                if context.contains_key(&name) {
                    return Err(de::Error::custom(format!("`context.{name}` stands there twice")));
                }
                context.insert(name, value);
            }
            Ok(context)
        }
    }

    deserializer.deserialize_map(Context)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn key(text: &str) -> Result<Option<String>, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_bytes(text.as_bytes()).expect("header"));
        idempotency_key(&headers, KEY_CHARS_MAX)
    }

    #[test]
    fn an_idempotency_key_is_255_visible_characters_at_most() {
        assert_eq!(key("order-7#1").expect("key").as_deref(), Some("order-7#1"));
        let longest = "k".repeat(255);
        assert_eq!(key(&longest).expect("key"), Some(longest.clone()));
        for wrong in ["", "a b", "ก", &format!("{longest}k")] {
            assert!(key(wrong).is_err(), "{wrong:?}");
        }
        assert!(idempotency_key(&HeaderMap::new(), 1).expect("none").is_none());
        let mut twice = HeaderMap::new();
        twice.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a"));
        twice.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a"));
        assert!(idempotency_key(&twice, 9).is_err());
    }

    #[test]
    fn a_document_id_is_normalised_and_has_no_control_characters() {
        assert_eq!(check_document_id("documentId", "e\u{301}").expect("id"), "\u{e9}");
        assert_eq!(check_document_id("documentId", &"ก".repeat(255)).expect("id").len(), 765);
        for wrong in ["", "a\nb", &"x".repeat(256)] {
            assert!(check_document_id("documentId", wrong).is_err(), "{wrong:?}");
        }
    }
}
