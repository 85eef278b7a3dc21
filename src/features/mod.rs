//! What users request of the program, one folder for one thing: its logic, its routes, its
//! commands. No feature uses another's routes or commands.

pub mod approvals;
pub mod archive;
pub mod assignments;
pub mod by_hand;
pub mod checkpoints;
pub mod exchange;
pub mod import;
pub mod lifecycle;
pub mod numbers;
pub mod operations;
pub mod reference;
pub mod register;
pub mod reservations;
pub mod series;
pub mod statement;
pub mod tokens;
