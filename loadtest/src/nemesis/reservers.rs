//! Callers that reserve numbers of the gapless series, which plain callers use too, and confirm,
//! cancel or leave them: over HTTP, in transactions of their own, twice at once, late.
//!
//! Each reservation is ended once, so what its caller must be told is known. Nothing is judged here
//! but an answer that no fault excuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use numerator::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::asking::{Asker, Reply};
use super::holds::{End, Hold, Lapse, Span, Told};
use super::orders::{GAPLESS, LINES, Received, TYPES};
use super::plan::NODES;
use super::transactions::{Course, OwnTable, Transacted};

/// Where reservations are made.
const RESERVATIONS: &str = "/api/v1/document-numbering/reservations";

/// For how long a number is reserved, in seconds.
const TTL_S: std::ops::RangeInclusive<u64> = 1..=4;

/// How long a caller's transaction stays open once it has confirmed, at most, in milliseconds:
/// longer than the shortest reservation.
const OPEN_MAX_MS: u64 = 1_500;

/// How long a caller waits beyond the time of a reservation before it confirms it in vain.
const LATE: Duration = Duration::from_millis(50);

/// Pause between two reservations of a caller.
const PAUSE: Duration = Duration::from_millis(20);

/// One caller.
pub(super) struct Reserver {
    pub(super) asker: Asker,
    pub(super) rng: Rng,
    /// The next document, of all callers together.
    pub(super) next: Arc<AtomicU64>,
    /// Where its transactions save documents, if they can.
    pub(super) own_table: Option<OwnTable>,
    /// How far the ledger's clock is ahead of the machine's, in microseconds.
    pub(super) ahead_us: i64,
    pub(super) told: Told,
}

impl Reserver {
    /// Reserves and ends until the load ends.
    pub(super) async fn run(mut self) -> Told {
        while !self.asker.has_ended() {
            if let Some(hold) = self.reserve().await {
                let hold = self.end(hold).await;
                self.told.holds.push(hold);
            }
            sleep(PAUSE).await;
        }
        self.told
    }

    fn node(&mut self) -> usize {
        self.rng.usize(..NODES)
    }

    /// Reserves a number for a new document.
    async fn reserve(&mut self) -> Option<Hold> {
        let document = format!("r{:012}", self.next.fetch_add(1, Ordering::Relaxed));
        let (line, ttl_s) = (self.rng.u64(..LINES), self.rng.u64(TTL_S));
        let body = json!({
            "type": TYPES[GAPLESS], "context": { "LINE": format!("{line:03}") },
            "document_id": document, "ttl": format!("{ttl_s}s")
        });
        let hold = self.ask_for(&body, (&document, line)).await?;
        if self.rng.u32(..10) > 0 {
            return Some(hold);
        }
        let Some(again) = self.ask_for(&body, (&document, line)).await else {
            self.told.holds.push(hold);
            return None;
        };
        self.told.repeated += 1;
        if (&again.id, &again.number) != (&hold.id, &hold.number) {
            if again.shown_us < hold.expires_us {
                let what =
                    format!("{} was another, {}, when it was asked for again", hold.id, again.id);
                self.lapse(what, hold.shown_us, again.shown_us);
            }
            self.told.holds.push(hold);
        }
        Some(again)
    }

    async fn ask_for(&mut self, body: &Value, of: (&str, u64)) -> Option<Hold> {
        let node = self.node();
        let reply = self.asker.insist(RESERVATIONS, body, node, &[]).await?;
        let hold = self.read(&reply, of);
        if hold.is_none() {
            self.asker.breach("answer that does not fit its request", &body.to_string(), &reply);
        }
        hold
    }

    /// What an answer shows reserved for a document, if it fits.
    fn read(&self, reply: &Reply, (document, line): (&str, u64)) -> Option<Hold> {
        let expires: Timestamp = reply.text("expires_at").parse().ok()?;
        let (counter, _) = Received::place(reply.text("document_number"))?;
        let fits = reply.is_well()
            && reply.text("status") == "reserved"
            && reply.text("document_id") == document
            && counter == GAPLESS as u64 * LINES + line;
        fits.then(|| Hold {
            id: reply.text("reservation_id").to_owned(),
            document: document.to_owned(),
            number: reply.text("document_number").to_owned(),
            shown_us: reply.at_us,
            expires_us: expires.as_microsecond() - self.ahead_us,
            end: End::Left,
        })
    }

    /// Ends it in one of all ways.
    async fn end(&mut self, hold: Hold) -> Hold {
        match self.rng.u32(..100) {
            0..25 => self.confirm(hold).await,
            25..40 => self.cancel(hold).await,
            40..50 => hold,
            50..55 => self.confirm_late(hold).await,
            55..65 => self.confirm_twice(hold).await,
            65..72 => self.confirm_and_cancel(hold).await,
            of => match self.own_table.clone() {
                Some(own_table) if of < 78 => {
                    Box::pin(self.cancel_in_transaction(hold, &own_table)).await
                }
                Some(own_table) => Box::pin(self.confirm_in_transaction(hold, &own_table)).await,
                None => self.confirm(hold).await,
            },
        }
    }

    async fn act(&self, hold: &Hold, act: &str, node: usize) -> Option<Reply> {
        let path = format!("{RESERVATIONS}/{}/{act}", hold.id);
        self.asker.insist(&path, &json!({}), node, &[]).await
    }

    async fn confirm(&mut self, hold: Hold) -> Hold {
        let node = self.node();
        let reply = self.act(&hold, "confirm", node).await;
        let end = self.end_by(&hold, reply.as_ref());
        if end == End::Confirmed && self.rng.u32(..4) == 0 {
            let node = self.node();
            if let Some(again) = self.act(&hold, "confirm", node).await {
                self.told.repeated += 1;
                self.must_be_confirmed(&hold, &again);
            }
        }
        Hold { end, ..hold }
    }

    /// A repeated confirmation: only a ledger that went back, and has not been told again, does not
    /// know of the first one.
    fn must_be_confirmed(&mut self, hold: &Hold, again: &Reply) {
        if !again.is_well() || again.text("document_number") != hold.number {
            let what = format!("{} was confirmed, then {} {}", hold.id, again.status, again.body);
            self.lapse(what, hold.shown_us, again.at_us);
        }
    }

    /// What the answer to a confirmation says of a hold.
    fn end_by(&mut self, hold: &Hold, reply: Option<&Reply>) -> End {
        let unknown = End::Unknown { until_us: hold.expires_us };
        let Some(reply) = reply else { return unknown };
        if reply.is_well() {
            if reply.text("document_number") != hold.number || reply.text("status") != "issued" {
                self.asker.breach("answer that does not fit its request", &hold.id, reply);
            }
            if reply.sent_us > hold.expires_us {
                self.asker.breach("confirmed after its time was over", &hold.id, reply);
            }
            return End::Confirmed;
        }
        match reply.code() {
            "reservation-expired" if reply.at_us >= hold.expires_us => End::Left,
            "reservation-lost" | "reservation-not-found" => {
                let what = format!("{}: {}", hold.id, reply.code());
                self.lapse(what, hold.shown_us, reply.at_us);
                unknown
            }
            _ => {
                self.asker.breach("refusal that no fault excuses", &hold.id, reply);
                unknown
            }
        }
    }

    async fn cancel(&mut self, hold: Hold) -> Hold {
        let (sent_us, node) = (SystemClock.now_us(), self.node());
        let reply = self.act(&hold, "cancel", node).await;
        self.judge_cancel(&hold, reply.as_ref());
        if reply.is_some() && self.rng.u32(..4) == 0 {
            let node = self.node();
            let again = self.act(&hold, "cancel", node).await;
            self.told.repeated += u64::from(again.is_some());
            self.judge_cancel(&hold, again.as_ref());
        }
        Hold { end: End::Cancelled { sent_us }, ..hold }
    }

    /// Nobody confirms what is only cancelled.
    fn judge_cancel(&mut self, hold: &Hold, reply: Option<&Reply>) {
        let Some(reply) = reply else { return };
        match (reply.is_well(), reply.text("status"), reply.code()) {
            (true, "cancelled" | "expired", _) => {}
            (true, "lost", _) | (false, _, "reservation-not-found") => {
                let what = format!("{}: {} {}", hold.id, reply.status, reply.body);
                self.lapse(what, hold.shown_us, reply.at_us);
            }
            _ => self.asker.breach("refusal that no fault excuses", &hold.id, reply),
        }
    }

    /// Confirms what is over: it must be refused.
    async fn confirm_late(&mut self, hold: Hold) -> Hold {
        let left_us = hold.expires_us.saturating_sub(SystemClock.now_us());
        sleep(Duration::from_micros(u64::try_from(left_us).unwrap_or_default()) + LATE).await;
        self.confirm(hold).await
    }

    /// Two clients confirm it at once, at two nodes: both are answered alike.
    async fn confirm_twice(&mut self, hold: Hold) -> Hold {
        let node = self.node();
        let (one, other) = tokio::join!(
            self.act(&hold, "confirm", node),
            self.act(&hold, "confirm", (node + 1) % NODES)
        );
        let one_is_well = one.as_ref().is_some_and(Reply::is_well);
        let (told, second) = if one_is_well { (one, other) } else { (other, one) };
        let end = self.end_by(&hold, told.as_ref());
        if let (End::Confirmed, Some(second)) = (end, &second) {
            self.must_be_confirmed(&hold, second);
        }
        Hold { end, ..hold }
    }

    /// One client confirms it while another cancels it: one of them is refused.
    async fn confirm_and_cancel(&mut self, hold: Hold) -> Hold {
        let (node, sent_us) = (self.node(), SystemClock.now_us());
        let (confirmed, cancelled) = tokio::join!(
            self.act(&hold, "confirm", node),
            self.act(&hold, "cancel", (node + 1) % NODES)
        );
        let until_us = sent_us.min(hold.expires_us);
        let Some(confirmed) = confirmed else {
            return Hold { end: End::Unknown { until_us }, ..hold };
        };
        if confirmed.code() == "reservation-cancelled" {
            self.judge_cancel(&hold, cancelled.as_ref());
            return Hold { end: End::Cancelled { sent_us }, ..hold };
        }
        let end = match self.end_by(&hold, Some(&confirmed)) {
            End::Left => End::Cancelled { sent_us },
            End::Unknown { .. } => End::Unknown { until_us },
            end => end,
        };
        let both = cancelled.filter(|cancelled| cancelled.is_well() && end == End::Confirmed);
        if let Some(both) = both {
            let what = format!("{} was confirmed, and cancelled: {}", hold.id, both.body);
            self.lapse(what, hold.shown_us, both.at_us.max(confirmed.at_us));
        }
        Hold { end, ..hold }
    }

    /// What a transaction does.
    fn course(&mut self, names: bool) -> Course {
        let open_for = Duration::from_millis(self.rng.u64(..OPEN_MAX_MS));
        Course { names, open_for, commits: self.rng.u32(..4) > 0 }
    }

    /// Cancels it in a transaction; nobody confirms it.
    async fn cancel_in_transaction(&mut self, hold: Hold, own_table: &OwnTable) -> Hold {
        let (course, sent_us) = (self.course(false), SystemClock.now_us());
        let transacted = own_table.cancel(&hold.id, course).await;
        let end = match &transacted {
            Transacted::RolledBack => End::Left,
            Transacted::Committed { .. } | Transacted::Unknown => End::Cancelled { sent_us },
            Transacted::Refused { .. } => {
                self.judge_refusals(&hold, std::slice::from_ref(&transacted));
                End::Left
            }
        };
        Hold { end, ..hold }
    }

    /// Confirms it in a transaction that saves the document, or in two at once.
    async fn confirm_in_transaction(&mut self, hold: Hold, own_table: &OwnTable) -> Hold {
        let names = self.rng.bool();
        let (first, second) = (self.course(names), self.course(names));
        let is_twice = !names && self.rng.bool();
        let one = own_table.confirm(&hold.id, &hold.document, first);
        let ends = if is_twice {
            let other = own_table.confirm(&hold.id, &hold.document, second);
            let (one, other) = tokio::join!(one, other);
            vec![one, other]
        } else {
            vec![one.await]
        };
        let end = self.end_by_transactions(&hold, &ends);
        Hold { end, ..hold }
    }

    /// What is known of a hold after the transactions that confirmed it.
    fn end_by_transactions(&mut self, hold: &Hold, ends: &[Transacted]) -> End {
        let mut end = End::Left;
        for transacted in ends {
            if let Transacted::Committed { number, sent_us, at_us } = transacted {
                if *number != hold.number || matches!(end, End::Committed { .. }) {
                    let told = format!("{}: {number}, twice or not its own", hold.id);
                    self.asker.progress.breach("two transactions confirmed one number", told);
                }
                end = End::Committed { sent_us: *sent_us, at_us: *at_us };
            }
        }
        let is_unknown = ends.contains(&Transacted::Unknown);
        match end {
            End::Left if is_unknown => End::Unknown { until_us: hold.expires_us },
            End::Left => {
                self.judge_refusals(hold, ends);
                End::Left
            }
            end => end,
        }
    }

    /// A refusal of what nobody else confirmed: its time is over, or the ledger went back.
    fn judge_refusals(&mut self, hold: &Hold, ends: &[Transacted]) {
        for transacted in ends {
            if let Transacted::Refused { why, at_us } = transacted
                && *at_us < hold.expires_us
            {
                self.lapse(format!("{}: {why}", hold.id), hold.shown_us, *at_us);
            }
        }
    }

    /// Notes an answer that only a ledger which went back explains.
    fn lapse(&mut self, what: String, from_us: i64, to_us: i64) {
        self.told.lapses.push(Lapse { what, span: Span { from_us, to_us } });
    }
}
