//! Operating the service: start, health, migration, recovery, and inspection of a process.

pub mod acknowledge;
pub mod doctor;
pub mod drain;
pub mod event_query;
pub mod event_routes;
pub mod events;
pub mod fallback;
pub mod migrate;
pub mod ready;
pub mod reconcile;
pub(crate) mod rejected;
pub(crate) mod restored;
pub mod status;
pub mod verify;
