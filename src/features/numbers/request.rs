//! A caller's request, as JSON and headers, and its conversion to an allocator's request.
//!
//! Checks what the numbering language does not see: document ids and idempotency keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderName};
use numbering::{Inputs, Recipient};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use crate::engine::allocator::{KEY_CHARS_MAX, Request, check_key};
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

/// The header that names a call for its retries.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// More bytes than any form of a document id has: four per character, and four characters per
/// composed one.
const ID_BYTES_MAX: usize = 4 * 4 * KEY_CHARS_MAX;

/// Where a void number is replaced.
const REPLACES_ALONE: &str = "is for a call of its own, `POST …/documents/{documentId}/\
    generate-number`; leave it out here";

/// Declares the input of callers: the fields of a number, the same for every route, and the further
/// ones of a route.
macro_rules! orders {
    ($($(#[$about:meta])* $order:ident { $($(#[$says:meta])* $own:ident: $type:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $order {
            $($(#[$says])* pub(crate) $own: $type,)*
            /// Document type.
            #[serde(default, rename = "type", deserialize_with = "text")]
            pub(crate) type_code: Option<String>,
            /// Id of the document type, instead of `type`, where the series has a table of types.
            #[serde(default, deserialize_with = "id")]
            #[schema(value_type = Option<String>)]
            pub(crate) type_id: Option<Id>,
            /// Project, where the series needs one.
            #[serde(default)]
            pub(crate) project: Option<String>,
            /// Id of the project, instead of `project`, where the series has a table of projects.
            #[serde(default, deserialize_with = "id")]
            #[schema(value_type = Option<String>)]
            pub(crate) project_id: Option<Id>,
            /// Document date: `2025-12-02` or a date-time with offset; now without one.
            #[serde(default)]
            pub(crate) date: Option<String>,
            /// Phase, where the series has phases.
            #[serde(default)]
            pub(crate) phase: Option<String>,
            /// Values of the series' variables.
            #[serde(default, deserialize_with = "context")]
            pub(crate) context: BTreeMap<String, String>,
            /// Who the document goes to: `RECIPIENT` is the first of kind TO.
            #[serde(default)]
            pub(crate) recipients: Vec<RecipientRequest>,
            /// Give a document that has a number already another one.
            #[serde(default)]
            pub(crate) again: bool,
            /// The void number in whose place this one is to stand, for `generate-number` alone:
            /// the same document gets another number, as with `again`.
            #[serde(default)]
            pub(crate) replaces: Option<String>,
        }

        impl $order {
            /// The request of a caller for one number.
            pub(crate) fn request(
                self,
                document_id: Option<String>,
                idempotency_key: Option<String>,
                caller: &Caller,
            ) -> Result<Request, Problem> {
                let inputs = Inputs {
                    type_code: type_code(self.type_code, self.type_id.as_ref())?,
                    type_id: self.type_id,
                    project: self.project,
                    project_id: self.project_id,
                    date: self.date,
                    phase: self.phase,
                    context: self.context,
                    recipients: self.recipients.into_iter().map(Recipient::from).collect(),
                    ..Inputs::default()
                };
                let request = caller.request(inputs, document_id, idempotency_key);
                Ok(Request { again: self.again, ..request })
            }

            /// Refuses a replacement where none can be taken.
            pub(crate) fn must_replace_nothing(&self) -> Result<(), Problem> {
                match self.replaces {
                    None => Ok(()),
                    Some(_) => Err(Problem::field("replaces", REPLACES_ALONE)),
                }
            }
        }
    )*};
}

orders! {
    /// A number to generate, or to preview.
    NumberRequest {}

    /// A number to reserve: what a single number takes, the document, and for how long. Or a block:
    /// what a single number takes, and how many.
    ReservationRequest {
        /// The document; without one, the header `Idempotency-Key` is required.
        #[serde(default)]
        document_id: Option<String>,
        /// For how long, such as `90s`, `5m` or `1h`; `reservations.ttl` without it.
        #[serde(default)]
        ttl: Option<String>,
        /// How many numbers, 2 to 1,000, for a block: it is handed back, and never ends by time.
        /// The header `Idempotency-Key` is required, and no document is named.
        #[serde(default)]
        count: Option<u64>,
    }

    /// A number that was given by hand: what a single number takes, the number, the document, and
    /// why.
    RegisterRequest {
        /// The number as it was given.
        number: String,
        /// The document that has it.
        #[serde(default)]
        document_id: Option<String>,
        /// Why it was given by hand, in 10 to 500 characters.
        reason: String,
        /// Keep the number as written, where no series could render it.
        #[serde(default)]
        as_written: bool,
    }

    /// One document of a batch: what a single number takes, and the document.
    DocumentRequest {
        /// The document.
        document_id: String,
    }

    /// A batch: `documents` alone, or a range: `type` and `count` with what a single number takes.
    BatchRequest {
        /// At most 1,000 documents, each with its own type and context.
        // Still JSON, since a mistake in one must not refuse the others.
        #[serde(default)]
        #[schema(value_type = Option<Vec<DocumentRequest>>)]
        documents: Option<Vec<Box<RawValue>>>,
        /// How many numbers, 1 to 1,000,000.
        #[serde(default)]
        count: Option<u64>,
        /// Answer with the text of every number of the range.
        #[serde(default)]
        expand: bool,
        /// The document that the range is for.
        #[serde(default)]
        document_id: Option<String>,
    }
}

/// One recipient of a document: its code, or its id.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecipientRequest {
    /// Its code.
    #[serde(default)]
    code: Option<String>,
    /// Its id, where the series' `RECIPIENT` has a table.
    #[serde(default, deserialize_with = "id")]
    #[schema(value_type = Option<String>)]
    id: Option<Id>,
    /// `TO`, `CC` and the like.
    kind: String,
    /// Its place among the recipients, 0 without one; equal places keep the order of the list.
    #[serde(default)]
    order: i64,
}

/// An id of the reference data: text or a whole number.
pub(crate) type Id = String;

impl From<RecipientRequest> for Recipient {
    fn from(RecipientRequest { code, id, kind, order }: RecipientRequest) -> Self {
        Recipient { code, id, kind, order }
    }
}

impl Caller {
    /// The caller's request for one number.
    pub(crate) fn request(
        &self,
        inputs: Inputs,
        document_id: Option<String>,
        idempotency_key: Option<String>,
    ) -> Request {
        Request {
            inputs,
            document_id,
            count: 1,
            reserve_for: None,
            again: false,
            replaces: None,
            idempotency_key,
            identity: Arc::clone(&self.identity),
            user_id: self.user_id.to_string(),
            ip_address: self.address(),
        }
    }
}

/// The document type of a request: empty if its id names it.
fn type_code(code: Option<String>, id: Option<&Id>) -> Result<String, Problem> {
    match (code, id) {
        (Some(_), Some(_)) => {
            Err(Problem::field("type_id", "stands beside `type`; send one of them"))
        }
        (None, None) => Err(Problem::field("type", "`type` is missing; send it, or `type_id`")),
        (given, _) => Ok(given.unwrap_or_default()),
    }
}

/// The document that a path names.
pub(crate) fn document_of(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    let Path(document_id) =
        path.map_err(|refusal| Problem::field("documentId", refusal.body_text()))?;
    check_document_id("documentId", document_id)
}

/// A document id, normalised like every input.
pub(crate) fn check_document_id(field: &str, text: String) -> Result<String, Problem> {
    // Most systems send normalised texts; a text that is far too long is refused unchanged.
    let is_normal = text.is_ascii() || text.len() > ID_BYTES_MAX;
    let id = if is_normal { text } else { text.nfc().collect() };
    check_key(&id, KEY_CHARS_MAX).map_err(|reason| Problem::field(field, reason))?;
    Ok(id)
}

/// The header `Idempotency-Key`, at most `chars_max` visible ASCII characters.
pub(crate) fn idempotency_key(
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

/// Reads text that may be left out, but not be null.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

/// Reads an id: some systems have numbers, some have text.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Id>, D::Error> {
    match Option::<serde_json::Value>::deserialize(deserializer)? {
        None => Ok(None),
        Some(value) => {
            let read = id_of(&value).map(Some);
            read.ok_or_else(|| de::Error::custom("an id must be a string or a whole number"))
        }
    }
}

/// The text of an id.
fn id_of(value: &serde_json::Value) -> Option<Id> {
    match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(number) => number.as_u64().map(|number| number.to_string()),
        _ => None,
    }
}

/// Reads `context` so that a wrong value is reported by its own name, and a repeated one is refused
/// instead of lost. A name that ends in `_id` may have a whole number.
fn context<'de, D: Deserializer<'de>>(
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
                let read = match value {
                    serde_json::Value::String(value) => Some(value),
                    other if name.ends_with("_id") => id_of(&other),
                    _ => None,
                };
                let Some(value) = read else {
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
    use serde_json::json;

    use super::*;
    use crate::web::body::parse;
    use crate::web::language::Locale;

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

    fn request_of(order: &serde_json::Value) -> Result<Request, Problem> {
        let order: NumberRequest = parse("body", order.to_string().as_bytes())?;
        order.request(None, None, &Caller::anybody())
    }

    #[test]
    fn a_type_is_named_by_its_code_or_by_its_id_and_ids_are_text_or_whole_numbers() {
        let request = request_of(&json!({
            "type_id": 6, "project_id": "2", "context": { "discipline_id": 5 },
            "recipients": [{ "id": 10, "kind": "TO" }],
        }));
        let inputs = request.expect("request").inputs;
        assert_eq!((&*inputs.type_code, inputs.type_id.as_deref()), ("", Some("6")));
        assert_eq!(inputs.project_id.as_deref(), Some("2"));
        assert_eq!(inputs.context["discipline_id"], "5");
        assert_eq!(inputs.recipients[0].id.as_deref(), Some("10"));
        for (wrong, field) in [
            (json!({}), "type"),
            (json!({ "type": "A", "type_id": 1 }), "type_id"),
            (json!({ "type_id": -1 }), "type_id"),
            (json!({ "type": "A", "project_id": 1.5 }), "project_id"),
            (json!({ "type": "A", "recipients": [{ "code": "A" }] }), "recipients[0].kind"),
            (json!({ "type": "A", "context": { "REV": 1 } }), "context.REV"),
        ] {
            let problem = request_of(&wrong).expect_err(field);
            let body = problem.body("r", Locale::English);
            assert_eq!(body.field.as_deref(), Some(field), "{wrong}: {}", body.detail);
        }
    }

    #[test]
    fn a_document_id_is_normalised_and_has_no_control_characters() {
        let check = |id: &str| check_document_id("documentId", id.into());
        assert_eq!(check("e\u{301}").expect("id"), "\u{e9}");
        assert_eq!(check(&"ก".repeat(255)).expect("id").len(), 765);
        for wrong in ["", "a\nb", &"x".repeat(256)] {
            assert!(check(wrong).is_err(), "{wrong:?}");
        }
    }
}
