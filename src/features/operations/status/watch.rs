//! `status --watch`: the page again and again, until Ctrl-C, or until its reader is gone.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _, stdout};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::page::PageLine;
use super::{StatusArgs, gather};
use crate::clock::SharedClock;
use crate::config::{DurationText, Settings};
use crate::engine::reconciler::Stores;
use crate::terminal::words;

/// Shortest time between two pages: each queries ledger and Redis.
const PERIOD_MIN: Duration = Duration::from_millis(100);
/// Longest.
const PERIOD_MAX: Duration = Duration::from_secs(3_600);

/// Reads the period of a watch.
pub(super) fn period(text: &str) -> Result<DurationText, String> {
    let period: DurationText = text.parse()?;
    let (least, most) = (DurationText(PERIOD_MIN), DurationText(PERIOD_MAX));
    if (least..=most).contains(&period) {
        Ok(period)
    } else {
        Err(format!("{period} is out of bounds; write {least} to {most}"))
    }
}

/// Shows pages until the pipe is closed; Ctrl-C ends the process. For a ledger that does not
/// answer, the page says so.
pub(super) async fn watch(
    settings: &Settings,
    stores: &Stores,
    args: &StatusArgs,
    period: Duration,
) -> anyhow::Result<()> {
    loop {
        let next = Instant::now() + period;
        let lines = match gather(settings, stores, args).await {
            Ok(status) => status.lines(),
            Err(error) => vec![PageLine::trouble(&format!("{error:#}"))],
        };
        match show(&stores.clock, &lines) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        sleep_until(next).await;
    }
}

/// Shows one page: over the previous one on a terminal, else after it.
fn show(clock: &SharedClock, lines: &[PageLine]) -> io::Result<()> {
    let mut out = stdout().lock();
    let is_terminal = out.is_terminal();
    let title = format!("numerator status at {}", words::moment(clock.now_us()));
    // In one write, so that half a page is never visible.
    let mut page = String::new();
    // Overwritten lines are cleared one by one, and everything left below: nothing flickers.
    let (home, end_of_line, below) =
        if is_terminal { ("\u{1b}[H", "\u{1b}[K", "\u{1b}[J") } else { ("", "", "") };
    let _ = writeln!(page, "{home}{title}{end_of_line}");
    for line in lines {
        let _ = writeln!(page, "{}{end_of_line}", line.show(with_colours(is_terminal)));
    }
    page.push_str(if is_terminal { below } else { "\n" });
    out.write_all(page.as_bytes())?;
    out.flush()
}

/// Colours are for terminals, unless they are disabled (`NO_COLOR`).
pub(super) fn with_colours(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
