//! The room as a whole: reference numbers, the reference page, refusals, and what must hold for
//! random series.

mod checks;
mod closed_periods;
mod costs;
mod fuzz;
mod linear;
mod mistakes;
mod periods;
mod properties;
mod reference_docs;
mod reference_numbers;
mod references;
mod refusals;
mod snowflakes;
mod sourced;
mod values;
mod vectors;
mod within_reach;
