//! The comparison against brute force, against traps, and against every series in use.

mod acceptance;
mod brute_force;
mod notation;
mod plan;
mod saving;
mod series;
mod sourced;
mod traps;
mod versions;
