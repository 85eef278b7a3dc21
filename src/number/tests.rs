//! The room as a whole: reference numbers, refusals, and what must hold for random series.

mod properties;
mod reference;
mod refusals;
