//! The HTTP clients of tests and drills: they read neither the certificates of the system nor the
//! proxies of the environment, and trust no certificate.

use std::sync::Arc;

use reqwest::{Client, ClientBuilder, IntoUrl, Response};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// The builder of a client.
pub fn client_builder() -> ClientBuilder {
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Client::builder().tls_backend_preconfigured(tls).no_proxy()
}

/// A client.
pub fn client() -> Client {
    client_builder().build().unwrap()
}

/// The answer to a GET.
///
/// # Errors
/// No answer.
pub async fn get(url: impl IntoUrl) -> reqwest::Result<Response> {
    client().get(url).send().await
}
