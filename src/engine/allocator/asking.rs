//! Asks the source of a series for the value that a number is to show.
//!
//! Everything that can be refused is refused before, and a request that has a number already gets
//! that: the source is not asked for a request that gets no new number. A source is asked within
//! the request of its caller. When the caller leaves, the question is dropped: nothing was taken
//! here, and a retry asks under the same key, under which a source gives the same value.

use std::sync::Arc;

use numbering::{Draft, Series, hexadecimal};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout_at};
use unicode_normalization::UnicodeNormalization as _;

use super::catalog::unknown_source;
use super::order::Asking;
use super::pending_request::CheckedRequest;
use super::{AllocError, Allocator};
use crate::engine::sources::{SourceError, SourceQuestion};
use crate::ledger::Record;

impl CheckedRequest {
    /// The source that its series asks.
    pub(super) fn source(&self) -> Option<&str> {
        self.served.series.sourced().map(|sourced| sourced.source)
    }

    /// The refusal of its number because another one has the text.
    pub(super) fn collided(&self, number: String) -> AllocError {
        match self.source() {
            Some(name) => SourceError::Taken { name: name.to_owned(), number }.into(),
            None => AllocError::Collided { number },
        }
    }

    /// Puts the value that its source gave in its place. Its payload stays what was sent: a retry
    /// finds the number by it.
    fn put_value(&mut self, asking: &Asking, value: &str) -> Result<(), SourceError> {
        let Some(sourced) = self.served.series.sourced() else { return Ok(()) };
        let draft = self.served.series.draft_answered(&asking.inputs, value, asking.now);
        let invalid = |reason| SourceError::Invalid { name: sourced.source.to_owned(), reason };
        let Draft { partial, snowflake, keys, scope, .. } =
            draft.map_err(|refused| invalid(refused.to_string()))?;
        let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let is_same = (&keys, &scope) == (&self.record.counter_keys, &self.record.scope);
        assert!(is_same, "a source names no counter and no scope");
        let record = Arc::make_mut(&mut self.record);
        record.context.insert(sourced.variable.to_owned(), value.nfc().collect());
        record.mask = partial.to_text();
        (self.partial, self.snowflake) = (partial, snowflake);
        self.request.record = self.record.to_flat_json().into();
        Ok(())
    }
}

impl Allocator {
    /// The warning where a series is saved whose source this process does not know.
    #[must_use]
    pub fn warning_of(&self, series: &Series) -> Option<String> {
        unknown_source(series, &self.shared.sources)
    }

    /// Asks the source of an order, where it has one, until a time.
    pub(super) async fn complete(
        &self,
        order: &mut CheckedRequest,
        by: Instant,
    ) -> Result<(), AllocError> {
        let Some(asking) = order.asking.take() else { return Ok(()) };
        let name = order.source().unwrap_or_default().to_owned();
        let key = key(&self.shared.context.deployment.deployment_id.to_string(), order);
        let Record { type_code, project, document_id, document_date, context, .. } = &*order.record;
        let question = SourceQuestion {
            series: &order.served.version.definition.code,
            type_code,
            project: project.as_deref(),
            date: document_date,
            document_id: document_id.as_deref(),
            context,
        };
        let (sources, caller) = (&self.shared.sources, &order.identity.name);
        let given = timeout_at(by, sources.ask(&name, caller, &key, &question)).await;
        let given = given.unwrap_or_else(|_| Err(SourceError::Away { name: name.clone() }));
        let put = given.and_then(|value| order.put_value(&asking, &value));
        let outcome = put.as_ref().map_or_else(SourceError::outcome, |()| "answered");
        self.shared.context.metrics.external_calls.of(outcome).increment(1);
        if let Err(error @ SourceError::Invalid { .. }) = &put {
            self.shared.sources.tell_invalid(&name, error);
        }
        put.map_err(AllocError::from)
    }
}

/// The key of a request at its source: the same for each attempt and each retry, and for no other
/// request of any deployment. A document that is given another number on purpose is another
/// request each time, unless its caller names it.
fn key(deployment: &str, order: &CheckedRequest) -> String {
    let Record { series_id, document_id, idempotency_key, user_id, .. } = &*order.record;
    let document = document_id.as_ref().filter(|_| !order.request.again);
    let (kind, user, id) = match (document, idempotency_key) {
        (Some(document), _) => ("document", "", order.documents.name(document)),
        (None, Some(key)) => ("key", user_id.as_str(), key.clone()),
        (None, None) => ("allocation", "", order.record.allocation_id.to_string()),
    };
    // As JSON no two lists read alike.
    let named = serde_json::json!([deployment, series_id, kind, user, id]);
    hexadecimal(&Sha256::digest(named.to_string()))
}
