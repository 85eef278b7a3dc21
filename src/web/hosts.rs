//! The accepted names of the service, and the pages from which something may be changed.
//!
//! Without tokens, every client that reaches the loopback address is admitted, and so is every page
//! in a browser on the machine: one whose name is made to resolve to loopback (DNS rebinding) reads
//! and writes as if it were a page of the service, and any other may at least send. The browser
//! itself distinguishes both: by the header `Host`, and by `Origin` and `Sec-Fetch-Site`. Nothing
//! here replaces tokens: a program can send any headers.

use axum::http::header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{Request, Uri, Version};
use numerator_runtime::hosts::is_this_machine;

use super::problem::{Problem, Slug};

/// The browser's statement about the page that makes the request.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The accepted names of a listener.
#[derive(Clone, Debug)]
pub(crate) enum Hosts {
    /// Any: the caller has a token, or sees nothing that matters.
    Any,
    /// Loopback names, and these: lower case, without a port.
    Named(Vec<String>),
}

impl Hosts {
    /// Admits a request whose host, and whose page if it comes from one, are the service's own.
    ///
    /// # Errors
    /// `invalid-host`, `host-not-allowed` or `cross-site`. None of them took anything.
    pub(crate) fn admit<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let host = only_host(request.headers(), request.version())?;
        let Hosts::Named(named) = self else { return Ok(()) };
        let is_ours = |text: &str| name_of(text).is_some_and(|name| is_among(named, name));
        // A request whose target is a whole URL names its host there.
        let target = request.uri().authority().map(Authority::as_str);
        let host = host.map(|host| host.to_str().unwrap_or_default());
        if let Some(foreign) = [host, target].into_iter().flatten().find(|text| !is_ours(text)) {
            return Err(Problem::new(
                Slug::HostNotAllowed,
                format!(
                    "{foreign:?} is no name of this service; ask it as localhost or 127.0.0.1, or \
                     list the name in the setting http.hosts"
                ),
            ));
        }
        if request.method().is_safe() || !is_cross_site(request.headers(), is_ours) {
            return Ok(());
        }
        let detail = "a page of another site asked; let the program behind that page ask, with a \
                      token where the service has tokens";
        Err(Problem::new(Slug::CrossSite, detail))
    }
}

/// The only header `Host` of a request; before HTTP/1.1 there need be none, and no browser is that
/// old.
fn only_host(headers: &HeaderMap, version: Version) -> Result<Option<&HeaderValue>, Problem> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() || (host.is_none() && version != Version::HTTP_10) {
        return Err(Problem::new(Slug::InvalidHost, "send exactly one header Host"));
    }
    Ok(host)
}

/// Whether the browser reports that a page of another site makes the request. Other ports of the
/// same machine are other sites, too, if the browser reports them as such.
fn is_cross_site(headers: &HeaderMap, is_ours: impl Fn(&str) -> bool) -> bool {
    let is_foreign_page = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
        // A page without an origin calls itself `null`, which has no scheme.
        let origin = origin.filter(|origin| origin.scheme().is_some());
        !origin.is_some_and(|origin| origin.authority().is_some_and(|host| is_ours(host.as_str())))
    };
    headers.get_all(SEC_FETCH_SITE).iter().any(|site| site != "same-origin" && site != "none")
        || headers.get_all(ORIGIN).iter().any(is_foreign_page)
}

/// The name in a host: without its port, and an IPv6 address in its brackets. `None` for other
/// texts.
fn name_of(host: &str) -> Option<&str> {
    let is_port = |port: &str| port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit());
    let end = match host.starts_with('[') {
        true => host.find(']')? + 1,
        false => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// Whether a name, as [`name_of`] gives it, leads to loopback or is one of those listed.
fn is_among(named: &[String], name: &str) -> bool {
    is_this_machine(name) || named.iter().any(|listed| listed.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Method;

    use super::*;

    /// The slug of the refusal of a request with these headers; empty if it passes.
    fn asked(method: Method, target: &str, headers: &[(&str, &str)]) -> &'static str {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let hosts = Hosts::Named(vec!["numbers.example.com".into(), "[2001:db8::1]".into()]);
        hosts.admit(&request).map_or_else(|problem| problem.slug().name(), |()| "")
    }

    #[test]
    fn loopback_names_and_listed_ones_are_ours_and_no_name_that_only_looks_so() {
        for ours in [
            "localhost",
            "LocalHost:8080",
            "127.0.0.1",
            "127.9.8.7:1",
            "[::1]",
            "[::1]:8080",
            "[0:0::1]:8080",
            "numbers.example.com",
            "NUMBERS.example.com:443",
            "[2001:db8::1]:80",
            "localhost:",
        ] {
            assert_eq!(asked(Method::GET, "/", &[("host", ours)]), "", "{ours}");
        }
        for foreign in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.example:localhost",
            "127.0.0.1.evil.example",
            "127.1",
            "2130706433",
            "0.0.0.0",
            "::1",
            "[127.0.0.1]",
            "[localhost]",
            "[[::1]",
            "[::1",
            "[::1]x",
            "[::]",
            "localhost@evil.example",
            "evil@localhost",
            "sub.numbers.example.com",
            "192.168.0.1",
        ] {
            let refused = asked(Method::GET, "/", &[("host", foreign)]);
            assert_eq!(refused, "host-not-allowed", "{foreign}");
        }
    }

    #[test]
    fn a_request_names_exactly_one_host_and_its_target_no_other() {
        assert_eq!(asked(Method::GET, "/", &[]), "invalid-host");
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(asked(Method::GET, "/", &twice), "invalid-host");
        let host = [("host", "localhost")];
        assert_eq!(asked(Method::GET, "http://evil.example/", &host), "host-not-allowed");
        assert_eq!(asked(Method::GET, "http://127.0.0.1:8080/", &host), "");
        let old = Request::builder().version(Version::HTTP_10).body(Body::empty());
        assert!(Hosts::Named(Vec::new()).admit(&old.expect("a request")).is_ok());
        let without = Request::builder().body(Body::empty()).expect("a request");
        assert!(Hosts::Any.admit(&without).is_err(), "one Host, whoever may ask");
    }

    #[test]
    fn a_page_of_another_site_changes_nothing_and_may_look() {
        for (header, value) in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "https://evil.example"),
            ("origin", "https://localhost.evil.example:8080"),
            ("origin", "null"),
            ("origin", "localhost"),
            ("origin", ""),
        ] {
            let headers = [("host", "localhost:8080"), (header, value)];
            for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                assert_eq!(asked(method, "/", &headers), "cross-site", "{header}: {value}");
            }
            assert_eq!(asked(Method::GET, "/", &headers), "", "{header}: {value}");
        }
        for (header, value) in [
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "none"),
            ("origin", "http://localhost:8080"),
            ("origin", "http://[::1]"),
            ("origin", "https://numbers.example.com"),
        ] {
            let headers = [("host", "localhost:8080"), (header, value)];
            assert_eq!(asked(Method::POST, "/", &headers), "", "{header}: {value}");
        }
    }
}
