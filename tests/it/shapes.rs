//! Redis in each of its shapes, under load of two nodes: whatever is promoted, killed or moved, no
//! number comes twice, each is in the journal, and issuing continues automatically.

mod cluster;
mod promotion;
mod sentinel;
