//! Things that went wrong: all are counted, and a few are shown.

/// How many are shown.
const SHOWN_MAX: usize = 5;

/// Things of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Examples {
    /// How many there are.
    pub(crate) count: u64,
    /// Some of them.
    pub(crate) shown: Vec<String>,
}

impl Examples {
    /// Notes one.
    pub(crate) fn note(&mut self, example: impl FnOnce() -> String) {
        self.count += 1;
        if self.shown.len() < SHOWN_MAX {
            self.shown.push(example());
        }
    }

    /// Adds those of another list.
    pub(crate) fn extend(&mut self, other: Examples) {
        self.count += other.count;
        self.shown.extend(other.shown);
        self.shown.truncate(SHOWN_MAX);
    }

    /// One line for all of them; `None` if there are none.
    pub(crate) fn told(&self, what: &str) -> Option<String> {
        (self.count > 0).then(|| format!("{} {what}: {}", self.count, self.shown.join(", ")))
    }
}
