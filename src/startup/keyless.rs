//! A process without the key where the record is under seal: refused, or logged and recorded.
//! `numerator audit verify` names the records that it writes, for they could come from any source.

use anyhow::bail;

use crate::clock::SharedClock;
use crate::config::{AuditSettings, Keyless};
use crate::ledger::{Event, SharedLedger};
use crate::node::host;

/// Refuses to write without a key where the ledger knows one, unless the settings allow it: then an
/// event records it.
///
/// # Errors
/// The refusal, with its remedy; a ledger that cannot be read.
pub(crate) async fn must_have_key(
    ledger: &SharedLedger,
    audit: &AuditSettings,
    clock: &SharedClock,
) -> anyhow::Result<()> {
    if audit.has_key() || audit.keyless == Keyless::Onlooker {
        return Ok(());
    }
    let Some(last) = ledger.checkpoints().last(None).await? else { return Ok(()) };
    if audit.keyless == Keyless::Refused {
        bail!(
            "audit.key: this ledger is under seal (checkpoint {}), and `numerator audit verify` \
             names what is written without the key; set audit.key to the key of its services, or \
             write all the same with --without-key (audit.without_key = true)",
            last.number
        );
    }
    tracing::warn!(
        "writing without audit.key to a ledger that is under seal: `numerator audit verify` names \
         what is written"
    );
    let event = Event {
        at_us: clock.now_us(),
        kind: "without-key".into(),
        partition: None,
        epoch: None,
        node_id: None,
        detail: serde_json::json!({ "host": host(), "checkpoint": last.number }),
    };
    Ok(ledger.events().record(&event).await?)
}
