//! Things that went wrong: all of them are counted, and a few are shown.

/// How many are shown.
const SHOWN_MAX: usize = 5;

/// Things of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Examples {
    count: u64,
    shown: Vec<String>,
}

impl Examples {
    /// Notes one.
    pub(crate) fn note(&mut self, example: impl FnOnce() -> String) {
        self.count += 1;
        if self.shown.len() < SHOWN_MAX {
            self.shown.push(example());
        }
    }

    /// Takes others over.
    pub(crate) fn extend(&mut self, other: Examples) {
        self.count += other.count;
        self.shown.extend(other.shown);
        self.shown.truncate(SHOWN_MAX);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Some of them.
    pub(crate) fn shown(&self) -> &[String] {
        &self.shown
    }

    /// One line for all of them; none where there is none.
    pub(crate) fn told(&self, what: &str) -> Option<String> {
        (self.count > 0).then(|| format!("{} {what}: {}", self.count, self.shown.join(", ")))
    }
}
