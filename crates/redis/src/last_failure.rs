//! Why a server is not reached, in words for the operator who has to repair that.
//!
//! A call that waits for a connection ends with its time-out, which gives no reason. The errors of
//! the attempts to connect are kept here until a reply arrives. Judges nothing: whether a call was
//! executed follows from its own error alone.

use std::sync::{Mutex, PoisonError};

use fred::error::{Error, ErrorKind};

use super::CounterError;

/// What the attempts to connect to one server last said; nothing once it has replied since.
#[derive(Debug, Default)]
pub(super) struct LastFailure(Mutex<Option<String>>);

impl LastFailure {
    /// An attempt failed, or a connection was lost.
    pub(super) fn note(&self, error: &Error) {
        // An error that only reports the replacement of the client is not a reason.
        if *error.kind() != ErrorKind::Canceled {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason(error));
        }
    }

    /// The server replied.
    pub(super) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Why it is not reached, if that is known.
    pub(super) fn failure_reason(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What an attempt to connect means.
fn reason(error: &Error) -> String {
    let details = error.details();
    let has = |words: &[&str]| words.iter().any(|word| details.contains(word));
    if has(&["InvalidCertificate", "certificate"]) {
        return format!("redis shows a certificate that is not accepted here: {details}");
    }
    if *error.kind() == ErrorKind::Tls || has(&["InvalidMessage", "corrupt message"]) {
        return format!("the server of redis.url does not speak TLS there: {details}");
    }
    match *error.kind() {
        // A server that expects TLS answers plain text with an alert, or not at all.
        ErrorKind::Protocol | ErrorKind::Parse => {
            format!("the server does not answer as redis does; does it speak TLS there? {details}")
        }
        ErrorKind::Timeout => {
            format!("no connection in time; is redis.url right about address and TLS? {details}")
        }
        ErrorKind::Auth => refusal(details).unwrap_or_else(|| details.to_owned()),
        _ => refusal(details).unwrap_or_else(|| format!("redis is not reached: {details}")),
    }
}

/// What a refusal by Redis itself means, if it concerns access.
fn refusal(details: &str) -> Option<String> {
    let means = match details.split_whitespace().next().unwrap_or_default() {
        "WRONGPASS" => "redis refuses the password",
        "NOAUTH" => "redis asks for a password, and redis.url has none",
        "NOPERM" => "redis refuses this user a command",
        // Its reply to a password if it has none, or to a user without a name.
        "ERR" if details.contains("AUTH") => "redis refuses the password",
        _ => return None,
    };
    Some(format!("{means}: {details}"))
}

impl CounterError {
    /// Why a call did not succeed, for the operator: without what it proves.
    #[must_use]
    pub fn cause(&self) -> String {
        let (CounterError::Unknown(text)
        | CounterError::NotExecuted(text)
        | CounterError::Broken(text)
        | CounterError::Garbled(text)) = self;
        refusal(text).unwrap_or_else(|| text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_access_says_what_it_means_and_what_redis_said() {
        let refused = CounterError::NotExecuted("NOAUTH Authentication required.".into());
        assert!(refused.cause().starts_with("redis asks for a password"), "{}", refused.cause());
        let other = CounterError::Unknown("READONLY it reads".into());
        assert_eq!(other.cause(), "READONLY it reads");
    }

    #[test]
    fn a_reply_ends_what_was_said_and_the_end_of_a_client_is_no_reason() {
        let last_failure = LastFailure::default();
        last_failure.note(&Error::new(ErrorKind::Canceled, "Canceled."));
        assert_eq!(last_failure.failure_reason(), None);
        last_failure.note(&Error::new(ErrorKind::Auth, "WRONGPASS invalid"));
        assert_eq!(
            last_failure.failure_reason().as_deref(),
            Some("redis refuses the password: WRONGPASS invalid")
        );
        last_failure.clear();
        assert_eq!(last_failure.failure_reason(), None);
    }
}
