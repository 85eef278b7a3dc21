//! What every part of `numerator` builds on: the [`clock`], the identity of a process ([`node`]),
//! which [`hosts`] are this machine, who did something ([`actor`]), the form of background loops
//! and waits ([`task`], [`backoff`]), [`metrics`], and the bound on log lines of refusals
//! ([`refusals`]). It knows no other part, and nothing of numbers.

pub mod actor;
pub mod backoff;
pub mod clock;
pub mod hosts;
pub mod metrics;
pub mod node;
pub mod owned;
pub mod refusals;
pub mod task;
