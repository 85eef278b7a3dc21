//! What the callers that reserve and void were shown, did and were told; and whether two of them
//! ever held one number at the same time.
//!
//! Times are microseconds of UTC by the clock of the machine. Never reads the ledger: `life` does.

use super::orders::Received;

/// How a hold ended, as far as its caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing was done that may have been carried out: it ends with its time.
    Left,
    /// A cancellation was sent then: it may have ended from then on.
    Cancelled {
        /// When it was sent for the first time.
        sent_us: i64,
    },
    /// A confirmation was sent, and it is not known whether it was carried out. Without it the hold
    /// may have ended from then on.
    Unknown {
        /// The end of its time, or when a cancellation was sent.
        until_us: i64,
    },
    /// A confirmation was answered.
    Confirmed,
    /// A transaction of the caller that confirms it committed.
    Committed {
        /// When it was told to commit.
        sent_us: i64,
        /// When it said that it had.
        at_us: i64,
    },
}

/// A reservation, as its caller knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    /// Its id.
    pub(super) id: String,
    /// The document that holds the number.
    pub(super) document: String,
    /// The number.
    pub(super) number: String,
    /// When the answer that shows it came: the hold had begun by then.
    pub(super) shown_us: i64,
    /// When its time is over.
    pub(super) expires_us: i64,
    /// Its end.
    pub(super) end: End,
}

impl Hold {
    /// Until when the document certainly held the number; `is_issued` says that the ledger shows at
    /// the end that it has it.
    fn until_us(&self, is_issued: bool) -> i64 {
        match self.end {
            End::Confirmed | End::Committed { .. } => i64::MAX,
            End::Unknown { .. } if is_issued => i64::MAX,
            End::Unknown { until_us } => until_us.min(self.expires_us),
            End::Cancelled { sent_us } => sent_us.min(self.expires_us),
            End::Left => self.expires_us,
        }
    }

    /// What is certain of it.
    pub(super) fn holding(&self, is_issued: bool) -> Option<Holding> {
        let (document, until_us) = (self.document.clone(), self.until_us(is_issued));
        Holding::of(&self.number, document, self.shown_us..until_us)
    }
}

/// A number that was taken for a document at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TakenNumber {
    /// The document.
    pub(super) document: String,
    /// The number.
    pub(super) number: String,
    /// When the answer came.
    pub(super) at_us: i64,
}

/// Something that was asked for and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// When the request was sent.
    pub(super) from_us: i64,
    /// When its answer came.
    pub(super) to_us: i64,
}

impl Span {
    /// Whether both have a moment in common.
    pub(super) fn meets(self, other: Span) -> bool {
        self.from_us <= other.to_us && other.from_us <= self.to_us
    }
}

/// A void that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VoidTold {
    /// The void number.
    pub(super) number: String,
    /// From the request to the answer.
    pub(super) span: Span,
}

/// A replacement that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkTold {
    /// The void number.
    pub(super) number: String,
    /// The number in its place.
    pub(super) by: String,
    /// From the request to the answer.
    pub(super) span: Span,
}

/// An answer that only a ledger which went back in the time explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lapse {
    /// What was answered.
    pub(super) what: String,
    /// From the answer that it contradicts until it came.
    pub(super) span: Span,
}

/// Everything that these callers know.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Reservations.
    pub(super) holds: Vec<Hold>,
    /// Numbers that were taken to be voided, or in the place of void ones.
    pub(super) taken: Vec<TakenNumber>,
    /// Voids.
    pub(super) voids: Vec<VoidTold>,
    /// Replacements.
    pub(super) links: Vec<LinkTold>,
    /// Answers that contradict earlier ones.
    pub(super) lapses: Vec<Lapse>,
    /// Requests that were repeated after their answer.
    pub(super) repeated: u64,
}

impl Told {
    /// Adds what others know.
    pub(super) fn add(&mut self, other: Told) {
        self.holds.extend(other.holds);
        self.taken.extend(other.taken);
        self.voids.extend(other.voids);
        self.links.extend(other.links);
        self.lapses.extend(other.lapses);
        self.repeated += other.repeated;
    }
}

/// The time in which a document certainly held a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holding {
    /// The counter, among those of all series, and the value.
    place: (u64, u64),
    /// The document.
    document: String,
    from_us: i64,
    until_us: i64,
}

impl Holding {
    /// Of a number of the drill; `None` if it is none.
    pub(super) fn of(number: &str, document: String, time: std::ops::Range<i64>) -> Option<Self> {
        Some(Holding::at(Received::place(number)?, document, time))
    }

    /// Of a value of a counter.
    pub(super) fn at(place: (u64, u64), document: String, time: std::ops::Range<i64>) -> Self {
        Holding { place, document, from_us: time.start, until_us: time.end }
    }

    /// Both, in words.
    fn told_with(&self, other: &Holding) -> String {
        let number = Received::text(self.place.0, self.place.1);
        let one = |held: &Holding| {
            let end = match held.until_us {
                i64::MAX => "for good".to_owned(),
                until_us => format!("until {until_us}"),
            };
            format!("{} from {} {end}", held.document, held.from_us)
        };
        format!("{number}: {}; {}", one(self), one(other))
    }
}

/// Pairs of documents that held one value at the same time, in words.
pub(super) fn overlaps(mut all: Vec<Holding>) -> Vec<String> {
    all.retain(|held| held.from_us < held.until_us);
    all.sort_unstable_by(|one, other| {
        (one.place, one.from_us, &one.document).cmp(&(other.place, other.from_us, &other.document))
    });
    let mut found = Vec::new();
    let mut before: Option<Holding> = None;
    for held in all {
        let longest = before.take().filter(|before| before.place == held.place);
        if let Some(before) = &longest
            && before.until_us > held.from_us
            && before.document != held.document
        {
            found.push(before.told_with(&held));
        }
        before = longest.filter(|before| before.until_us >= held.until_us).or(Some(held));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: &str = "D007-000000042";

    fn hold(document: &str, (shown_us, expires_us): (i64, i64), end: End) -> Hold {
        let (id, document) = (format!("id of {document}"), document.to_owned());
        Hold { id, document, number: NUMBER.to_owned(), shown_us, expires_us, end }
    }

    fn overlapping(holds: &[(Hold, bool)]) -> usize {
        let certain = |(hold, is_issued): &(Hold, bool)| hold.holding(*is_issued);
        overlaps(holds.iter().filter_map(certain).collect()).len()
    }

    #[test]
    fn a_number_that_two_documents_hold_at_once_is_found() {
        let first = (hold("r1", (10, 100), End::Left), false);
        assert_eq!(overlapping(&[first.clone(), (hold("r2", (99, 200), End::Left), false)]), 1);
        assert_eq!(overlapping(&[first.clone(), (hold("r2", (100, 200), End::Left), false)]), 0);
        assert_eq!(overlapping(&[first.clone(), (hold("r1", (50, 200), End::Left), false)]), 0);
        let behind_a_short_one = [
            (hold("r1", (10, 1_000), End::Left), false),
            (hold("r1", (20, 30), End::Left), false),
            (hold("r2", (500, 600), End::Left), false),
        ];
        assert_eq!(overlapping(&behind_a_short_one), 1);
    }

    #[test]
    fn a_hold_may_end_when_its_cancellation_is_sent_and_not_before() {
        let cancelled = (hold("r1", (10, 100), End::Cancelled { sent_us: 50 }), false);
        assert_eq!(overlapping(&[cancelled.clone(), (hold("r2", (49, 90), End::Left), false)]), 1);
        assert_eq!(overlapping(&[cancelled, (hold("r2", (50, 90), End::Left), false)]), 0);
    }

    #[test]
    fn a_confirmed_number_is_nobody_elses_ever_again() {
        let later = (hold("r2", (5_000, 6_000), End::Left), false);
        for (end, is_issued, wanted) in [
            (End::Confirmed, true, 1),
            // The ledger has forgotten it. The number is never another document's.
            (End::Committed { sent_us: 60, at_us: 61 }, false, 1),
            (End::Unknown { until_us: 100 }, true, 1),
            (End::Unknown { until_us: 100 }, false, 0),
            (End::Left, false, 0),
        ] {
            let first = (hold("r1", (10, 100), end), is_issued);
            assert_eq!(overlapping(&[first, later.clone()]), wanted, "{end:?} {is_issued}");
        }
        let taken = Holding::of(NUMBER, "d1".into(), 70..i64::MAX).expect("a number");
        let first = hold("r1", (10, 100), End::Left).holding(false).expect("a number");
        assert_eq!(overlaps(vec![taken, first]).len(), 1);
    }

    #[test]
    fn two_spans_meet_where_they_have_a_moment_in_common() {
        let span = |from_us, to_us| Span { from_us, to_us };
        assert!(span(1, 5).meets(span(5, 9)) && span(5, 9).meets(span(1, 5)));
        assert!(span(1, 9).meets(span(3, 4)) && span(3, 4).meets(span(1, 9)));
        assert!(!span(1, 4).meets(span(5, 9)) && !span(5, 9).meets(span(1, 4)));
    }
}
