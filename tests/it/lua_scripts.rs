//! Each script alone on a real server: every word that it can answer, and its effects.
//!
//! Method: typed calls go through the client; damage is done with redis-cli, as a person would.

mod bench;
mod buckets;
mod guard;
mod issue;
mod lost_records;
mod open;
mod outbox;
mod records;
mod rescue;
mod seed_raise;
mod settle;
mod survey;
mod sweep;
