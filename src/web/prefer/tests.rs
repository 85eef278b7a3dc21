//! Which headers say how long to wait, and on which routes.

use super::*;
use crate::routes::TABLE;

const GENERATE: &str = "/api/v1/documents/{documentId}/generate-number";
const BATCHES: &str = "/api/v1/document-numbering/batches";

fn seconds(sent: &[&str]) -> Option<u64> {
    let mut headers = HeaderMap::new();
    for value in sent {
        // As one byte each: a value need not be text.
        let byte = |sign: char| u8::try_from(u32::from(sign)).expect("one byte");
        let bytes: Vec<u8> = value.chars().map(byte).collect();
        headers.append(PREFER, HeaderValue::from_bytes(&bytes).expect("a header"));
    }
    wait_s(&headers)
}

#[test]
fn the_first_wait_of_all_headers_counts_and_what_is_none_is_ignored() {
    for (sent, wanted) in [
        (&["wait=2"][..], Some(2)),
        (&["WAIT = \"10\" ; foo=\"a,wait=1\", wait=3"][..], Some(10)),
        (&["respond-async, handling=\"a\\\", wait=1\"; x", "wait=4"][..], Some(4)),
        (&["", ",,", "wait=5"][..], Some(5)),
        (&["wait=007"][..], Some(7)),
        (&["\u{ff}, x=\u{80}, wait=6"][..], Some(6)),
        (&["wait=\u{ff}", "wait=2"][..], None),
        (&["wait=99999999999999999999999"][..], Some(u64::MAX / 1_000_000_000)),
        (&["wait"][..], None),
        (&["wait="][..], None),
        (&["wait=0"][..], None),
        (&["wait=-1"][..], None),
        (&["wait=1.5"][..], None),
        (&["wait=2s", "wait=2"][..], None),
        (&["waits=2"][..], None),
        (&["x=\"wait=2"][..], None),
        (&[][..], None),
    ] {
        assert_eq!(seconds(sent), wanted, "{sent:?}");
    }
}

#[test]
fn a_wait_is_no_longer_than_the_limit_and_says_what_it_is() {
    let headers = HeaderMap::from_iter([(PREFER, HeaderValue::from_static("wait=60"))]);
    let began = Instant::now();
    let of = |method: Method, path| {
        let (limit, route) = (Duration::from_secs(40), TABLE.find(path));
        Wait::of(&headers, (&method, route), began, limit).map(|wait| (wait.by, wait.applied))
    };
    let applied = (began + Duration::from_secs(40), HeaderValue::from_static("wait=40"));
    for taking in [GENERATE, BATCHES] {
        assert_eq!(of(Method::POST, taking), Some(applied.clone()));
    }
    assert_eq!(of(Method::GET, "/api/v1/document-numbering/numbers"), Some(applied));
    assert_eq!(of(Method::GET, "/readyz"), None);
    assert_eq!(of(Method::POST, "/api/v1/document-numbering/configs"), None);
}

#[tokio::test(start_paused = true)]
async fn a_look_up_ends_with_its_wait_and_a_call_that_takes_numbers_does_not() {
    let headers = HeaderMap::from_iter([(PREFER, HeaderValue::from_static("wait=1"))]);
    let numbers = "/api/v1/document-numbering/numbers";
    for (method, path, status) in [(Method::GET, numbers, 503), (Method::POST, BATCHES, 200)] {
        let (limit, asked) = (Duration::from_secs(40), (&method, TABLE.find(path)));
        let wait = Wait::of(&headers, asked, Instant::now(), limit).expect("a wait");
        let answering = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            "late".into_response()
        };
        assert_eq!(wait.bound(answering).await.status(), status, "{path}");
    }
}
