//! Callers that void numbers of the gapless series and take others in their place: repeated, and
//! two of them at once for one void number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use serde_json::json;
use tokio::time::sleep;

use super::asking::{Asker, Reply};
use super::holds::{Lapse, LinkTold, Span, TakenNumber, Told, VoidTold};
use super::orders::{GAPLESS, LINES, Received, TYPES};
use super::plan::NODES;

/// Where numbers are voided.
const VOID: &str = "/api/v1/document-numbering/numbers/void";

/// Why every number is void.
const REASON: &str = "drawn for a document of the drill that was given up";

/// A ledger that forgot the record of a number does not find it until it is journaled again.
const NOT_FOUND: [&str; 1] = ["number-not-found"];

/// How often a void that the ledger forgot is repeated.
const TRIES: usize = 3;

/// Pause between two numbers of a caller.
const PAUSE: Duration = Duration::from_millis(50);

/// One caller.
pub(super) struct Voider {
    pub(super) asker: Asker,
    pub(super) rng: Rng,
    /// The next document, of all callers together.
    pub(super) next: Arc<AtomicU64>,
    pub(super) told: Told,
}

impl Voider {
    /// Takes, voids and replaces until the load ends.
    pub(super) async fn run(mut self) -> Told {
        while !self.asker.has_ended() {
            let progress = Arc::clone(&self.asker.progress);
            let Some(_change) = progress.change() else {
                sleep(PAUSE).await;
                continue;
            };
            let document = self.document('v');
            let line = self.rng.u64(..LINES);
            if let Some(number) = self.take(&document, line, None).await
                && self.void(&number).await.is_some()
            {
                match self.rng.u32(..4) {
                    0 => {}
                    1 => self.replace_twice(&number, line).await,
                    _ => self.replace(&number, line).await,
                }
            }
            sleep(PAUSE).await;
        }
        self.told
    }

    fn document(&self, letter: char) -> String {
        format!("{letter}{:012}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn node(&mut self) -> usize {
        self.rng.usize(..NODES)
    }

    /// Asks for a number of a document, in the place of a void one or not.
    async fn ask_for(
        &self,
        document: &str,
        (line, node): (u64, usize),
        replaces: Option<&str>,
    ) -> Option<Reply> {
        let path = format!("/api/v1/documents/{document}/generate-number");
        let mut body =
            json!({ "type": TYPES[GAPLESS], "context": { "LINE": format!("{line:03}") } });
        if let Some(replaced) = replaces {
            body["replaces"] = replaced.into();
        }
        self.asker.insist(&path, &body, node, &NOT_FOUND).await
    }

    /// Takes a number; `None` if it does not come before the load ends, or is refused.
    async fn take(&mut self, document: &str, line: u64, replaces: Option<&str>) -> Option<String> {
        let node = self.node();
        let reply = self.ask_for(document, (line, node), replaces).await?;
        if !reply.is_well() {
            self.asker.breach("refusal that no fault excuses", document, &reply);
            return None;
        }
        self.keep(document, &reply)
    }

    /// Keeps the number of an answer, which is the document's from then on.
    fn keep(&mut self, document: &str, reply: &Reply) -> Option<String> {
        let number = reply.text("document_number").to_owned();
        if Received::place(&number).is_none() {
            self.asker.breach("answer that does not fit its request", document, reply);
            return None;
        }
        let (document, at_us) = (document.to_owned(), reply.at_us);
        self.told.taken.push(TakenNumber { document, number: number.clone(), at_us });
        Some(number)
    }

    /// Voids a number; some voids are repeated.
    async fn void(&mut self, number: &str) -> Option<VoidTold> {
        let body = json!({ "number": number, "reason": REASON });
        let mut told = None;
        for _ in 0..=u32::from(self.rng.u32(..4) == 0) {
            self.told.repeated += u64::from(told.is_some());
            let node = self.node();
            let reply = self.asker.insist(VOID, &body, node, &NOT_FOUND).await?;
            if NOT_FOUND.contains(&reply.code()) {
                self.lost(number, &reply);
                return None;
            }
            if !reply.is_well() || reply.text("document_number") != number {
                self.asker.breach("refusal that no fault excuses", number, &reply);
                return None;
            }
            told = Some(VoidTold { number: number.to_owned(), span: span_of(&reply) });
        }
        self.told.voids.extend(told.clone());
        told
    }

    /// Takes a number in the place of a void one.
    async fn replace(&mut self, number: &str, line: u64) {
        let document = self.document('w');
        for _ in 0..TRIES {
            let node = self.node();
            let reply = self.ask_for(&document, (line, node), Some(number)).await;
            let Some(reply) = reply else { return };
            match reply.code() {
                _ if reply.is_well() => return self.link(number, &document, &reply),
                "not-voided" => self.void_again(number, &reply).await,
                _ => return self.refused(number, &reply),
            }
        }
    }

    /// Two documents want to stand in the place of one void number: it is one of them.
    async fn replace_twice(&mut self, number: &str, line: u64) {
        let (one, other) = (self.document('w'), self.document('w'));
        let node = self.node();
        let replies = tokio::join!(
            self.ask_for(&one, (line, node), Some(number)),
            self.ask_for(&other, (line, (node + 1) % NODES), Some(number))
        );
        for (document, reply) in [(one, replies.0), (other, replies.1)] {
            let Some(reply) = reply else { continue };
            match reply.code() {
                _ if reply.is_well() => self.link(number, &document, &reply),
                // Of the two that were under way, this one was later: what it took is void.
                "already-replaced" if reply.text("number_taken") == "maybe" => {
                    if let Some(taken) = self.keep(&document, &reply) {
                        self.void(&taken).await;
                    }
                }
                "already-replaced" => {}
                "not-voided" => self.void_again(number, &reply).await,
                _ => self.refused(number, &reply),
            }
        }
    }

    /// A void that was answered is not known any more: only a ledger that went back forgets it.
    async fn void_again(&mut self, number: &str, reply: &Reply) {
        self.refused(number, reply);
        self.void(number).await;
    }

    /// Notes that the ledger has no record of a number that was answered.
    fn lost(&mut self, number: &str, reply: &Reply) {
        let taken = self.told.taken.iter().rev().find(|taken| taken.number == number);
        let from_us = taken.map_or(reply.sent_us, |taken| taken.at_us);
        let what = format!("{number}: {} {}", reply.status, reply.body);
        self.told.lapses.push(Lapse { what, span: Span { from_us, to_us: reply.at_us } });
    }

    /// Notes that the ledger does not know what it said of a void number.
    fn refused(&mut self, number: &str, reply: &Reply) {
        let voided = self.told.voids.iter().rev().find(|told| told.number == number);
        let from_us = voided.map_or(reply.sent_us, |told| told.span.from_us);
        let what = format!("{number}: {} {}", reply.status, reply.body);
        self.told.lapses.push(Lapse { what, span: Span { from_us, to_us: reply.at_us } });
    }

    /// Keeps a replacement.
    fn link(&mut self, number: &str, document: &str, reply: &Reply) {
        if let Some(by) = self.keep(document, reply) {
            let number = number.to_owned();
            self.told.links.push(LinkTold { number, by, span: span_of(reply) });
        }
    }
}

fn span_of(reply: &Reply) -> Span {
    Span { from_us: reply.sent_us, to_us: reply.at_us }
}
