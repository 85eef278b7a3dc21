//! Checkpoints that were kept elsewhere, read line by line.

use std::io::BufRead;

use crate::engine::sealing::Line;
use crate::engine::sealing::PublicKey;
use crate::ledger::SignedCheckpoint;

/// Checkpoints that were kept elsewhere: lines of JSON in rising order.
pub struct Kept<R> {
    lines: R,
    next: Option<SignedCheckpoint>,
    line: u64,
    /// The keys that they show.
    pub keys: Vec<PublicKey>,
}

impl<R: BufRead> Kept<R> {
    /// Reads them from their first line on.
    ///
    /// # Errors
    /// A line that is not a checkpoint.
    pub fn read(lines: R) -> anyhow::Result<Self> {
        let mut kept = Kept { lines, next: None, line: 0, keys: Vec::new() };
        kept.advance()?;
        Ok(kept)
    }

    fn advance(&mut self) -> anyhow::Result<()> {
        let mut text = String::new();
        let before = self.next.take().map(|signed| signed.number);
        if self.lines.read_line(&mut text)? == 0 {
            return Ok(());
        }
        self.line += 1;
        let line: Option<Line> = serde_json::from_str(&text).ok();
        let Some(signed) = line.and_then(Line::signed) else {
            anyhow::bail!(
                "line {}: is no checkpoint; keep the lines as `numerator audit checkpoints` \
                 prints them",
                self.line
            );
        };
        if before.is_some_and(|before| before >= signed.number) {
            anyhow::bail!("line {}: checkpoint {} comes twice, or late", self.line, signed.number);
        }
        if let Some(key) = PublicKey::of(&signed.public_key).filter(|it| !self.keys.contains(it)) {
            self.keys.push(key);
        }
        self.next = Some(signed);
        Ok(())
    }

    /// The number of the next.
    pub(super) fn next(&self) -> Option<i64> {
        self.next.as_ref().map(|one| one.number)
    }

    /// The one with this number, if it was kept; those before it are left out.
    pub(super) fn of(&mut self, number: i64) -> anyhow::Result<Option<SignedCheckpoint>> {
        while self.next.as_ref().is_some_and(|next| next.number < number) {
            self.advance()?;
        }
        if self.next.as_ref().is_some_and(|next| next.number == number) {
            let found = self.next.clone();
            self.advance()?;
            return Ok(found);
        }
        Ok(None)
    }
}
