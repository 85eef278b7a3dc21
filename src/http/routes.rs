//! Patterns of paths, as labels of metrics and log lines.
//!
//! A label must be one of few: an unknown path is `other`, never itself.

/// Label of every path that has no route.
const OTHER: &str = "other";

/// Routes that need no token.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// All patterns. A segment in braces stands for any one.
const PATTERNS: &[&str] = &[
    "/api/v1/documents/{documentId}/generate-number",
    "/api/v1/documents/{documentId}/numbers",
    "/api/v1/documents/{documentId}/revisions",
    "/api/v1/document-numbering/batches",
    "/api/v1/document-numbering/preview",
    "/api/v1/document-numbering/configs",
    "/api/v1/document-numbering/configs/{configId}",
    "/api/v1/document-numbering/configs/{configId}/activate",
    "/api/v1/document-numbering/configs/{configId}/deactivate",
    "/api/v1/document-numbering/configs/{configId}/versions",
    "/api/v1/document-numbering/configs/{configId}/versions/{version}",
    "/api/v1/document-numbering/numbers",
    "/api/v1/document-numbering/numbers/{number}",
    "/api/v1/serials/unified",
    "/api/v1/serials/unified/{serial}",
    "/api/v1/serials/system",
    "/api/v1/serials/system/begin",
    "/api/v1/serials/system/succeed",
    "/api/v1/serials/system/fail",
    "/api/v1/serials/interface",
    "/api/v1/serials/interface/check",
    "/openapi.json",
    "/healthz",
    "/readyz",
    "/metrics",
];

/// The pattern of a path.
pub(super) fn pattern(path: &str) -> &'static str {
    PATTERNS.iter().copied().find(|pattern| fits(pattern, path)).unwrap_or(OTHER)
}

/// Whether a pattern needs no token.
pub(super) fn is_open(pattern: &str) -> bool {
    OPEN.contains(&pattern)
}

fn fits(pattern: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    pattern.split('/').all(|wanted| {
        segments.next().is_some_and(|found| {
            if wanted.starts_with('{') { !found.is_empty() } else { wanted == found }
        })
    }) && segments.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_labelled_by_its_pattern() {
        for &pattern_text in PATTERNS {
            assert_eq!(pattern(&pattern_text.replace(['{', '}'], "")), pattern_text);
        }
        assert_eq!(
            pattern("/api/v1/documents/a%2Fb/generate-number"),
            "/api/v1/documents/{documentId}/generate-number"
        );
        for path in ["", "/", "/healthz/", "/api/v1/documents//generate-number", "/x", "metrics"] {
            assert_eq!(pattern(path), OTHER, "{path}");
        }
    }

    #[test]
    fn only_health_and_metrics_are_open() {
        let open = PATTERNS.iter().copied().filter(|pattern| is_open(pattern));
        assert_eq!(open.collect::<Vec<_>>(), OPEN);
        assert!(!is_open(OTHER));
    }
}
