//! INCR. Pipelined: the client sends what waits in one go. A Redis that is lost starts again at 1.

use super::Wanted;
use super::stores::{Stores, TakeError};

/// Takes a value that nobody remembers.
pub(super) async fn take(stores: &Stores, wanted: &Wanted<'_>) -> Result<u64, TakeError> {
    stores.command("INCR", vec![wanted.counter.to_owned()]).await
}

/// Takes a value and writes its row before it is answered. Whatever dies between the two leaves a
/// hole.
pub(super) async fn take_and_insert(
    stores: &Stores,
    wanted: &Wanted<'_>,
) -> Result<u64, TakeError> {
    let value = take(stores, wanted).await?;
    stores.insert(wanted, value).await?;
    Ok(value)
}
