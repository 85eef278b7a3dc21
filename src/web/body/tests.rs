//! Bodies that are too large, too slow, not JSON, or not as the route requires.

use std::pin::Pin;

use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::response::IntoResponse;

use super::*;
use crate::features::numbers::request::NumberRequest;
use crate::web::budget::{Budget, Budgets};
use crate::web::language::Locale;
use crate::web::problem::ProblemBody;

const BOUNDS: BodyBounds = BodyBounds { max_bytes: 64, time_limit: Duration::from_secs(40) };

fn told(problem: &Problem) -> ProblemBody {
    problem.body("call-1", Locale::English)
}

fn request(content_type: &str, body: impl Into<Body>) -> Request {
    let request = Request::builder().header(CONTENT_TYPE, content_type);
    let mut request = request.body(body.into()).expect("request");
    request.extensions_mut().insert(BOUNDS);
    request.extensions_mut().insert(Caller::anybody());
    request
}

async fn refused(request: Request) -> ProblemBody {
    let read = Json::<NumberRequest>::from_request(request, &()).await;
    told(&read.expect_err("refused"))
}

/// A body in frames of 16 bytes without an announced length; it never ends if it is set to stall.
struct Frames {
    left: usize,
    stalls: bool,
}

impl HttpBody for Frames {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        if self.left == 0 {
            return if self.stalls {
                std::task::Poll::Pending
            } else {
                std::task::Poll::Ready(None)
            };
        }
        self.left -= 1;
        let data = Bytes::from_static(b"                ");
        std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(data))))
    }
}

#[tokio::test]
async fn a_body_in_another_charset_or_coding_is_refused() {
    for kind in ["application/json; charset=latin1", "application/json;v=1; Charset=\"UTF-16\""] {
        let body = refused(request(kind, "{}")).await;
        assert_eq!((body.code, body.status), ("unsupported-media-type", 415), "{kind}");
        assert!(body.detail.contains("UTF-8"), "{}", body.detail);
    }
    for (coding, is_plain) in
        [("gzip", false), ("identity, br", false), ("\u{e9}", false), ("Identity", true)]
    {
        let mut sent = request("application/json", "{\"type\":\"SPO\"}");
        let value = HeaderValue::from_bytes(coding.as_bytes()).expect("a value");
        sent.headers_mut().insert(CONTENT_ENCODING, value);
        let read = Json::<NumberRequest>::from_request(sent, &()).await;
        assert_eq!(read.is_ok(), is_plain, "{coding}");
        let told = read.err().map(|problem| told(&problem).status);
        assert_eq!(told, (!is_plain).then_some(415), "{coding}");
    }
}

#[test]
fn depth_is_that_of_lists_and_objects_and_not_of_texts() {
    for (json, depth) in [
        ("1", 0),
        ("\"[[[\"", 0),
        ("[]", 1),
        ("[[],[[]]]", 3),
        ("{\"a\":[{\"b\":\"\\\"[{\"}]}", 3),
        ("[\"\\\\\",[1]]", 2),
    ] {
        assert_eq!(depth_of(json), depth, "{json}");
    }
}

#[tokio::test]
async fn a_body_that_fits_is_read() {
    for kind in
        ["application/json", "Application/JSON; charset=\"utf-8\"", "application/vnd.x+json"]
    {
        let request = request(kind, r#"{"type":"SPO","context":{"REV":"A"}}"#);
        let Json(order) = Json::<NumberRequest>::from_request(request, &()).await.expect(kind);
        assert_eq!((order.type_code.as_deref(), order.context["REV"].as_str()), (Some("SPO"), "A"));
    }
}

#[tokio::test]
async fn a_body_over_its_bound_is_refused_announced_or_not() {
    let long = format!("{{\"type\":\"{}\"}}", "x".repeat(64));
    let announced = Request::builder().header(CONTENT_TYPE, "application/json");
    let announced = announced.header(header::CONTENT_LENGTH, long.len());
    let mut announced = announced.body(Body::from(long)).expect("request");
    announced.extensions_mut().insert(BOUNDS);
    announced.extensions_mut().insert(Caller::anybody());
    for request in
        [announced, request("application/json", Body::new(Frames { left: 5, stalls: false }))]
    {
        let problem = refused(request).await;
        assert_eq!((problem.code, problem.status), ("body-too-large", 413));
        assert!(problem.detail.contains("64 bytes"));
    }
}

#[tokio::test]
async fn a_body_that_does_not_end_is_given_up() {
    let mut request = request("application/json", Body::new(Frames { left: 1, stalls: true }));
    let time_limit = Duration::from_millis(10);
    request.extensions_mut().insert(BodyBounds { time_limit, ..BOUNDS });
    let problem = refused(request).await;
    assert_eq!((problem.code, problem.status), ("body-timeout", 408));
}

#[tokio::test]
async fn bodies_find_so_much_room_together_and_small_ones_always() {
    let part = 2 * BODY_STEP_BYTES;
    let [bodies, answers] = [Budget::new(16 * part, 0), Budget::new(0, 0)];
    let budgets = Budgets { bodies, answers };
    let headers =
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let bounds = BodyBounds { max_bytes: 1_048_576, ..BOUNDS };
    let read = async |caller: &str, blanks: usize| {
        let holdings = Holdings::of(&budgets, caller.into());
        let body = Body::from(format!("{{\"type\":\"SPO\"}}{}", " ".repeat(blanks)));
        let read = Json::<NumberRequest>::read(&headers, body, bounds, &holdings).await;
        (holdings, read.err().map(|problem| told(&problem).code))
    };
    let (first, refused) = read("a", 100_000).await;
    assert_eq!(refused, None);
    for (caller, blanks, code) in [
        ("a", 100_000, Some("queue-full")),
        ("a", 5_000, Some("queue-full")),
        ("a", 4_000, None),
        ("b", 100_000, None),
    ] {
        assert_eq!(read(caller, blanks).await.1, code, "{caller} {blanks}");
    }
    // As long as work continues for it, even if all clients have left.
    let goes_on = first.clone();
    drop(first);
    assert_eq!(read("a", 100_000).await.1, Some("queue-full"));
    drop(goes_on);
    assert_eq!(read("a", 100_000).await.1, None);
    let left = Problem::new(Slug::QueueFull, "").leaving_the_body().render("r", Locale::English);
    assert_eq!(left.headers()["connection"], "close");
}

#[tokio::test]
async fn another_content_type_is_refused() {
    for kind in ["", "text/plain", "application/x-www-form-urlencoded", "json"] {
        let problem = refused(request(kind, "{}")).await;
        assert_eq!((problem.code, problem.status), ("unsupported-media-type", 415), "{kind}");
    }
}

#[tokio::test]
async fn what_is_not_json_is_told_by_line_and_column() {
    for (body, place) in [
        ("", "line 1 column 0"),
        ("{\"type\":\n \"SPO\",}", "line 2 column 8"),
        ("{\"type\": \"SPO\"", "line 1 column 14"),
        ("{} {}", "line 1 column 4"),
    ] {
        let problem = refused(request("application/json", body)).await;
        assert_eq!((problem.code, problem.status), ("malformed-json", 400), "{body}");
        assert!(problem.detail.contains(place), "{}", problem.detail);
    }
    let problem = refused(request("application/json", vec![0xff, 0xfe])).await;
    assert_eq!(problem.code, "malformed-json");
}

#[test]
fn a_wrong_value_is_told_by_its_field() {
    for (body, field, says) in [
        (r#"{"type": 5}"#, "type", "must be text in quotes, not 5; write \"type\": \"INV\""),
        (r#"{"type": null}"#, "type", "must be text in quotes, not null"),
        (r#"{"type": "A", "type": "B"}"#, "type", "duplicate field"),
        (r#"{"type": "A", "typ": "B"}"#, "typ", "unknown field"),
        (r#"{"type": "A", "date": 20240122}"#, "date", "must be a date in quotes, not 20240122"),
        (r#"{"type": "A", "project": ["P"]}"#, "project", "must be text in quotes, not a list"),
        (
            r#"{"type": "A", "again": "yes"}"#,
            "again",
            "must be true or false, not \"yes\"; write \"again\": true",
        ),
        (r#"{"type": "A", "context": "REV"}"#, "context", "must be an object of variables"),
        (r#"{"type": "A", "context": {"REV": 1}}"#, "context.REV", "must be a string"),
        (r#"{"type": "A", "context": {"REV": "A", "REV": "B"}}"#, "context.REV", "twice"),
    ] {
        let problem = told(&parse::<NumberRequest>("body", body.as_bytes()).expect_err(body));
        assert_eq!((problem.code, problem.status), ("invalid-field", 422), "{body}");
        assert_eq!(problem.field.as_deref(), Some(field), "{body}");
        assert!(problem.detail.contains(says), "{body}: {}", problem.detail);
        assert!(!problem.detail.contains("at line"), "{}", problem.detail);
    }
}

#[test]
fn an_object_is_not_read_from_anything_else() {
    let in_order = r#"["SPO", null, null, {}, false]"#;
    for body in [in_order, r#"["SPO"]"#, "[]", "[{}]", r#""SPO""#, "5", "null", "true"] {
        for place in ["body", "documents[7]"] {
            let problem = told(&parse::<NumberRequest>(place, body.as_bytes()).expect_err(body));
            assert_eq!((problem.code, problem.status), ("invalid-field", 422), "{body}");
            assert_eq!(problem.field.as_deref(), Some(place), "{body}");
            assert!(problem.detail.contains("must be a JSON object"), "{}", problem.detail);
        }
    }
    let context = br#"{"type": "A", "context": ["REV", "A"]}"#;
    let problem = told(&parse::<NumberRequest>("body", context).expect_err("a list"));
    assert_eq!(problem.field.as_deref(), Some("context"));
}

#[test]
fn a_wrong_value_in_a_list_is_told_by_its_field_too() {
    let body = br#"{"type": "A", "date": 1}"#;
    let problem = told(&parse::<NumberRequest>("documents[0]", body).expect_err("refused"));
    assert_eq!(problem.field.as_deref(), Some("date"));
}

#[tokio::test]
async fn a_wrong_query_is_told_by_its_field() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        limit: Option<u32>,
    }

    for (query, field, says) in [
        ("limit=x", "limit", "must be a whole number from 0 on, not \"x\"; write limit=100"),
        ("limit=-1", "limit", "must be a whole number from 0 on, not -1"),
        ("limit=true", "limit", "not true"),
        ("limt=1", "limt", "did you mean `limit`?"),
        ("limit=1&limit=2", "limit", "duplicate field"),
    ] {
        let request = Request::builder().uri(format!("/?{query}")).body(()).expect("request");
        let (mut parts, ()) = request.into_parts();
        let read = QueryOf::<Wanted>::from_request_parts(&mut parts, &()).await;
        let problem = told(&read.expect_err(query));
        assert_eq!(problem.code, "invalid-field");
        assert_eq!(problem.field.as_deref(), Some(field), "{query}: {}", problem.detail);
        assert!(problem.detail.contains(says), "{query}: {}", problem.detail);
    }
    let (mut parts, ()) = Request::builder().uri("/?limit=7").body(()).expect("ok").into_parts();
    let QueryOf(wanted) = QueryOf::<Wanted>::from_request_parts(&mut parts, &()).await.expect("7");
    assert_eq!(wanted.limit, Some(7));
}

#[tokio::test]
async fn a_problem_from_an_extractor_still_has_its_status() {
    let response = Problem::new(Slug::BodyTooLarge, "x").into_response();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert!(to_bytes(response.into_body(), 10).await.expect("body").is_empty());
}
