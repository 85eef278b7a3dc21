//! Takes numbers and remembers them: the workers that take, the journal after the answers, the
//! repair after a fault, this process as a node, and the sources that it asks. Knows no caller:
//! neither HTTP nor the command line.

pub mod allocator;
pub mod journal;
pub mod node;
pub mod reconciler;
pub mod sealing;
pub mod sources;
