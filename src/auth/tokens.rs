//! The tokens of callers, in memory: those of the settings and, where authentication is required,
//! those of the ledger. No request reads the ledger for them.
//!
//! The table is replaced as a whole when the ledger's stamp has changed; the stamp is read together
//! with that of the series. While the ledger is away, the last table stays in force: an outage
//! refuses no caller, and a node does not see a revocation that it cannot read. Uses are collected
//! in memory and written to the ledger from time to time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::Mutex;

use crate::auth::COUNT_MAX;
use crate::auth::{Grant, GrantMistake, Identity, LetIn, WrittenGrant, hash_of};
use crate::clock::SharedClock;
use crate::ledger::{
    LedgerError, SharedLedger, StoredToken, TOKEN_USES_MAX, TokenInForce, TokenUse,
};
use crate::task::{Stop, Task, Ticks};

/// How often uses are written.
const USES_PERIOD: Duration = Duration::from_secs(60);

/// Tokens by hash. The time of a look-up depends on hashes alone, which a caller cannot choose.
type ByHash = HashMap<[u8; 32], KnownToken>;

/// A bearer token that may ask for numbers. The token itself is kept nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// The identity and its rights.
    pub granted: Grant,
}

/// The tokens of callers.
pub struct Tokens {
    ledger: Option<SharedLedger>,
    clock: SharedClock,
    settings: Vec<Token>,
    known: RwLock<Arc<ByHash>>,
    /// The ledger's stamp when its tokens were read; locked while they are read.
    read_at: Mutex<Option<i64>>,
}

/// A token that is known.
#[derive(Clone)]
struct KnownToken {
    identity: Arc<Identity>,
    expires_at_us: Option<i64>,
    /// The secret was replaced by another, and is accepted until then.
    former_until_us: Option<i64>,
    last: Option<Arc<LastUse>>,
}

/// The last use of a token of the ledger, whichever of its secrets was sent.
struct LastUse {
    token_id: i64,
    at_us: AtomicI64,
    /// What of it the ledger has.
    written_us: AtomicI64,
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// The token is unknown.
    Unknown,
    /// Its last day is over.
    Expired,
    /// Another secret has replaced it.
    Replaced,
}

impl Tokens {
    /// Those of the settings, and of the ledger where there is one.
    #[must_use]
    pub fn new(settings: Vec<Token>, ledger: Option<SharedLedger>, clock: SharedClock) -> Self {
        let (known, read_at) = (RwLock::default(), Mutex::default());
        let tokens = Tokens { ledger, clock, settings, known, read_at };
        tokens.replace(&[]);
        tokens
    }

    /// The tokens of the settings and of the ledger, which is read at once.
    ///
    /// # Errors
    /// A ledger that does not answer: a process that cannot read its tokens serves no caller.
    pub(crate) async fn of(
        settings: Vec<Token>,
        ledger: &SharedLedger,
        clock: &SharedClock,
    ) -> anyhow::Result<Arc<Self>> {
        let tokens = Tokens::new(settings, Some(Arc::clone(ledger)), Arc::clone(clock));
        tokens.refresh(None).await.context("reading the tokens of the ledger")?;
        Ok(Arc::new(tokens))
    }

    /// The identity of a token.
    ///
    /// # Errors
    /// Why the token is not accepted.
    pub fn admit(&self, token: &str) -> Result<Arc<Identity>, NotAdmitted> {
        let known = self.known();
        let known = known.get(&hash_of(token)).ok_or(NotAdmitted::Unknown)?;
        let now_us = self.clock.now_us();
        let is_over = |at: Option<i64>| at.is_some_and(|at| at <= now_us);
        if is_over(known.former_until_us) {
            return Err(NotAdmitted::Replaced);
        }
        if is_over(known.expires_at_us) {
            return Err(NotAdmitted::Expired);
        }
        if let Some(last) = &known.last {
            last.at_us.fetch_max(now_us, Ordering::Relaxed);
        }
        Ok(Arc::clone(&known.identity))
    }

    /// When the first token ends of those that are in force.
    #[must_use]
    pub(crate) fn first_end_us(&self, now_us: i64) -> Option<i64> {
        let known = self.known();
        let ends = known.values().filter_map(|token| token.expires_at_us);
        ends.filter(|end_us| *end_us > now_us).min()
    }

    /// Reads the ledger's tokens again where they have changed since; `stamp` is the stamp of the
    /// ledger where it is known. Must not be cancelled: it calls the ledger.
    ///
    /// # Errors
    /// A ledger that does not answer; the last table stays in force.
    pub async fn refresh(&self, stamp: Option<i64>) -> Result<(), LedgerError> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        // One after the other: what was read earlier never replaces what was read later.
        let mut read_at = self.read_at.lock().await;
        if stamp.is_some() && *read_at == stamp {
            return Ok(());
        }
        let found = ledger.tokens().in_force().await?;
        let before = self.known();
        self.replace(&found.tokens);
        *read_at = Some(found.stamp);
        // Of tokens that are revoked by now, the last use would be forgotten.
        write_uses(ledger, &before).await;
        Ok(())
    }

    /// Puts what is known in place, as a whole.
    fn replace(&self, of_ledger: &[TokenInForce]) {
        let before = self.known();
        let before = before.values().filter_map(|known| known.last.as_ref());
        let before: HashMap<i64, &Arc<LastUse>> = before.map(|it| (it.token_id, it)).collect();
        let last = |token: &StoredToken| {
            let known = before.get(&token.token_id);
            known.map_or_else(|| Arc::new(LastUse::of(token)), |known| Arc::clone(known))
        };
        let mut known = ByHash::new();
        for TokenInForce { token, sha256, former_sha256 } in of_ledger {
            let Some(Grant { identity, expires_at_us }) = grant(token) else { continue };
            let last = Some(last(token));
            let by = |let_in| Arc::new(Identity { let_in, ..Identity::clone(&identity) });
            let held = LetIn::Token { token_id: token.token_id, sha256: *sha256 };
            let (identity, former) = (by(held), by(LetIn::FormerSecret));
            let mut present = KnownToken { identity, expires_at_us, former_until_us: None, last };
            known.insert(*sha256, present.clone());
            if let Some(sha256) = former_sha256 {
                present.identity = former;
                present.former_until_us = token.former_until_us;
                known.insert(*sha256, present);
            }
        }
        for Token { sha256, granted } in &self.settings {
            let Grant { identity, expires_at_us } = granted.clone();
            let (former_until_us, last) = (None, None);
            known.insert(*sha256, KnownToken { identity, expires_at_us, former_until_us, last });
        }
        *self.known.write().expect("no holder of this lock panics") = Arc::new(known);
    }

    /// Writes uses now and then, and again at the end.
    pub(crate) fn keep_uses(self: Arc<Self>) -> Task {
        let keep = async move |stop: Stop| {
            let mut ticks = Ticks::every(USES_PERIOD, stop);
            let mut goes_on = true;
            while goes_on {
                goes_on = ticks.next().await;
                if let Some(ledger) = &self.ledger {
                    write_uses(ledger, &self.known()).await;
                }
            }
        };
        Task::start("token uses", keep)
    }

    fn known(&self) -> Arc<ByHash> {
        Arc::clone(&self.known.read().expect("no holder of this lock panics"))
    }
}

impl LastUse {
    fn of(token: &StoredToken) -> Self {
        let at_us = token.last_used_at_us.unwrap_or_default();
        let (at_us, written_us) = (AtomicI64::new(at_us), AtomicI64::new(at_us));
        LastUse { token_id: token.token_id, at_us, written_us }
    }
}

/// Writes what was used since it was written last; what cannot be written waits for the next time.
async fn write_uses(ledger: &SharedLedger, known: &ByHash) {
    let lasts = known.values().filter_map(|known| known.last.as_ref());
    let mut unwritten: Vec<(&Arc<LastUse>, TokenUse)> = lasts.filter_map(fresh).collect();
    unwritten.sort_unstable_by_key(|(_, used)| used.token_id);
    // Both secrets of one token share its last use.
    unwritten.dedup_by_key(|(_, used)| used.token_id);
    for page in unwritten.chunks(TOKEN_USES_MAX) {
        let uses: Vec<TokenUse> = page.iter().map(|(_, used)| *used).collect();
        if let Err(error) = ledger.tokens().note_uses(&uses).await {
            tracing::debug!(%error, "the last use of tokens is not written yet");
            return;
        }
        for (last, used) in page {
            last.written_us.fetch_max(used.at_us, Ordering::Relaxed);
        }
    }
}

/// A use that the ledger does not have yet.
fn fresh(last: &Arc<LastUse>) -> Option<(&Arc<LastUse>, TokenUse)> {
    let at_us = last.at_us.load(Ordering::Relaxed);
    let is_fresh = at_us > last.written_us.load(Ordering::Relaxed);
    is_fresh.then_some((last, TokenUse { token_id: last.token_id, at_us }))
}

/// What a token of the ledger gives; nothing where another version wrote what this one cannot read.
fn grant(token: &StoredToken) -> Option<Grant> {
    let name = &*token.name;
    let granted = WrittenGrant { name, rights: &token.rights, expires: None }.read(COUNT_MAX);
    let warn = |mistake: &GrantMistake| {
        tracing::warn!(name, %mistake, "a token of the ledger lets nobody in here");
    };
    granted.inspect_err(warn).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock};
    use crate::ledger::TokenRights;

    const NOW_US: i64 = 1_700_000_000_000_000;

    fn stored(name: &str, token_id: i64, roles: &[&str]) -> TokenInForce {
        let rights = TokenRights {
            roles: roles.iter().map(|&role| role.to_owned()).collect(),
            series: Vec::new(),
            projects: Vec::new(),
            count_max: None,
            requests_per_minute: None,
            speaks_for_people: false,
            expires_at_us: None,
        };
        let token = StoredToken {
            token_id,
            name: name.into(),
            rights,
            former_until_us: None,
            created_by: "boss".into(),
            created_at_us: NOW_US,
            revoked_by: None,
            revoked_at_us: None,
            last_used_at_us: None,
        };
        TokenInForce { token, sha256: hash_of(name), former_sha256: None }
    }

    fn tokens(clock: &Arc<ManualClock>, of_ledger: &[TokenInForce]) -> Tokens {
        let tokens = Tokens::new(Vec::new(), None, clock.clone());
        tokens.replace(of_ledger);
        tokens
    }

    #[test]
    fn a_former_secret_is_let_in_until_its_grace_is_over_and_a_revoked_one_never() {
        let clock = Arc::new(ManualClock::at(NOW_US));
        let mut rotated = stored("new", 1, &["caller"]);
        rotated.former_sha256 = Some(hash_of("old"));
        rotated.token.former_until_us = Some(NOW_US + 5);
        rotated.token.rights.expires_at_us = Some(NOW_US + 9);
        let tokens = tokens(&clock, &[rotated]);
        let who = |token: &str| tokens.admit(token).map(|identity| identity.name.to_string());
        assert_eq!((who("new"), who("old")), (Ok("new".into()), Ok("new".into())));
        assert_eq!(who("other"), Err(NotAdmitted::Unknown));
        clock.set(NOW_US + 5);
        assert_eq!((who("new"), who("old")), (Ok("new".into()), Err(NotAdmitted::Replaced)));
        clock.set(NOW_US + 9);
        assert_eq!(who("new"), Err(NotAdmitted::Expired));
        tokens.replace(&[]);
        assert_eq!(
            (who("new"), who("old")),
            (Err(NotAdmitted::Unknown), Err(NotAdmitted::Unknown))
        );
    }

    #[test]
    fn what_a_secret_is_let_in_by_names_its_row_and_a_former_one_manages_nothing() {
        let clock = Arc::new(ManualClock::at(NOW_US));
        let mut rotated = stored("new", 7, &["super-admin"]);
        rotated.former_sha256 = Some(hash_of("old"));
        rotated.token.former_until_us = Some(NOW_US + 5);
        let tokens = tokens(&clock, &[rotated]);
        let of = |token: &str| tokens.admit(token).expect("let in").let_in;
        assert_eq!(of("new"), LetIn::Token { token_id: 7, sha256: hash_of("new") });
        assert_eq!(of("old"), LetIn::FormerSecret);
    }

    #[test]
    fn what_another_version_wrote_and_this_one_cannot_read_lets_nobody_in() {
        let clock = Arc::new(ManualClock::at(NOW_US));
        let tokens =
            tokens(&clock, &[stored("a", 1, &["caller", "wizard"]), stored("b", 2, &["auditor"])]);
        assert_eq!(tokens.admit("a").err(), Some(NotAdmitted::Unknown));
        assert!(tokens.admit("b").is_ok());
    }

    #[test]
    fn a_use_is_written_once_and_survives_a_change_of_others() {
        let clock = Arc::new(ManualClock::at(NOW_US));
        let of_ledger = [stored("a", 1, &["caller"]), stored("b", 2, &["caller"])];
        let tokens = tokens(&clock, &of_ledger);
        tokens.admit("a").expect("let in");
        tokens.replace(&of_ledger);
        let fresh_now = || {
            let known = tokens.known();
            let lasts: Vec<_> = known.values().filter_map(|known| known.last.clone()).collect();
            let used = lasts.iter().filter_map(fresh);
            used.map(|(last, used)| {
                last.written_us.store(used.at_us, Ordering::Relaxed);
                (used.token_id, used.at_us)
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(fresh_now(), [(1, clock.now_us())]);
        assert_eq!(fresh_now(), []);
    }
}
