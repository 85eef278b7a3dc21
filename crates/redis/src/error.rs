//! What is known when a call to Redis fails, and how it is read from the client's error.
//!
//! Nothing is claimed that is not proven: an error is `NotExecuted` only if Redis itself refused
//! this very call before its script ran or wrote.

use fred::error::{Error, ErrorKind};
use thiserror::Error;

/// Why a script call failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CounterError {
    /// Connection lost, time-out, cancelled, or a cluster that is down, which the client reports to
    /// all callers in flight: the script may have run, may run later, or never. Send the same bytes
    /// again.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// Redis refused before the script wrote (LOADING, READONLY, OOM, MOVED, TRYAGAIN, …), or no
    /// master was known to call. Nothing was taken. Also a URL that is not one.
    #[error("not executed: {0}")]
    NotExecuted(String),
    /// An error reply that proves nothing: the script may have run half-way (F15). The epoch must
    /// end; nothing of the flight may be handed out.
    #[error("broken: {0}")]
    Broken(String),
    /// The reply is not one that the script gives, or belongs to another call: replies may be out
    /// of step. The connection was closed; treat like `Broken`.
    #[error("garbled reply: {0}")]
    Garbled(String),
}

/// Replies that Redis gives before a script runs or at its first write (F15). Later writes of a
/// script are never refused with these.
const REFUSALS: [&str; 14] = [
    "NOSCRIPT",
    "MOVED",
    "ASK",
    "TRYAGAIN",
    "LOADING",
    "BUSY",
    "READONLY",
    "MASTERDOWN",
    "NOREPLICAS",
    "MISCONF",
    "OOM",
    "NOAUTH",
    "NOPERM",
    "WRONGPASS",
];

/// It proves that a call was not executed, but the client closes the connection on it and reports
/// it to all callers in flight, including those whose calls were executed.
const CLUSTER_IS_DOWN: &str = "CLUSTERDOWN";

impl CounterError {
    /// The failure as one word, for metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            CounterError::Unknown(_) => "unknown",
            CounterError::NotExecuted(_) => "not-executed",
            CounterError::Broken(_) => "broken",
            CounterError::Garbled(_) => "garbled",
        }
    }

    /// What an error of the client proves.
    pub(super) fn classify(error: &Error) -> Self {
        let text = error.details();
        let code = text.split_whitespace().next().unwrap_or_default();
        // The client's own texts share error kinds with replies, but begin with an ordinary word.
        let is_reply = code.len() > 1 && code.bytes().all(|b| b.is_ascii_uppercase());
        let is_of_connection = matches!(
            error.kind(),
            ErrorKind::IO
                | ErrorKind::Timeout
                | ErrorKind::Canceled
                | ErrorKind::Backpressure
                | ErrorKind::Protocol
                | ErrorKind::Tls
                | ErrorKind::Routing
                | ErrorKind::Config
                | ErrorKind::Sentinel
        );
        if !is_reply || is_of_connection || code == CLUSTER_IS_DOWN {
            return CounterError::Unknown(error.to_string());
        }
        // An ACL may refuse a single command inside a script that has already written.
        let is_inside = code == "NOPERM" && text.contains("script");
        if REFUSALS.contains(&code) && !is_inside {
            return CounterError::NotExecuted(text.to_owned());
        }
        CounterError::Broken(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: ErrorKind, text: &'static str) -> CounterError {
        CounterError::classify(&Error::new(kind, text))
    }

    #[test]
    fn only_a_refusal_of_this_very_call_proves_that_it_was_not_executed() {
        for code in REFUSALS {
            let error = Error::new(ErrorKind::Unknown, format!("{code} some reason"));
            assert!(matches!(CounterError::classify(&error), CounterError::NotExecuted(_)));
        }
        for moved in ["MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381"] {
            assert!(matches!(of(ErrorKind::Cluster, moved), CounterError::NotExecuted(_)));
        }
        let down = "CLUSTERDOWN The cluster is down";
        assert!(matches!(of(ErrorKind::Cluster, down), CounterError::Unknown(_)));
        let inside = "NOPERM ACL failure in script: this user has no permissions";
        assert!(matches!(of(ErrorKind::Unknown, inside), CounterError::Broken(_)));
    }

    #[test]
    fn what_the_client_says_itself_leaves_the_outcome_unknown() {
        for (kind, text) in [
            (ErrorKind::IO, "Connection closed."),
            (ErrorKind::Timeout, "Request timed out."),
            (ErrorKind::Canceled, "Canceled."),
            (ErrorKind::Backpressure, "Max in-flight commands reached."),
            (ErrorKind::Unknown, "Too many failed write attempts."),
            (ErrorKind::Unknown, "channel closed"),
            (ErrorKind::Unknown, ""),
            (ErrorKind::IO, "READONLY is what a broken pipe may look like"),
        ] {
            assert!(matches!(of(kind, text), CounterError::Unknown(_)), "{text}");
        }
    }

    #[test]
    fn any_other_error_reply_is_broken() {
        for (kind, text) in [
            (ErrorKind::Unknown, "ERR user_script:1: boom"),
            (ErrorKind::InvalidArgument, "WRONGTYPE Operation against a key"),
            (ErrorKind::Unknown, "EXECABORT never expected"),
        ] {
            assert!(matches!(of(kind, text), CounterError::Broken(_)), "{text}");
        }
    }
}
