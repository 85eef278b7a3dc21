//! The application's table is in a database of its own: an invoice is saved as pending with its
//! reservation and number, confirmed over HTTP, and marked. Each start, and the application now and
//! then, confirms what is pending.

use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::future::join_all;
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
use testkit::load;
use tokio::time::{sleep, timeout};

use super::blows::{Address, Blow, Stage};
use super::books::must_agree;
use super::{Fate, Held, Invoice, RESERVATIONS, WORKERS, reserve, retryable, seeded, wanted, word};
use crate::load::is_long;

/// How soon all invoices are settled, with all that is killed meanwhile; in the long form, too.
const LIMITS: [Duration; 2] = [Duration::from_secs(200), Duration::from_secs(3_600)];

/// Steps of an invoice: reserved, confirmed.
const STEPS: usize = 2;

/// How long a run of the application lives at most, in milliseconds, before it dies.
const LIVES_MAX_MS: u64 = 2_000;

/// Between two runs of which the first was refused.
const PAUSE: Duration = Duration::from_millis(20);

/// One in as many invoices is left for a sweep to confirm, and as many are made between two sweeps.
const SWEPT_ONE_IN: u8 = 10;

/// One number may be on two invoices.
const TABLE: &str = "
    create table invoice (
        id integer primary key,
        state text not null check (state in ('draft', 'pending', 'issued', 'given-up')),
        reservation text,
        number text
    )";

/// Why a run ended before its invoices did.
type Failure = Box<dyn std::error::Error>;

/// The application: its table, and the way to the service. A process of it is a run.
struct Shop {
    client: reqwest::Client,
    address: Address,
    table: SqlitePool,
    invoices: Vec<Invoice>,
    steps: Sender<()>,
}

impl Shop {
    /// Runs until the share of one worker is settled; each run ends when it is refused, and dies
    /// at some moment otherwise.
    async fn live(&self, worker: usize, mut random: Rng) {
        let (started, limit) = (Instant::now(), LIMITS[usize::from(is_long())]);
        loop {
            let life = Duration::from_millis(random.u64(1..LIVES_MAX_MS));
            match timeout(life, self.run(worker, random.fork())).await {
                Ok(Ok(())) => return,
                Ok(Err(failure)) => {
                    assert!(started.elapsed() < limit, "not settled: {failure}");
                    sleep(PAUSE).await;
                }
                Err(_died) => assert!(started.elapsed() < limit, "each run dies"),
            }
        }
    }

    /// One run, which knows nothing but its table.
    async fn run(&self, worker: usize, mut random: Rng) -> Result<(), Failure> {
        self.sweep().await?;
        let is_own = |id: &i64| usize::try_from(*id).is_ok_and(|id| id % WORKERS == worker);
        let drafts = self.ids("draft").await?;
        for (index, id) in drafts.into_iter().filter(is_own).enumerate() {
            self.make(self.invoice(id)?, random.u8(..SWEPT_ONE_IN) == 0).await?;
            if index % usize::from(SWEPT_ONE_IN) == 0 {
                self.sweep().await?;
            }
        }
        self.sweep().await
    }

    /// Confirms what was left pending.
    async fn sweep(&self) -> Result<(), Failure> {
        for id in self.ids("pending").await? {
            self.settle(self.invoice(id)?).await?;
        }
        Ok(())
    }

    async fn make(&self, invoice: Invoice, is_left: bool) -> Result<(), Failure> {
        let held = reserve(&self.client, &self.address, invoice).await?;
        self.step();
        match invoice.fate {
            Fate::Kept => {
                self.save(invoice, &held).await?;
                if is_left { Ok(()) } else { self.settle(invoice).await }
            }
            Fate::GivenUp => {
                self.cancel(&held).await?;
                self.give_up(invoice).await
            }
            Fate::Forgotten => self.give_up(invoice).await,
        }
    }

    /// Confirms one that is pending; where its reservation has ended, another one takes its place.
    async fn settle(&self, invoice: Invoice) -> Result<(), Failure> {
        while let Some(held) = self.pending(invoice).await? {
            if self.is_confirmed(&held).await? {
                return self.mark(invoice, &held).await;
            }
            let next = reserve(&self.client, &self.address, invoice).await?;
            self.step();
            self.renew(invoice, &held, &next).await?;
        }
        Ok(())
    }

    /// Confirms a reservation; false where it has ended.
    async fn is_confirmed(&self, held: &Held) -> Result<bool, Failure> {
        let (status, answer) = self.act(held, "confirm", &json!({})).await;
        self.step();
        match status {
            200 if !answer.is_null() => {
                assert_eq!(word(&answer, "document_number"), held.number, "{held:?}: {answer}");
                Ok(true)
            }
            410 => Ok(false),
            _ => Err(retryable(status, &answer).into()),
        }
    }

    async fn cancel(&self, held: &Held) -> Result<(), Failure> {
        match self.act(held, "cancel", &json!({ "reason": "given up" })).await {
            (200, _) => Ok(()),
            (status, answer) => Err(retryable(status, &answer).into()),
        }
    }

    async fn act(&self, held: &Held, act: &str, body: &Value) -> (u16, Value) {
        let url = self.address.of(&format!("{RESERVATIONS}/{}/{act}", held.id));
        load::post(&self.client, &url, body).await
    }

    fn invoice(&self, id: i64) -> Result<Invoice, Failure> {
        let index = usize::try_from(id - 1)?;
        Ok(self.invoices[index])
    }

    fn step(&self) {
        // The thread that strikes has said why it ended before.
        let _ = self.steps.send(());
    }
}

/// Its table.
impl Shop {
    async fn opened(path: &Path, invoices: &[Invoice]) -> Result<SqlitePool, sqlx::Error> {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let options = options.journal_mode(SqliteJournalMode::Wal);
        let table = SqlitePool::connect_with(options).await?;
        let mut tx = table.begin().await?;
        sqlx::raw_sql(TABLE).execute(&mut *tx).await?;
        for invoice in invoices {
            sqlx::query("insert into invoice (id, state) values ($1, 'draft')")
                .bind(invoice.id)
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await?;
        Ok(table)
    }

    async fn ids(&self, state: &str) -> Result<Vec<i64>, Failure> {
        let ids = sqlx::query_scalar("select id from invoice where state = $1 order by id")
            .bind(state.to_owned())
            .fetch_all(&self.table)
            .await?;
        Ok(ids)
    }

    async fn save(&self, invoice: Invoice, held: &Held) -> Result<(), Failure> {
        let save = "update invoice set state = 'pending', reservation = $2, number = $3 \
                    where id = $1 and state = 'draft'";
        sqlx::query(save)
            .bind(invoice.id)
            .bind(held.id.clone())
            .bind(held.number.clone())
            .execute(&self.table)
            .await?;
        Ok(())
    }

    async fn give_up(&self, invoice: Invoice) -> Result<(), Failure> {
        sqlx::query("update invoice set state = 'given-up' where id = $1 and state = 'draft'")
            .bind(invoice.id)
            .execute(&self.table)
            .await?;
        Ok(())
    }

    async fn pending(&self, invoice: Invoice) -> Result<Option<Held>, Failure> {
        let pending = "select reservation, number from invoice \
                       where id = $1 and state = 'pending'";
        let row: Option<(String, String)> =
            sqlx::query_as(pending).bind(invoice.id).fetch_optional(&self.table).await?;
        Ok(row.map(|(id, number)| Held { id, number, is_issued: false }))
    }

    async fn mark(&self, invoice: Invoice, held: &Held) -> Result<(), Failure> {
        let mark = "update invoice set state = 'issued' where id = $1 and reservation = $2";
        sqlx::query(mark).bind(invoice.id).bind(held.id.clone()).execute(&self.table).await?;
        Ok(())
    }

    /// Another run may have done the same, or more, meanwhile.
    async fn renew(&self, invoice: Invoice, held: &Held, next: &Held) -> Result<(), Failure> {
        let renew = "update invoice set reservation = $3, number = $4 \
                     where id = $1 and state = 'pending' and reservation = $2";
        sqlx::query(renew)
            .bind(invoice.id)
            .bind(held.id.clone())
            .bind(next.id.clone())
            .bind(next.number.clone())
            .execute(&self.table)
            .await?;
        Ok(())
    }
}

async fn issued(table: &SqlitePool) -> Vec<(i64, String)> {
    let issued = "select id, number from invoice where state = 'issued'";
    sqlx::query_as(issued).fetch_all(table).await.unwrap()
}

/// Goal: each invoice has its number alone, and no number is missing, though no transaction spans
/// the ledger and the application's database. Method: the application dies at any moment, as do the
/// service and the ledger's database; a tenth is given up, a tenth forgotten; then each number must
/// have its invoice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pending_invoice_gets_its_number_though_its_database_is_another_one() {
    let mut random = seeded();
    let stage = Stage::set();
    let invoices = Invoice::drawn(wanted(), &mut random);
    let kept = invoices.iter().filter(|invoice| invoice.fate == Fate::Kept).count();
    let expected = invoices.len() * STEPS;
    let (steps, made) = mpsc::channel();
    let table = Shop::opened(&stage.deployment.path("shop.db"), &invoices).await.unwrap();
    let address = stage.address.clone();
    let shop = Shop { client: testkit::client(), address, table, invoices, steps };
    let mut lives = random.fork();
    let striking = std::thread::spawn(move || {
        let blows = [Blow::Service, Blow::Postgres, Blow::Both];
        stage.strike(&made, (&blows[..], expected), random)
    });
    join_all((0..WORKERS).map(|worker| shop.live(worker, lives.fork()))).await;
    let Shop { table, steps, .. } = shop;
    drop(steps);
    let mut stage = striking.join().expect("what is killed starts again");
    stage.start_again();
    let issued = issued(&table).await;
    must_agree(&mut stage, &issued).await;
    assert_eq!(issued.len(), kept, "invoices that were to be kept");
}
