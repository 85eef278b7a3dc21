//! Status per slug, the JSON of a problem, and the text of the API reference about each.

use std::collections::BTreeSet;

use axum::body::to_bytes;
use axum::http::header::{CONTENT_LANGUAGE, VARY};
use serde_json::{Value, json};

use super::*;
use crate::engine::allocator::Unavailable;
use crate::node::NodeId;

async fn rendered(problem: &Problem, language: Locale) -> (Response, Value) {
    let response = problem.render("call-1", language);
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.expect("body");
    let body = serde_json::from_slice(&bytes).expect("JSON");
    (Response::from_parts(parts, Body::empty()), body)
}

fn unavailable_error(why: Unavailable, taken: NumberTaken) -> AllocError {
    AllocError::Unavailable { why, retry_after_ms: 1_500, taken }
}

fn unknown_type() -> RuleError {
    RuleError::UnknownType { type_code: "X".into(), hint: "served: type Y".into() }
}

#[test]
fn each_refusal_has_its_slug_and_status() {
    let no = NumberTaken::No;
    let (type_code, hint) = ("X".to_owned(), "served: type Y".to_owned());
    let not_configured = RuleError::TypeNotConfigured { type_code: type_code.clone(), hint };
    let (first, second) = ("A".into(), "B".into());
    let ambiguous = RuleError::Ambiguous { type_code, first, second };
    for (error, slug, status) in [
        (unknown_type().into(), "unknown-type", 422),
        (not_configured.into(), "type-not-configured", 422),
        (ambiguous.into(), "series-ambiguous", 422),
        (AllocError::Field { field: "count", reason: "0".into() }, "invalid-field", 422),
        (AllocError::KeyReused, "idempotency-key-reused", 422),
        (AllocError::Collided { number: "A-1".into() }, "template-ambiguous", 422),
        (
            AllocError::DocumentNumbered { number: Some("A-1".into()) },
            "document-already-numbered",
            409,
        ),
        (AllocError::DocumentArchived { file: "f".into() }, "document-archived", 409),
        (
            AllocError::BelowStart {
                code: "A".into(),
                serial: "SEQ".into(),
                counter_id: 7,
                next: 4,
                start: 543,
                move_to: 543,
            },
            "counter-below-start",
            409,
        ),
        (AllocError::Exhausted { serial: "SEQ".into(), max: 999 }, "sequence-exhausted", 409),
        (unavailable_error(Unavailable::CeilingReached, no), "ceiling-reached", 503),
        (unavailable_error(Unavailable::OutboxFull, no), "outbox-full", 503),
        (unavailable_error(Unavailable::QueueFull, no), "queue-full", 503),
        (unavailable_error(Unavailable::Redis, no), "redis-unavailable", 503),
        (unavailable_error(Unavailable::NoRedis, no), "redis-unavailable", 503),
        (unavailable_error(Unavailable::Ledger, no), "database-connection", 503),
        (unavailable_error(Unavailable::SeriesChanged, no), "series-changed", 503),
        (unavailable_error(Unavailable::Held, no), "partition-held", 503),
        (unavailable_error(Unavailable::Stopping, no), "stopping", 503),
        (AllocError::TimedOut { taken: no }, "lock-timeout", 503),
    ] {
        let problem = Problem::from(&error);
        let told = (problem.slug().name(), problem.slug().status().as_u16());
        assert_eq!(told, (slug, status), "{error}");
        let body = problem.body("call-1", Locale::English);
        assert_eq!(body.retryable, error.retry_useful(), "{error}");
        let told = if body.retryable { "yes" } else { "no" };
        assert!(problem.slug().retryable().contains(told), "{error}: what its page says");
        assert_eq!(body.number_taken, "no", "{error}");
        if let AllocError::Unavailable { why, .. } = error {
            assert_eq!(why.slug(), slug, "what `/readyz` calls it");
        }
    }
}

#[tokio::test]
async fn a_problem_is_rfc_9457_json() {
    let error = unavailable_error(Unavailable::QueueFull, NumberTaken::Maybe);
    let (response, body) = rendered(&error.into(), Locale::Thai).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    assert_eq!(response.headers()[RETRY_AFTER], "2");
    assert_eq!(response.headers()[CONTENT_LANGUAGE], "th");
    assert_eq!(response.headers()[VARY], "Accept-Language");
    assert_eq!(
        body,
        json!({
            "type": "/problems/queue-full",
            "code": "queue-full",
            "title": "Too many requests wait",
            "status": 503,
            "detail": "more requests wait for the partition than allocator.queue_max, or more of \
                       this caller than allocator.caller_queue_max",
            "instance": "call-1",
            "retryable": true,
            "number_taken": "maybe",
            "retry_after_ms": 1500,
            "user_message": "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง มีคำขอรออยู่มากเกินไป",
        })
    );
}

#[tokio::test]
async fn a_wrong_field_is_named_and_has_no_retry() {
    let problem = Problem::field("context.REV", "must be a string");
    let (response, body) = rendered(&problem, Locale::English).await;
    assert_eq!(response.status(), 422);
    assert!(response.headers().get(RETRY_AFTER).is_none());
    assert_eq!(body["field"], "context.REV");
    assert_eq!(body["detail"], "context.REV: must be a string");
    let message = body["user_message"].as_str().unwrap();
    assert!(message.ends_with(" (REV)"), "whoever sees no more than this knows where: {message}");
    assert_eq!(body["retryable"], false);
    assert_eq!(body["number_taken"], "no");
    assert!(body.get("retry_after_ms").is_none());
}

#[tokio::test]
async fn a_document_that_has_a_number_is_told_which() {
    let error = AllocError::DocumentNumbered { number: Some("SPO-20240122-001".into()) };
    let (response, body) = rendered(&error.into(), Locale::Chinese).await;
    assert_eq!(response.status(), 409);
    assert_eq!(body["document_number"], "SPO-20240122-001");
    assert_eq!(body["user_message"], "该单据已有编号，请核对单据");
}

#[tokio::test]
async fn a_missing_token_asks_for_a_bearer_token() {
    let problem = Problem::new(Slug::Unauthenticated, "send a token");
    let (response, _) = rendered(&problem, Locale::English).await;
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
}

#[tokio::test]
async fn the_cause_of_a_bug_is_not_sent() {
    let (response, body) = rendered(&Problem::internal(&"password=secret"), Locale::English).await;
    assert_eq!(response.status(), 500);
    assert!(!body.to_string().contains("secret"), "{body}");
    assert_eq!(body["number_taken"], "maybe");
}

#[test]
fn a_ledger_that_does_not_answer_a_reader_is_worth_a_retry() {
    let unreachable = LedgerError::Unreachable { cause: "refused".into(), maybe_written: false };
    let body = Problem::from(unreachable).body("call-1", Locale::English);
    assert_eq!((body.code, body.retryable), ("database-connection", true));
    let body = Problem::from(LedgerError::LockTimeout { cause: "held".into(), counter: None })
        .body("1", Locale::English);
    assert_eq!((body.code, body.retryable), ("lock-timeout", true));
    let body =
        Problem::of_write(LedgerError::Conflict("deadlock".into())).body("1", Locale::English);
    let said = (body.code, body.status, body.retryable, body.number_taken);
    assert_eq!(said, ("lock-timeout", 503, true, "no"));
    let fault = LedgerError::Fault("42501: permission denied for table journal".into());
    let body = Problem::from(fault).body("1", Locale::English);
    assert_eq!((body.code, body.retryable), ("database-connection", true));
    assert!(!body.detail.contains("table"), "{}", body.detail);
    // The process goes on under another identity, in a ledger that its users agree on.
    for gone in [LedgerError::WentBack("x".into()), LedgerError::NodeGone(NodeId::random())] {
        let body = Problem::of_write(gone).body("1", Locale::English);
        let said = (body.code, body.retryable, body.number_taken);
        assert_eq!(said, ("database-connection", true, "no"));
    }
    let body = Problem::from(LedgerError::Refused("NUL".into())).body("1", Locale::English);
    assert_eq!((body.code, body.retryable, body.number_taken), ("internal", false, "no"));
}

#[test]
fn a_write_whose_outcome_is_unknown_says_so() {
    for (maybe_written, told) in [(true, "maybe"), (false, "no")] {
        let error = LedgerError::Unreachable { cause: "gone".into(), maybe_written };
        let body = Problem::of_write(error).body("call-1", Locale::English);
        assert_eq!((body.code, body.number_taken), ("database-connection", told));
        assert!(body.retryable);
    }
}

/// A text of a page without its links.
fn plain(text: &str) -> String {
    let mut parts = text.split("](");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let bracket = plain.rfind('[').expect("a link has a text");
        plain.remove(bracket);
        plain.push_str(part.split_once(')').expect("a link ends").1);
    }
    plain
}

/// Goal: the API reference lists exactly the problems that exist, as their pages describe them.
/// Method: compare with the rows of its table, which begin with a code in backticks.
#[test]
fn the_api_reference_lists_every_problem_as_its_page_describes_it() {
    let page = include_str!("../../../docs/api.md");
    let (_, section) = page.split_once("\n## Problems\n").expect("the section on problems");
    let section = section.split("\n## ").next().unwrap_or_default();
    let documented: BTreeSet<String> =
        section.lines().filter(|line| line.starts_with("| `")).map(plain).collect();
    let row = |slug: &Slug| {
        let (name, status, meaning) = (slug.name(), slug.status().as_u16(), slug.meaning());
        let (retryable, taken) = (slug.retryable(), slug.number_taken());
        format!("| `{name}` | {status} | {retryable} | {taken} | {meaning} |")
    };
    let existing: BTreeSet<String> = Slug::ALL.iter().map(row).collect();
    let missing: Vec<_> = existing.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&existing).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing {missing:#?}, unknown {unknown:#?}");
}

#[test]
fn on_the_command_line_a_problem_is_one_line_with_its_field() {
    let error = AllocError::Field { field: "document_id", reason: "is too long".into() };
    assert_eq!(Problem::from(error).to_string(), "document_id: is too long [invalid-field]");
    let error = AllocError::from(unknown_type());
    let line = "unknown document type \"X\"; served: type Y [unknown-type]";
    assert_eq!(Problem::from(error).to_string(), line);
}

#[test]
fn a_slug_is_one_word_of_its_own() {
    let names: BTreeSet<&str> = Slug::ALL.iter().map(|slug| slug.name()).collect();
    assert_eq!(names.len(), Slug::ALL.len());
    for slug in Slug::ALL {
        assert!(slug.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
        assert!(!slug.status().is_success() && !slug.title().is_empty());
        assert!(["yes", "no", "yes or no"].contains(&slug.retryable()));
        assert!(["no", "maybe", "no or maybe"].contains(&slug.number_taken()));
    }
}
