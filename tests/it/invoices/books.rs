//! What the ledger has at the end, and how it must agree with the application's invoices.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use testkit::eventually::eventually;
use testkit::load;
use testkit::postgres::Postgres;

use super::blows::Stage;
use super::{document, retryable};

/// How soon nothing is reserved or confirmed any more: what is abandoned is over in seconds, and a
/// sweep follows.
const SWEPT_LIMIT: Duration = Duration::from_secs(30);

/// How soon a service that was replaced just now answers.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Differences that a failure shows.
const SHOWN_MAX: usize = 10;

/// The record of the ledger's only counter.
#[derive(Debug, Default)]
struct Books {
    /// The document of each number.
    documents: BTreeMap<String, String>,
    /// The values that were issued.
    issued: BTreeSet<u64>,
    /// The values that came back, and are the next to be issued.
    returned: BTreeSet<u64>,
    /// The highest value that was ever reserved or issued.
    taken: u64,
}

impl Books {
    fn read(postgres: &Postgres) -> Self {
        let taken = postgres.sql("select taken from ledger.counter").parse().unwrap();
        let mut books = Books { taken, ..Books::default() };
        let journal = "select number, coalesce(document_id, ''), first_value, \
                       coalesce(last_value, first_value) from ledger.journal \
                       where number is not null";
        postgres.rows(journal, |row| {
            let [number, document, first, last] = row else { panic!("{row:?}") };
            let value: u64 = first.parse().unwrap();
            assert_eq!((first, *number), (last, &*format!("I-{value:06}")));
            assert!(books.issued.insert(value), "{number} is in the journal twice");
            books.documents.insert((*number).to_owned(), (*document).to_owned());
        });
        let gaps = "select first_value, last_value, reason from ledger.gap";
        postgres.rows(gaps, |row| {
            let [first, last, reason] = row else { panic!("{row:?}") };
            assert_eq!(*reason, "returned", "a hole from {first} to {last}");
            books.returned.extend(first.parse::<u64>().unwrap()..=last.parse().unwrap());
        });
        books
    }

    /// Every value that was ever taken is issued, or is the next to be issued.
    fn must_have_no_hole(&self) {
        let both: Vec<_> = self.issued.intersection(&self.returned).take(SHOWN_MAX).collect();
        assert!(both.is_empty(), "issued, and to be issued: {both:?}");
        let holes: Vec<u64> = (1..=self.taken)
            .filter(|value| !self.issued.contains(value) && !self.returned.contains(value))
            .take(SHOWN_MAX)
            .collect();
        assert!(holes.is_empty(), "nowhere, of {}: {holes:?}", self.taken);
        let highest = self.issued.last().max(self.returned.last()).copied().unwrap_or(0);
        assert_eq!(highest, self.taken, "a value above what was taken, or none at its end");
    }

    /// Each invoice's number is its document's, and no number is of anything else.
    fn must_be_of(&self, invoices: &[(i64, String)]) {
        let mut documents = BTreeMap::new();
        for (id, number) in invoices {
            let other = documents.insert(number.clone(), document(*id));
            assert_eq!(other, None, "{number} is on two invoices, the second of them {id}");
        }
        let lost: Vec<_> = documents
            .iter()
            .filter(|(number, document)| self.documents.get(*number) != Some(*document))
            .take(SHOWN_MAX)
            .collect();
        assert!(lost.is_empty(), "on an invoice, and not its document's: {lost:?}");
        let strange: Vec<_> = self
            .documents
            .iter()
            .filter(|(number, _)| !documents.contains_key(*number))
            .take(SHOWN_MAX)
            .collect();
        assert!(strange.is_empty(), "issued, and on no invoice: {strange:?}");
    }
}

/// The end of a test: the record and the invoices agree, and no number is missing, neither at first
/// nor once the values that came back are issued.
pub(super) async fn must_agree(stage: &mut Stage, invoices: &[(i64, String)]) {
    eventually(SWEPT_LIMIT, async || {
        let live = "select state, count(*) from ledger.reservation group by state";
        let live = stage.postgres.sql(live);
        if live.is_empty() { Ok(()) } else { Err(format!("{live}: {}", stage.log())) }
    })
    .await;
    stage.verify();
    let books = Books::read(&stage.postgres);
    books.must_be_of(invoices);
    books.must_have_no_hole();
    println!("{} issued, {} to be issued", books.issued.len(), books.returned.len());
    let client = testkit::client();
    let mut numbers = Vec::new();
    for index in 0..books.returned.len() {
        numbers.push(take(stage, &client, &format!("fill-{index}")).await);
    }
    let expected: Vec<_> = books.returned.iter().map(|value| format!("I-{value:06}")).collect();
    assert_eq!(numbers, expected, "the lowest of those that came back is the next");
    stage.verify();
    let filled = Books::read(&stage.postgres);
    filled.must_have_no_hole();
    assert_eq!((filled.returned.len(), filled.taken), (0, books.taken), "nothing is left over");
}

/// Takes a number without a reservation.
async fn take(stage: &Stage, client: &reqwest::Client, document: &str) -> String {
    let url = stage.address.of(&format!("/api/v1/documents/{document}/generate-number"));
    let body = serde_json::json!({ "type": "INV" });
    let taken = eventually(ANSWER_LIMIT, async || {
        let (status, answer) = load::post(client, &url, &body).await;
        if matches!(status, 200 | 201) && !answer.is_null() {
            Ok(answer)
        } else {
            Err(retryable(status, &answer))
        }
    });
    super::word(&taken.await, "document_number")
}
