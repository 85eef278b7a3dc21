//! `POST /api/v1/document-numbering/batches`: many numbers in one call, either for a list of
//! documents (answered item by item) or as a range of one counter (all or nothing).

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use crate::auth::COUNT_MAX;
use crate::engine::allocator::{Hints, Issued, KEY_CHARS_MAX, Request};
use crate::features::numbers::answer::{NumberAnswer, RangeAnswer};
use crate::features::numbers::request::{self, BatchRequest, DocumentRequest};
use crate::features::numbers::texts::{StreamedTexts, Texts};
use crate::web::App;
use crate::web::body::{self, Json};
use crate::web::in_turns::join_in_turns;
use crate::web::language;
use crate::web::middleware::Caller;
use crate::web::outcome::{outcome_of, status_of};
use crate::web::problem::{Problem, ProblemBody, Slug};

/// Most documents in one batch.
const DOCUMENTS_MAX: usize = 1_000;
/// The size of an item's answer in addition to the texts of its document, in bytes.
const ITEM_BYTES: usize = 512;
/// Refusals of one batch that include a hint.
const HINTS_MAX: usize = 10;
/// The key of an item is the header's key and `#` with up to three digits (F21).
const BATCH_KEY_CHARS_MAX: usize = KEY_CHARS_MAX - 4;

/// One answer per document, in their order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchAnswer {
    // Each is JSON already.
    #[schema(value_type = Vec<ItemAnswer<'static>>)]
    items: Vec<Box<RawValue>>,
}

/// What became of one document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum ItemAnswer<'a> {
    /// It has its number.
    Numbered(NumberedItem<'a>),
    /// It has none.
    Refused(RefusedItem),
}

/// A document that has its number.
#[derive(Debug, Serialize, ToSchema)]
struct NumberedItem<'a> {
    /// 201, or 200 for an earlier number.
    status: u16,
    /// The number.
    #[serde(flatten)]
    number: NumberAnswer<'a>,
}

/// A document that has none.
#[derive(Debug, Serialize, ToSchema)]
struct RefusedItem {
    /// The status that a single call would have had.
    status: u16,
    /// Why.
    problem: ProblemBody,
}

/// What 200 answers: documents, or a range that an earlier call took.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "it is only described")]
enum BatchOutcome<'a> {
    Documents(BatchAnswer),
    Range(RangeAnswer<'a>),
}

/// Takes many numbers.
#[utoipa::path(
    post, path = "", tag = "numbers",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "At most 251 characters"),
    ),
    request_body = BatchRequest,
    responses(
        (status = 201, body = RangeAnswer, description = "A new range"),
        (status = 200, body = BatchOutcome, description = "Per document, or an earlier range"),
    )
)]
pub(crate) async fn create_batch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(mut order): Json<BatchRequest>,
) -> Result<Response, Problem> {
    let key = request::idempotency_key(&headers, BATCH_KEY_CHARS_MAX)?;
    let Some(documents) = order.list()? else {
        return take_range(&app, order, key, &caller).await;
    };
    caller.check_count("documents", documents.len().try_into().unwrap_or(u64::MAX))?;
    // Numbers that are taken cannot be refused afterwards.
    caller.holdings.reserve_answer(answer_bytes(&documents))?;
    let mut numbered = number_documents(&app, &caller, &documents, key.as_deref()).await;
    if numbered.iter().all(|item| item.over_limit.is_some())
        && let Some(refused) = numbered.pop().and_then(|item| item.over_limit)
    {
        return Err(refused);
    }
    let items = numbered.into_iter().map(|item| item.json).collect::<serde_json::Result<Vec<_>>>();
    let items = items.map_err(|error| Problem::internal(&error))?;
    // Each problem in it has a sentence for the user.
    Ok((language::headers(caller.language), axum::Json(BatchAnswer { items })).into_response())
}

/// About how many bytes the answer for documents has.
fn answer_bytes(documents: &[Box<RawValue>]) -> usize {
    documents.iter().map(|document| ITEM_BYTES + document.get().len()).sum()
}

/// The answer for one document, as it is sent.
struct NumberedDocument {
    json: serde_json::Result<Box<RawValue>>,
    /// The refusal of a limit; if it refuses all documents, it refuses the call.
    over_limit: Option<Problem>,
}

impl NumberedDocument {
    fn of(outcome: Result<Issued, Problem>, caller: &Caller) -> Self {
        let json = to_raw_value(&ItemAnswer::of(&outcome, caller));
        let over_limit = outcome.err().filter(|it| it.slug() == Slug::TooManyRequests);
        NumberedDocument { json, over_limit }
    }
}

impl BatchRequest {
    /// The documents, if it lists some; a mixture of a list and a range is refused.
    fn list(&mut self) -> Result<Option<Vec<Box<RawValue>>>, Problem> {
        let Some(documents) = self.documents.take() else { return Ok(None) };
        let BatchRequest { type_code, type_id, project, project_id, date, phase, .. } = &*self;
        let texts = [type_code, type_id, project, project_id, date, phase, &self.document_id];
        let is_alone = texts.into_iter().all(Option::is_none)
            && self.context.is_empty()
            && self.recipients.is_empty()
            && self.count.is_none()
            && !(self.expand || self.again)
            && self.replaces.is_none();
        if !is_alone {
            return Err(Problem::field(
                "documents",
                "must stand alone: each document has its own type, project, date, phase, context",
            ));
        }
        if documents.is_empty() || documents.len() > DOCUMENTS_MAX {
            let reason = format!("must list 1 to {DOCUMENTS_MAX} documents");
            return Err(Problem::field("documents", reason));
        }
        Ok(Some(documents))
    }

    /// The request for a range.
    fn range(mut self, key: Option<String>, caller: &Caller) -> Result<Request, Problem> {
        let missing =
            |field| Problem::field(field, "is missing: name documents, or type and count");
        if self.type_code.is_none() && self.type_id.is_none() {
            return Err(missing("type"));
        }
        self.must_replace_nothing()?;
        let count = self.count.ok_or_else(|| missing("count"))?;
        caller.check_count("count", count)?;
        let document_id = self.document_id.take();
        let document_id =
            document_id.map(|id| request::check_document_id("document_id", id)).transpose()?;
        Ok(Request { count, ..self.request(document_id, key, caller)? })
    }
}

impl Caller {
    /// Refuses more numbers in one call than the caller's token may ask for. More than any caller
    /// may ask for is refused where that bound is checked.
    pub(crate) fn check_count(&self, field: &str, count: u64) -> Result<(), Problem> {
        let (count_max, name) = (self.identity.count_max, &self.identity.name);
        if count <= count_max || count > COUNT_MAX {
            return Ok(());
        }
        let reason = format!(
            "asks for {count} numbers, and {name} may ask for {count_max} in one call; ask several \
             times, or have that raised: count_max of the token, or auth.jwt.count_max"
        );
        Err(Problem::field(field, reason))
    }
}

/// Takes a range. Requested texts are rendered while they are sent.
async fn take_range(
    app: &App,
    order: BatchRequest,
    key: Option<String>,
    caller: &Caller,
) -> Result<Response, Problem> {
    let expand = order.expand;
    let request = order.range(key, caller)?;
    if expand {
        caller.holdings.reserve_stream()?;
    }
    let issued = app.issue(caller, request).await?;
    let (status, headers) = outcome_of(issued.replayed);
    let answer = RangeAnswer::of(&issued);
    if !expand {
        return Ok((status, headers, axum::Json(answer)).into_response());
    }
    let texts = Texts::of(&issued).map_err(|error| Problem::internal(&error))?;
    let object = serde_json::to_vec(&answer).map_err(|error| Problem::internal(&error))?;
    let body = Body::new(StreamedTexts::new(object, texts));
    Ok((status, headers, [(CONTENT_TYPE, "application/json")], body).into_response())
}

/// Numbers all documents concurrently, first requested in their order in the list; each has its own
/// number or problem. The task yields its thread between them.
async fn number_documents(
    app: &App,
    caller: &Caller,
    documents: &[Box<RawValue>],
    key: Option<&str>,
) -> Vec<NumberedDocument> {
    let hints = Hints::first(HINTS_MAX);
    let number = async |index: usize, document: &RawValue| -> Result<Issued, Problem> {
        let place = format!("documents[{index}]");
        let mut order: DocumentRequest = body::parse(&place, document.get().as_bytes())?;
        order.must_replace_nothing()?;
        let document_id = std::mem::take(&mut order.document_id);
        let document_id = request::check_document_id("document_id", document_id)?;
        let key = key.map(|key| format!("{key}#{index}"));
        let request = order.request(Some(document_id), key, caller)?;
        Ok(app.issue_hinting(caller, request, &hints).await?)
    };
    let number = &number;
    let items = documents.iter().enumerate().map(|(index, document)| async move {
        NumberedDocument::of(number(index, document).await, caller)
    });
    join_in_turns(items).await
}

impl<'a> ItemAnswer<'a> {
    /// The answer for a document, the same as from a call of its own.
    fn of(outcome: &'a Result<Issued, Problem>, caller: &Caller) -> Self {
        match outcome {
            Ok(issued) => {
                let status = status_of(issued.replayed).as_u16();
                ItemAnswer::Numbered(NumberedItem { status, number: NumberAnswer::of(issued) })
            }
            Err(problem) => {
                let problem = problem.body(&caller.request_id, caller.language);
                ItemAnswer::Refused(RefusedItem { status: problem.status, problem })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// How many documents a batch lists, or how many numbers its range has.
    fn kind(value: &Value) -> Result<(Option<usize>, u64), Problem> {
        let mut order: BatchRequest = body::parse("body", value.to_string().as_bytes())?;
        match order.list()? {
            Some(documents) => Ok((Some(documents.len()), 0)),
            None => Ok((None, order.range(None, &Caller::anybody())?.count)),
        }
    }

    fn wrong_field(value: &Value) -> String {
        let caller = Caller::anybody();
        let body = kind(value).expect_err("refused").body(&caller.request_id, caller.language);
        body.field.unwrap_or_default()
    }

    #[test]
    fn a_batch_is_a_list_of_documents_or_a_range() {
        let list = json!({"documents": [{"document_id": "1", "type": "SPO"}]});
        assert_eq!(kind(&list).expect("a list"), (Some(1), 0));
        let range = json!({"type": "SPO", "count": 1_000_000, "expand": true});
        assert_eq!(kind(&range).expect("a range"), (None, 1_000_000));
    }

    #[test]
    fn a_batch_out_of_bounds_is_refused_by_its_field() {
        let many: Vec<Value> = (0..=DOCUMENTS_MAX).map(|id| json!({"document_id": id})).collect();
        for (value, field) in [
            (json!({}), "type"),
            (json!({"type": "SPO"}), "count"),
            (json!({"count": 1}), "type"),
            (json!({"type": "SPO", "count": -1}), "count"),
            (json!({"type": "SPO", "count": 1.5}), "count"),
            (json!({"type": "SPO", "count": 1, "document_id": ""}), "document_id"),
            (json!({"documents": []}), "documents"),
            (json!({"documents": many}), "documents"),
            (json!({"documents": [{}], "count": 1}), "documents"),
            (json!({"documents": [{}], "again": true}), "documents"),
            (json!({"documents": [{}], "replaces": "A-1"}), "documents"),
            (json!({"type": "SPO", "count": 1, "replaces": "A-1"}), "replaces"),
            (json!({"documents": {}}), "documents"),
            (json!({"counts": 1}), "counts"),
        ] {
            assert_eq!(wrong_field(&value), field, "{value}");
        }
    }

    /// Read from the list's own text: a flaw of one document does not affect the others.
    #[test]
    fn a_document_that_cannot_be_read_leaves_the_others_of_its_list_alone() {
        let list = br#"{"documents": [{"document_id": "1", "type": "A"}, {"document_id": "\ud800"},
            {"document_id": "3", "type": "A", "type": "B"}, 7, {"document_id": "5", "date": 1}]}"#;
        let mut order: BatchRequest = body::parse("body", list).expect("a list");
        let documents = order.list().expect("alone").expect("documents");
        let read = documents.iter().map(|document| {
            let order = body::parse::<DocumentRequest>("documents[]", document.get().as_bytes());
            let problem = order.err()?.body("r", Caller::anybody().language);
            Some((problem.code, problem.field.unwrap_or_default()))
        });
        let refused = |kind: &'static str, field: &str| Some((kind, field.to_owned()));
        let expected = [
            None,
            refused("malformed-json", ""),
            refused("invalid-field", "type"),
            refused("invalid-field", "documents[]"),
            refused("invalid-field", "date"),
        ];
        assert_eq!(read.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_key_of_the_last_item_still_fits() {
        let longest = format!("{}#{}", "k".repeat(BATCH_KEY_CHARS_MAX), DOCUMENTS_MAX - 1);
        assert_eq!(longest.len(), KEY_CHARS_MAX);
    }
}
