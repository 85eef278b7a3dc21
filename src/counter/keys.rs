//! Builds every Redis key. All keys of a partition share the hash tag `{<partition>}`.

/// The key builder of one deployment.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The prefix, `nbr` by default; no braces.
    prefix: String,
}

impl Keys {
    /// A builder for a prefix that the settings have checked.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Keys { prefix: prefix.into() }
    }

    /// The prefix.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}
