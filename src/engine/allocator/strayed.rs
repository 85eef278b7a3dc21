//! Whether Redis has been another ledger's while a worker looked away. Only reads.

use std::time::Duration;

use tokio::time::Instant;

use crate::engine::node::Context;
use crate::ledger::At;

/// How long Redis is asked again whose epoch it was that is above the ledger's: nothing is held for
/// another ledger's while a connection is only being made anew. And how often.
const STRAYED_LIMIT: Duration = Duration::from_secs(2);
const STRAYED_PAUSE: Duration = Duration::from_millis(100);

/// Whether an epoch above the ledger's was another ledger's: Redis still counts for that one,
/// or for this one in an epoch that the ledger knows. An owner record that is gone proves
/// nothing, nor does one that cannot be read for [`STRAYED_LIMIT`] (F8, F9).
pub(super) async fn has_strayed(context: &Context, known: At) -> bool {
    let Some(redis) = context.redis_of(known.partition) else { return false };
    let deadline = Instant::now() + STRAYED_LIMIT;
    let survey = loop {
        match redis.survey(&context.keys, known.partition, &[]).await {
            Ok(survey) => break survey,
            // A process that leads Redis back cuts its connections.
            Err(_) if Instant::now() < deadline => tokio::time::sleep(STRAYED_PAUSE).await,
            Err(_) => return false,
        }
    };
    let Some(owner) = survey.owner else { return false };
    let mine = context.deployment.deployment_id.to_string();
    owner.deployment != mine || owner.epoch <= known.epoch
}
