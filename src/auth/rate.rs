//! The class of rate limit of an identity.

/// How often an identity may ask for numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRate {
    /// Unlimited: a service without a limit of its own.
    Free,
    /// So many requests a minute: a service with one.
    PerMinute(u64),
    /// As often as any person may.
    Person,
}
