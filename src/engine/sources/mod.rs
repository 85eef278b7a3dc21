//! Outgoing requests: to the sources of the settings, which give values to numbers, and for the
//! keys of an issuer.
//!
//! Addresses come from the settings, never from a request or a series. The result is a value or a
//! reason why there is none; the numbering language decides whether the value suits a number. Takes
//! no numbers, and knows no series. Tokens are sent, and never logged or stored.

mod address;
mod permits;
mod reachable;

pub use address::{Address, AddressError, is_trustworthy};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::backoff::Backoff;
use crate::refusals::Refusals;
use permits::Permits;

/// Largest answer of a source that is read: it has one short value.
const ANSWER_BYTES_MAX: usize = 16 * 1_024;
/// Tokens are short.
const TOKEN_BYTES_MAX: usize = 4_096;
/// Waits between two attempts.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Names a request for the source: it answers the same key with the same value.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A source of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSettings {
    /// The name by which series call it.
    pub name: String,
    /// `external.<name>.address`.
    pub address: Uri,
    /// `external.<name>.time_limit`: how long one attempt may take.
    pub time_limit: Duration,
    /// `external.<name>.attempts_max`.
    pub attempts_max: u32,
    /// `external.<name>.concurrency_max`: calls at once, half of them of one caller at most.
    pub concurrency_max: usize,
    /// `external.<name>.token_file`: the file of the token that it is sent.
    pub token_file: Option<PathBuf>,
}

/// What a source is asked.
#[derive(Clone, Debug, Serialize)]
pub struct SourceQuestion<'a> {
    /// Code of the series.
    pub series: &'a str,
    /// Code of the document type.
    #[serde(rename = "type")]
    pub type_code: &'a str,
    /// Code of the project.
    pub project: Option<&'a str>,
    /// The document's civil date.
    pub date: &'a str,
    /// The document, where one is named.
    pub document_id: Option<&'a str>,
    /// The variables of the request.
    pub context: &'a BTreeMap<String, String>,
}

/// Why a source gave no value, or none that can be used. Shown to callers: no word of its answer is
/// in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SourceError {
    /// The settings do not name it.
    #[error(
        "the series asks the source {name}, which this process does not know: set \
         external.{name}.address"
    )]
    Unknown {
        /// The source.
        name: String,
    },
    /// It has as many calls as it may have, or as it may have of this caller.
    #[error(
        "as many calls of the source {name} are under way as external.{name}.concurrency_max \
         allows, of which one caller may have half"
    )]
    Busy {
        /// The source.
        name: String,
    },
    /// It does not answer, or only that it cannot now.
    #[error("the source {name} does not answer now; the log says why")]
    Away {
        /// The source.
        name: String,
    },
    /// It refuses the request.
    #[error("the source {name} refuses this request with status {status}")]
    Refused {
        /// The source.
        name: String,
        /// The HTTP status.
        status: u16,
    },
    /// What it gives is no value, or not one of this series.
    #[error("what the source {name} gives is no value of this series: {reason}")]
    Invalid {
        /// The source.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It gave a value whose number is taken.
    #[error(
        "the source {name} gave a value whose number, {number}, another document has already; have \
         it give another one, then send the same request again"
    )]
    Taken {
        /// The source.
        name: String,
        /// The number.
        number: String,
    },
}

impl SourceError {
    /// Whether the same request may succeed later without a change.
    #[must_use]
    pub fn retry_useful(&self) -> bool {
        matches!(
            self,
            SourceError::Unknown { .. } | SourceError::Busy { .. } | SourceError::Away { .. }
        )
    }

    /// The outcome of the value, as it is counted.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self {
            SourceError::Refused { .. } => "refused",
            SourceError::Invalid { .. } => "invalid",
            SourceError::Taken { .. } => "taken",
            _ => "unavailable",
        }
    }
}

/// The sources of this process.
pub struct Sources {
    by_name: BTreeMap<String, Source>,
    /// Bounds the lines of what they refuse.
    refusals: Refusals,
}

/// One source.
struct Source {
    address: Address,
    time_limit: Duration,
    attempts_max: u32,
    permits: Permits,
    /// With its token.
    headers: HeaderMap,
}

/// Its answer; other fields are ignored.
#[derive(Deserialize)]
struct Given {
    value: String,
}

impl Sources {
    /// Reads the tokens of the sources; the refusals of sources have at most `lines_per_second_max`
    /// log lines in a second. Sends nothing: a source that is away does not stop the start.
    ///
    /// # Errors
    /// A token that cannot be read or sent, or an address that is never asked.
    pub fn open(settings: &[SourceSettings], lines_per_second_max: u32) -> anyhow::Result<Self> {
        let mut by_name = BTreeMap::new();
        for one in settings {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            if let Some(file) = &one.token_file {
                let token = read_token(file);
                let said = || format!("external.{}.token_file: {}", one.name, file.display());
                headers.insert(AUTHORIZATION, token.with_context(said)?);
            }
            let setting = || format!("external.{}.address", one.name);
            let source = Source {
                address: Address::new(&one.address).with_context(setting)?,
                time_limit: one.time_limit,
                attempts_max: one.attempts_max,
                permits: Permits::new(one.concurrency_max),
                headers,
            };
            by_name.insert(one.name.clone(), source);
        }
        let refusals = Refusals::new(lines_per_second_max, "numerator_external_calls_total");
        Ok(Sources { by_name, refusals })
    }

    /// Whether the settings name a source.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Asks a source for a value on behalf of a caller, as often as its settings allow, under one
    /// key. Safe to drop: the value is the source's until a number shows it, and the next request
    /// under the same key gets the same value.
    ///
    /// # Errors
    /// See [`SourceError`].
    pub async fn ask(
        &self,
        name: &str,
        caller: &str,
        key: &str,
        question: &SourceQuestion<'_>,
    ) -> Result<String, SourceError> {
        let named = || name.to_owned();
        let Some(source) = self.by_name.get(name) else {
            return Err(SourceError::Unknown { name: named() });
        };
        let Some(_place) = source.permits.take(caller).await else {
            return Err(SourceError::Busy { name: named() });
        };
        let mut headers = source.headers.clone();
        let key = HeaderValue::from_str(key).map_err(|_| SourceError::Away { name: named() })?;
        headers.insert(IDEMPOTENCY_KEY, key);
        let body = serde_json::to_string(question).expect("a question is plain data");
        let mut backoff = Backoff::new(PAUSE_MIN, PAUSE_MAX);
        loop {
            let (headers, body, limit) = (headers.clone(), body.clone(), source.time_limit);
            let answer = source.address.post(headers, body, limit, ANSWER_BYTES_MAX).await;
            let error = match answer {
                Ok(bytes) => return read(name, &bytes),
                Err(error) => error,
            };
            if let AddressError::Status(status) = error
                && !may_change(status)
            {
                if self.refusals.admit() {
                    tracing::warn!(source = name, %status, "a source of numbers refuses a request");
                }
                return Err(SourceError::Refused { name: named(), status: status.as_u16() });
            }
            let attempt = backoff.attempts() + 1;
            if self.refusals.admit() {
                tracing::warn!(
                    source = name,
                    attempt,
                    %error,
                    "a source of numbers does not answer"
                );
            }
            if attempt >= source.attempts_max {
                return Err(SourceError::Away { name: named() });
            }
            backoff.wait().await;
        }
    }

    /// Logs an answer of a source that is no value.
    pub fn tell_invalid(&self, name: &str, error: &SourceError) {
        if self.refusals.admit() {
            tracing::warn!(source = name, %error, "a source of numbers gives what is no value");
        }
    }
}

/// Whether a source that answers so may answer otherwise in a moment: its own failure, too many
/// requests, or another attempt under the same key that it is still at.
fn may_change(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

/// The value of an answer.
fn read(name: &str, bytes: &[u8]) -> Result<String, SourceError> {
    let given: Result<Given, _> = serde_json::from_slice(bytes);
    given.map(|given| given.value).map_err(|_| {
        let reason = "its answer is no JSON object with a text `value`".to_owned();
        SourceError::Invalid { name: name.to_owned(), reason }
    })
}

/// A token as it is sent, which no log shows.
fn read_token(file: &PathBuf) -> anyhow::Result<HeaderValue> {
    use std::io::Read as _;
    let mut text = String::new();
    let most = u64::try_from(TOKEN_BYTES_MAX).unwrap_or(u64::MAX);
    std::fs::File::open(file)?.take(most + 1).read_to_string(&mut text)?;
    let token = text.trim_end();
    let is_right = (1..=TOKEN_BYTES_MAX).contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_graphic());
    anyhow::ensure!(is_right, "must hold one token: a line of ASCII letters, digits and signs");
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
