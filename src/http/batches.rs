//! `POST /api/v1/document-numbering/batches`: many numbers in one call, either for a list of
//! documents (answered item by item) or as a range of one counter (all or nothing) (R1.9).

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::App;
use super::answer::{NumberAnswer, RangeAnswer};
use super::body::{self, Json};
use super::gate::Caller;
use super::generate::status_of;
use super::order::{self, DocumentOrder, NumberOrder, RecipientOrder};
use super::problem::{Problem, ProblemBody};
use super::texts::{StreamedTexts, Texts};
use crate::allocator::KEY_CHARS_MAX;

/// Most documents in one batch.
const DOCUMENTS_MAX: usize = 1_000;
/// The key of an item is the header's key and `#` with up to three digits (F21).
const BATCH_KEY_CHARS_MAX: usize = KEY_CHARS_MAX - 4;

/// A batch: `documents` alone, or `type` and `count` with what a single number takes.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchOrder {
    /// At most 1,000 documents, each with its own type and context.
    #[serde(default)]
    #[schema(value_type = Option<Vec<DocumentOrder>>)]
    documents: Option<Vec<Value>>,
    /// Document type of a range.
    #[serde(default, rename = "type")]
    type_code: Option<String>,
    /// Id of the document type of a range, instead of `type`.
    #[serde(default, deserialize_with = "order::id")]
    #[schema(value_type = Option<String>)]
    type_id: Option<order::Id>,
    /// Project of a range.
    #[serde(default)]
    project: Option<String>,
    /// Id of the project of a range, instead of `project`.
    #[serde(default, deserialize_with = "order::id")]
    #[schema(value_type = Option<String>)]
    project_id: Option<order::Id>,
    /// Date of a range.
    #[serde(default)]
    date: Option<String>,
    /// Phase of a range.
    #[serde(default)]
    phase: Option<String>,
    /// Variables of a range.
    #[serde(default, deserialize_with = "order::context")]
    context: BTreeMap<String, String>,
    /// Who a range goes to.
    #[serde(default)]
    recipients: Vec<RecipientOrder>,
    /// How many numbers, 1 to 1,000,000.
    #[serde(default)]
    count: Option<u64>,
    /// Answer with the text of every number of the range.
    #[serde(default)]
    expand: bool,
    /// The document that the range is for.
    #[serde(default)]
    document_id: Option<String>,
    /// Give a document that has a range already another one.
    #[serde(default)]
    again: bool,
}

/// One answer per document, in their order.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BatchAnswer {
    items: Vec<ItemAnswer>,
}

/// What became of one document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum ItemAnswer {
    /// It has its number.
    Number {
        /// 201, or 200 for an earlier number.
        status: u16,
        /// The number.
        #[serde(flatten)]
        number: NumberAnswer,
    },
    /// It has none.
    Problem {
        /// The status that a single call would have had.
        status: u16,
        /// Why.
        problem: ProblemBody,
    },
}

/// Takes many numbers.
#[utoipa::path(
    post,
    path = "/api/v1/document-numbering/batches",
    tag = "numbers",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "At most 251 characters"),
    ),
    request_body = BatchOrder,
    responses(
        (status = 201, body = RangeAnswer, description = "A new range"),
        (status = 200, body = BatchAnswer, description = "One answer per document"),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create_batch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(order): Json<BatchOrder>,
) -> Result<Response, Problem> {
    let key = order::idempotency_key(&headers, BATCH_KEY_CHARS_MAX)?;
    match order.kind()? {
        Kind::Documents(documents) => {
            let items = number_documents(&app, &caller, documents, key.as_deref()).await;
            Ok(axum::Json(BatchAnswer { items }).into_response())
        }
        Kind::Range(range) => take_range(&app, &caller, *range, key).await,
    }
}

/// The two kinds of batch.
#[derive(Debug)]
enum Kind {
    /// Each answered for itself; still JSON, since a mistake in one must not refuse the others.
    Documents(Vec<Value>),
    /// All or nothing.
    Range(Box<RangeOrder>),
}

/// A range to take.
#[derive(Debug)]
struct RangeOrder {
    /// What each number of it is made of.
    number: NumberOrder,
    count: u64,
    /// Answer with every text.
    expand: bool,
    /// Already checked.
    document_id: Option<String>,
}

impl BatchOrder {
    /// Which kind of batch it is; a mixture of both is refused.
    fn kind(self) -> Result<Kind, Problem> {
        let Some(documents) = self.documents else { return self.range() };
        let is_mixed = self.type_code.is_some()
            || self.type_id.is_some()
            || self.project.is_some()
            || self.project_id.is_some()
            || !self.recipients.is_empty()
            || self.date.is_some()
            || self.phase.is_some()
            || !self.context.is_empty()
            || self.count.is_some()
            || self.expand
            || self.document_id.is_some()
            || self.again;
        if is_mixed {
            return Err(Problem::field(
                "documents",
                "must stand alone: each document has its own type, project, date, phase, context",
            ));
        }
        if documents.is_empty() || documents.len() > DOCUMENTS_MAX {
            let reason = format!("must list 1 to {DOCUMENTS_MAX} documents");
            return Err(Problem::field("documents", reason));
        }
        Ok(Kind::Documents(documents))
    }

    /// The range that is asked for.
    fn range(self) -> Result<Kind, Problem> {
        let missing = |field| {
            let reason = "is missing: name documents, or type and count";
            Problem::field(field, reason)
        };
        let BatchOrder { type_code, type_id, project, project_id, date, .. } = self;
        let BatchOrder { phase, context, recipients, again, .. } = self;
        if type_code.is_none() && type_id.is_none() {
            return Err(missing("type"));
        }
        let count = self.count.ok_or_else(|| missing("count"))?;
        let check = |id: &String| order::check_document_id("document_id", id);
        let document_id = self.document_id.as_ref().map(check).transpose()?;
        let number = NumberOrder {
            type_code,
            type_id,
            project,
            project_id,
            date,
            phase,
            context,
            recipients,
            again,
        };
        Ok(Kind::Range(Box::new(RangeOrder { number, count, expand: self.expand, document_id })))
    }
}

/// Takes a range. The texts, where they are wanted, are rendered while they are sent.
async fn take_range(
    app: &App,
    caller: &Caller,
    range: RangeOrder,
    key: Option<String>,
) -> Result<Response, Problem> {
    let mut request = range.number.request(range.document_id, key, caller)?;
    request.count = range.count;
    let issued = app.issue(caller, request).await?;
    let status = status_of(issued.replayed);
    let answer = RangeAnswer::of(&issued);
    if !range.expand {
        return Ok((status, axum::Json(answer)).into_response());
    }
    let texts = Texts::of(&issued).map_err(|error| Problem::internal(&error))?;
    let object = serde_json::to_vec(&answer).map_err(|error| Problem::internal(&error))?;
    let body = Body::new(StreamedTexts::new(object, texts));
    Ok((status, [(CONTENT_TYPE, "application/json")], body).into_response())
}

/// Numbers all documents at once; each has its own number or problem.
async fn number_documents(
    app: &App,
    caller: &Caller,
    documents: Vec<Value>,
    key: Option<&str>,
) -> Vec<ItemAnswer> {
    let items = documents.into_iter().enumerate().map(|(index, document)| async move {
        let key = key.map(|key| format!("{key}#{index}"));
        let place = format!("documents[{index}]");
        let numbered = number_document(app, caller, &place, &document, key).await;
        numbered.unwrap_or_else(|problem| {
            let problem = problem.body(&caller.request_id, caller.language);
            ItemAnswer::Problem { status: problem.status, problem }
        })
    });
    join(items.map(Box::pin).collect()).await
}

/// Numbers one document of a list like a call of its own.
async fn number_document(
    app: &App,
    caller: &Caller,
    place: &str,
    document: &Value,
    key: Option<String>,
) -> Result<ItemAnswer, Problem> {
    let order: DocumentOrder = body::parse_value(place, document)?;
    let request = order.request(key, caller)?;
    let issued = app.issue(caller, request).await?;
    let status = status_of(issued.replayed).as_u16();
    Ok(ItemAnswer::Number { status, number: NumberAnswer::of(&issued) })
}

/// Runs all futures at once in this task, first polled in their order: the documents of a list
/// queue for their numbers in the order in which they stand there.
async fn join<F: Future>(mut futures: Vec<Pin<Box<F>>>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *output = Some(value);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(value: &Value) -> Result<Kind, Problem> {
        body::parse_value::<BatchOrder>("body", value)?.kind()
    }

    fn wrong_field(value: &Value) -> String {
        let caller = ("id", super::super::language::Language::English);
        let body = kind(value).expect_err("refused").body(caller.0, caller.1);
        body.field.unwrap_or_default()
    }

    #[test]
    fn a_batch_is_a_list_of_documents_or_a_range() {
        let list = json!({"documents": [{"document_id": "1", "type": "SPO"}]});
        assert!(matches!(kind(&list), Ok(Kind::Documents(documents)) if documents.len() == 1));
        let range = json!({"type": "SPO", "count": 1_000_000, "expand": true});
        assert!(matches!(kind(&range), Ok(Kind::Range(range)) if range.expand));
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
            (json!({"documents": {}}), "documents"),
            (json!({"counts": 1}), "counts"),
        ] {
            assert_eq!(wrong_field(&value), field, "{value}");
        }
    }

    #[test]
    fn the_key_of_the_last_item_still_fits() {
        let longest = format!("{}#{}", "k".repeat(BATCH_KEY_CHARS_MAX), DOCUMENTS_MAX - 1);
        assert_eq!(longest.len(), KEY_CHARS_MAX);
    }

    #[tokio::test]
    async fn items_run_at_once_and_answer_in_their_order() {
        let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(3));
        let begun = std::sync::Mutex::new(Vec::new());
        let items = (0..3).map(|index| {
            let (barrier, begun) = (barrier.clone(), &begun);
            Box::pin(async move {
                begun.lock().expect("lock").push(index);
                barrier.wait().await;
                index
            })
        });
        assert_eq!(join(items.collect()).await, [0, 1, 2]);
        assert_eq!(*begun.lock().expect("lock"), [0, 1, 2]);
    }
}
