//! The proof against traps, against every series that ships, and against brute force.

mod brute_force;
mod guards;
mod guards_between;
mod guards_days;
mod guards_rules;
mod guards_search;
mod guards_versions;
mod guards_written;
mod rare;
mod snowflakes;
mod table_traps;
mod table_worlds;
mod tables;
mod tally;
mod told;
mod traps;
mod values;
mod versions;
