//! Callers of a service without tokens: programs on the machine, and not the pages that a browser
//! on it shows. On raw sockets: clients send the headers of a browser as they please.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use testkit::service::Service;

use crate::deployment::Deployment;

/// Longest wait for an answer; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

/// The answer to a request with these header lines and this body: status and text.
fn ask(service: &Service, line: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let length = body.len();
    let request = format!(
        "{line}\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {text:?}"));
    (status.parse().unwrap(), text)
}

const TAKE: &str = "POST /api/v1/documents/d1/generate-number HTTP/1.1";
const SPO: &str = "{\"type\":\"SPO\",\"date\":\"2024-01-22\"}";

#[test]
fn a_page_of_another_site_takes_no_number_and_deactivates_no_series() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let deactivate = "POST /api/v1/document-numbering/configs/1/deactivate HTTP/1.1";
    let because = "{\"reason\":\"none\"}";
    for (headers, slug) in [
        ("host: evil.example\r\n", "host-not-allowed"),
        ("host: evil.example:8080\r\norigin: http://evil.example:8080\r\n", "host-not-allowed"),
        ("host: localhost\r\norigin: https://evil.example\r\n", "cross-site"),
        ("host: 127.0.0.1:8080\r\nsec-fetch-site: cross-site\r\n", "cross-site"),
        ("host: localhost\r\nsec-fetch-site: same-site\r\n", "cross-site"),
        ("host: localhost\r\norigin: null\r\n", "cross-site"),
    ] {
        for (line, body) in [(TAKE, SPO), (deactivate, because)] {
            let (status, text) = ask(&service, line, headers, body);
            assert_eq!(status, 403, "{headers}: {text}");
            assert!(text.contains(slug), "{headers}: {text}");
        }
    }
    let configs = "GET /api/v1/document-numbering/configs HTTP/1.1";
    let (status, text) = ask(&service, configs, "host: evil.example\r\n", "");
    assert_eq!(status, 403, "{text}");
    let foreign = "GET http://evil.example/metrics HTTP/1.1";
    let (status, text) = ask(&service, foreign, "host: localhost\r\n", "");
    assert_eq!(status, 403, "{text}");

    let (status, text) = ask(&service, TAKE, "host: localhost:1\r\n", SPO);
    assert!(status == 201 && text.contains("SPO-20240122-001"), "the first number: {text}");
    deployment.assert_clean();
}

#[test]
fn a_request_names_exactly_one_host() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let two = "host: localhost\r\nhost: localhost\r\n";
    for headers in ["", two, "host: evil.example\r\nhost: localhost\r\n"] {
        let (status, text) = ask(&service, TAKE, headers, SPO);
        assert_eq!(status, 400, "{headers}: {text}");
        assert!(text.contains("invalid-host"), "{headers}: {text}");
    }
    let (status, text) = ask(&service, "GET /healthz HTTP/1.0", "", "");
    assert_eq!(status, 200, "{text}");
}

#[test]
fn a_listed_name_is_served_like_loopback() {
    let mut deployment = Deployment::embedded();
    deployment.http = "hosts = [\"numbers.example.com\"]\n".into();
    let service = deployment.serve();
    let page = "host: numbers.example.com\r\norigin: https://numbers.example.com\r\n";
    let (status, text) = ask(&service, TAKE, page, SPO);
    assert_eq!(status, 201, "{text}");
    let (status, text) = ask(&service, TAKE, "host: numbers.example.com.evil.example\r\n", SPO);
    assert_eq!(status, 403, "{text}");
}
