//! Old rows of the journal in files that other programs read, and the way there: written, read
//! back, noted in the ledger, and only then do segments replace the rows. If it ends at any point,
//! nothing is lost: a row is in the ledger, or in a file that the ledger names.
//!
//! ```text
//!   rows ──▶ file.partial ──▶ read back ──▶ noted ──▶ file, manifest ──▶ segments ──▶ ended
//!            is removed if it ends here     ╰────── the next archiver continues it ──────╯
//! ```
//!
//! Decides nothing about numbers, and removes no row itself: the ledger's `statements/archiving.rs`
//! does, after it compared it with the file. Deletes no file that the ledger names.

mod columns;
pub mod command;
mod counting;
mod folder;
mod looking;
mod manifest;
mod moving;
mod writing;

pub use counting::{Counted, unnamed};
pub use folder::{Folder, remove};
pub use looking::{Checked, Found, SealedPages, check, files, look, look_in, unnamed_text};
pub use manifest::{Manifest, ManifestError};
pub use moving::{Moved, Moving, STEP_ROWS, archive};
