//! What every part of `numerator` stands on: the [`clock`], the identity of a process ([`node`]),
//! which [`hosts`] are this machine, who did something ([`actor`]), the form
//! of its loops and waits ([`task`], [`backoff`]), what it counts ([`metrics`]), and how many lines
//! refusals may have ([`refusals`]). It knows no other part, and nothing of numbers.

pub mod actor;
pub mod backoff;
pub mod clock;
pub mod hosts;
pub mod metrics;
pub mod node;
pub mod owned;
pub mod refusals;
pub mod task;
