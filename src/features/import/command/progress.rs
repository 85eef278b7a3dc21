//! The progress of a long import, for a person at a terminal; nothing is drawn anywhere else.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use numbering::escaped;

use crate::features::import::ListFile;

/// A bar on stderr. It is removed with its value: report or error follow.
pub(super) struct Progress {
    bar: ProgressBar,
    /// The name of the source, in displayable form.
    name: String,
}

impl Progress {
    /// A bar over the bytes of a list, or a count of the rows of tables.
    pub(super) fn start(list: Option<&ListFile>) -> Self {
        let (length, template) = match list {
            None => (None, "{spinner} {msg}: {human_pos} rows, {elapsed}"),
            Some(list) => {
                (Some(list.bytes()), "{msg} {wide_bar} {bytes} of {total_bytes}, {eta} left")
            }
        };
        // Hidden automatically if stderr is not a terminal.
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let name = list.map_or_else(|| "tables".to_owned(), |list| escaped(list.name()).into());
        bar.set_message(format!("checking {name}"));
        Progress { bar, name }
    }

    /// So much is done.
    pub(super) fn tell(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// The checked source is imported now.
    pub(super) fn go_on_to_import(&self) {
        self.bar.reset();
        self.bar.set_message(format!("importing {}", self.name));
    }

    /// Takes the bar away: the report follows.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
