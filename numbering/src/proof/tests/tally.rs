//! What becomes of random series. Each that is refused is refused in one of three ways: with two
//! requests, which are rendered; without, where brute force finds a collision; and without any
//! that either finds, which is a false refusal as far as brute force sees.

use std::cell::Cell;

use super::brute_force::cases_or;

/// What became of random series.
#[derive(Default)]
pub(super) struct Tally {
    proved: Cell<usize>,
    told: Cell<usize>,
    untold: Cell<usize>,
    unseen: Cell<usize>,
}

/// How many refusals of each kind there may be: one in so many random series at most.
pub(super) struct Bounds {
    /// Without a pair, though there is a collision.
    pub(super) untold: usize,
    /// Without any collision.
    pub(super) unseen: usize,
}

/// Beyond its bound each kind may have so many by chance, in few cases.
const CHANCE: usize = 3;

fn count(cell: &Cell<usize>) {
    cell.set(cell.get() + 1);
}

impl Tally {
    pub(super) fn proved(&self) {
        count(&self.proved);
    }

    /// Refused with a pair, which was rendered.
    pub(super) fn told(&self) {
        count(&self.told);
    }

    /// Refused without one; whether brute force finds a collision.
    pub(super) fn untold(&self, is_seen: bool) {
        count(if is_seen { &self.untold } else { &self.unseen });
    }

    /// A test that proves nothing, or refuses nothing, tells nothing.
    pub(super) fn tells(&self, cases: u32, bounds: &Bounds) {
        let [proved, told, untold, unseen] =
            [&self.proved, &self.told, &self.untold, &self.unseen].map(Cell::get);
        let all = format!(
            "{proved} proved; refused: {told} with a pair, {untold} without one, {unseen} without \
             any collision"
        );
        println!("{all}");
        let most = |one_in: usize| cases_or(cases) as usize / one_in + CHANCE;
        assert!(untold <= most(bounds.untold) && unseen <= most(bounds.unseen), "{all}");
        assert!(proved > 20 && told > 2, "{all}");
    }
}
