//! How a request stands with limits, as headers (draft-ietf-httpapi-ratelimit-headers-10), and the
//! refusal of one that comes too soon.

use std::fmt::Write as _;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::problem::{Problem, Slug};
use crate::limits::Judgement;

/// The quotas, each in a window of 60 seconds.
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// What is left of them.
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The headers of a request that is counted; none of one that is not.
pub(super) fn limited_headers(judged: &Judgement) -> HeaderMap {
    let (mut policy, mut limit) = (String::new(), String::new());
    for standing in &judged.standings {
        let name = standing.limit;
        let between = if policy.is_empty() { "" } else { ", " };
        let (quota, left, reset_s) = (standing.quota, standing.remaining, standing.reset_s);
        let _ = write!(policy, "{between}\"{name}\";q={quota};w=60");
        let _ = write!(limit, "{between}\"{name}\";r={left};t={reset_s}");
    }
    let mut headers = HeaderMap::new();
    for (name, text) in [(RATELIMIT_POLICY, policy), (RATELIMIT, limit)] {
        if let (false, Ok(value)) = (text.is_empty(), HeaderValue::from_str(&text)) {
            headers.insert(name, value);
        }
    }
    headers
}

/// Refuses what a limit refuses. Nothing was taken.
pub(super) fn must_be_within(judged: &Judgement) -> Result<(), Problem> {
    let Some((standing, wait_ms)) = judged.exceeded else { return Ok(()) };
    let whose = match standing.limit {
        "user" => "one person",
        "address" => "people at one address",
        _ => "this token",
    };
    let detail = format!(
        "{} requests a minute are what {whose} may send; ask again after {} s, or have the limit \
         raised",
        standing.quota,
        wait_ms.div_ceil(1_000)
    );
    Err(Problem::new(Slug::TooManyRequests, detail).retry_in(wait_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Standing;

    #[test]
    fn each_limit_is_an_item_of_both_headers() {
        let standing =
            |limit, quota, remaining, reset_s| Standing { limit, quota, remaining, reset_s };
        let standings = vec![standing("user", 10, 9, 6), standing("address", 50, 0, 60)];
        let headers = limited_headers(&Judgement { standings, exceeded: None });
        assert_eq!(headers["ratelimit-policy"], "\"user\";q=10;w=60, \"address\";q=50;w=60");
        assert_eq!(headers["ratelimit"], "\"user\";r=9;t=6, \"address\";r=0;t=60");
        assert!(limited_headers(&Judgement::default()).is_empty());
    }
}
