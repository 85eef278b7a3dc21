//! How far a long import is, for a person at a terminal; nothing is drawn anywhere else.

use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::ImportArgs;

/// A bar on stderr.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// A bar over the bytes of a list, or a count of the rows of tables.
    pub(super) fn start(args: &ImportArgs) -> Self {
        let bytes = Path::new(&args.source).metadata().map_or(0, |file| file.len());
        let (length, template) = if args.is_of_counters() {
            (None, "{spinner} {human_pos} rows, {elapsed}")
        } else {
            (Some(bytes), "{wide_bar} {bytes} of {total_bytes}, {eta} left")
        };
        // Hidden by itself where stderr is no terminal.
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// So much is done.
    pub(super) fn tell(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Takes the bar away: the report follows.
    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
