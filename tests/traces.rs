//! Spans that leave the process: they reach a collector, in the trace of the caller. A binary of
//! its own, because the feature that it needs makes another build of everything.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests say what they do in their names")]

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use testkit::service::{Deployment, Program};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A collector that passes on what it is sent.
async fn collector() -> (String, mpsc::UnboundedReceiver<(HeaderMap, Bytes)>) {
    let (tell, told) = mpsc::unbounded_channel();
    let take = async move |headers: HeaderMap, body: Bytes| {
        let _ = tell.send((headers, body));
    };
    let routes = axum::Router::new().route("/v1/traces", post(take));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (url, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_a_span_in_the_trace_that_its_caller_names() {
    let (url, mut told) = collector().await;
    let path = env!("CARGO_BIN_EXE_numerator").into();
    let mut deployment = Deployment::sqlite(Program { path, arguments: Vec::new() }, None);
    deployment.extra = format!("[trace]\notlp_url = \"{url}\"\n");
    deployment.apply_load_series();
    let mut service = deployment.serve();
    let trace: [u8; 16] = [0xab; 16];
    let answer = testkit::client()
        .post(format!("{}/api/v1/documents/d/generate-number", service.url))
        .header("traceparent", format!("00-{}-1122334455667788-01", "ab".repeat(16)))
        .header("x-request-id", "order-7")
        .json(&serde_json::json!({ "type": "LOAD" }))
        .send();
    assert_eq!(answer.await.unwrap().status(), 201);
    // What waits to be sent is sent before the process ends.
    service.signal("TERM");
    assert!(service.has_ended_well(), "{}", service.log());
    let mut sent = Vec::new();
    while let Ok((headers, body)) = told.try_recv() {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        sent.extend(body);
    }
    let has = |part: &[u8]| sent.windows(part.len()).any(|window| window == part);
    assert!(has(&trace), "not in the caller's trace: {}", service.log());
    let name = "POST /api/v1/documents/{documentId}/generate-number";
    for text in [name, "order-7", "answered", "numerator.path", "database", "service.name"] {
        assert!(has(text.as_bytes()), "{text} was not sent: {}", service.log());
    }
}
