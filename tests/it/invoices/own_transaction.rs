//! The application's table is in the ledger's database: an invoice and its confirmation are one
//! transaction. Its user has no other right in the ledger than to confirm and to cancel.

use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, raw_sql};
use testkit::eventually::eventually;
use testkit::postgres::Postgres;

use super::blows::{Address, Blow, Stage};
use super::books::must_agree;
use super::{Fate, Invoice, WORKERS, reserve, seeded, wanted};

/// How soon an invoice is settled, with all that is killed meanwhile.
const LIMIT: Duration = Duration::from_secs(120);

/// Steps of an invoice: reserved, confirmed in an open transaction.
const STEPS: usize = 2;

/// One in as many transactions loses its connection before its end.
const LOSES_ONE_IN: u8 = 20;

/// Roles as create.sql makes them; the application's user, and its table, which lets one number be
/// on two invoices.
const SET_UP: &str = "
    create role numerator_writer nologin;
    create role numerator_archiver nologin;
    create role numerator_auditor nologin;
    create role numerator_backup nologin;
    create role numerator_confirmer nologin;
    create role shop login;
    grant numerator_confirmer to shop;
    create schema shop authorization shop;
    create table shop.invoice (id bigint primary key, number text not null);
    alter table shop.invoice owner to shop";

const INSERT: &str =
    "insert into shop.invoice (id, number) values ($1, ledger.confirm($2::uuid, $3))";

/// Why a try came to no end.
type Failure = Box<dyn std::error::Error>;

/// One of those who make invoices.
struct Clerk {
    client: reqwest::Client,
    address: Address,
    url: String,
    /// None after a failure: nobody knows what became of its transaction.
    connection: Option<PgConnection>,
    steps: Sender<()>,
    random: Rng,
}

impl Clerk {
    /// Settles its share of the invoices.
    async fn work(mut self, invoices: Vec<Invoice>) {
        for invoice in invoices {
            eventually(LIMIT, async || self.settle(invoice).await).await;
        }
    }

    /// One try.
    ///
    /// # Errors
    /// What kept it from its end; the next try begins at what the tables say.
    async fn settle(&mut self, invoice: Invoice) -> Result<(), Failure> {
        if self.is_saved(invoice).await? {
            return Ok(());
        }
        let held = reserve(&self.client, &self.address, invoice).await?;
        self.step();
        if held.is_issued {
            // Since the first look, an earlier try has committed after all.
            let is_saved = self.is_saved(invoice).await?;
            assert!(is_saved, "{} is confirmed without its invoice: {invoice:?}", held.number);
            return Ok(());
        }
        match invoice.fate {
            Fate::Forgotten => Ok(()),
            Fate::GivenUp => self.give_up(invoice, &held.id).await,
            Fate::Kept => self.save(invoice, &held.id).await,
        }
    }

    async fn is_saved(&mut self, invoice: Invoice) -> Result<bool, Failure> {
        let mut connection = self.take().await?;
        let number: Option<String> =
            sqlx::query_scalar("select number from shop.invoice where id = $1")
                .bind(invoice.id)
                .fetch_optional(&mut connection)
                .await?;
        self.connection = Some(connection);
        Ok(number.is_some())
    }

    async fn save(&mut self, invoice: Invoice, reservation: &str) -> Result<(), Failure> {
        let mut connection = self.insert(invoice, reservation).await?;
        if self.random.u8(..LOSES_ONE_IN) == 0 {
            drop(connection);
            return Err("its connection is lost".into());
        }
        raw_sql("commit").execute(&mut connection).await?;
        self.connection = Some(connection);
        Ok(())
    }

    /// Rolls back, and cancels in every other case.
    async fn give_up(&mut self, invoice: Invoice, reservation: &str) -> Result<(), Failure> {
        let mut connection = self.insert(invoice, reservation).await?;
        raw_sql("rollback").execute(&mut connection).await?;
        if self.random.bool() {
            sqlx::query("select ledger.cancel($1::uuid, 'given up')")
                .bind(reservation.to_owned())
                .execute(&mut connection)
                .await?;
        }
        self.connection = Some(connection);
        Ok(())
    }

    /// The invoice with its number, in a transaction that is still open.
    async fn insert(
        &mut self,
        invoice: Invoice,
        reservation: &str,
    ) -> Result<PgConnection, Failure> {
        let mut connection = self.take().await?;
        raw_sql("begin").execute(&mut connection).await?;
        sqlx::query(INSERT)
            .bind(invoice.id)
            .bind(reservation.to_owned())
            .bind(invoice.document())
            .execute(&mut connection)
            .await?;
        self.step();
        Ok(connection)
    }

    async fn take(&mut self) -> Result<PgConnection, Failure> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => Ok(PgConnection::connect(&self.url).await?),
        }
    }

    fn step(&self) {
        // The thread that strikes has said why it ended before.
        let _ = self.steps.send(());
    }
}

/// The role's rights are those of the shipped file.
fn set_up(stage: &Stage) -> String {
    stage.postgres.sql(SET_UP);
    stage.deployment.ok(&["migrate", "--roles"]);
    format!("postgres://shop@127.0.0.1:{}/postgres?sslmode=disable", stage.postgres.port())
}

fn saved(postgres: &Postgres) -> Vec<(i64, String)> {
    let mut invoices = Vec::new();
    postgres.rows("select id, number from shop.invoice", |row| {
        let [id, number] = row else { panic!("{row:?}") };
        invoices.push((id.parse().unwrap(), (*number).to_owned()));
    });
    invoices
}

/// Goal: an invoice and its number are committed together or not at all, and no number is missing,
/// whatever is killed. Method: a tenth rolls back, a tenth never confirms; connections, the service
/// and the database are killed; then each number must have its invoice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invoice_and_its_number_are_one_transaction_whatever_is_killed() {
    let mut random = seeded();
    let stage = Stage::set();
    let url = set_up(&stage);
    let invoices = Invoice::drawn(wanted(), &mut random);
    let (steps, made) = mpsc::channel();
    let mut shares = vec![Vec::new(); WORKERS];
    for (index, invoice) in invoices.iter().enumerate() {
        shares[index % WORKERS].push(*invoice);
    }
    let clerk = |random: Rng| Clerk {
        client: testkit::client(),
        address: stage.address.clone(),
        url: url.clone(),
        connection: None,
        steps: steps.clone(),
        random,
    };
    let work: Vec<_> = shares.into_iter().map(|share| clerk(random.fork()).work(share)).collect();
    drop(steps);
    let expected = invoices.len() * STEPS;
    let striking = std::thread::spawn(move || {
        let blows = [Blow::Service, Blow::Postgres, Blow::Both, Blow::Callers];
        stage.strike(&made, (&blows[..], expected), random)
    });
    join_all(work).await;
    let mut stage = striking.join().expect("what is killed starts again");
    stage.start_again();
    let saved = saved(&stage.postgres);
    let kept = invoices.iter().filter(|invoice| invoice.fate == Fate::Kept);
    assert_eq!(saved.len(), kept.count(), "invoices that were to be kept");
    must_agree(&mut stage, &saved).await;
}
