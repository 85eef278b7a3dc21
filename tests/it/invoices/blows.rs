//! What invoices rely on, and the blows to it: processes that are killed, a server that restarts,
//! connections that end, after a drawn number of the application's steps.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use testkit::postgres::Postgres;
use testkit::service::Service;

use crate::deployment::Deployment;
use crate::load::is_long;

/// The schema of the ledger, the only one in this deployment.
const LEDGER: &str = "ledger";

/// Blows of a test, and of its long form, about.
const BLOWS: [usize; 2] = [8, 32];

/// How long the service takes for an answer at most: a call during a restart ends soon.
const HTTP: &str = "time_limit = \"4s\"\n";

/// Something that fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Blow {
    /// The service is killed and starts again.
    Service,
    /// The database server is killed and starts again.
    Postgres,
    /// Both are killed at once.
    Both,
    /// The connections of the application end.
    Callers,
}

/// Where the service listens: another place after each start.
#[derive(Clone, Debug)]
pub(super) struct Address(Arc<Mutex<String>>);

impl Address {
    /// The URL of a path.
    pub(super) fn of(&self, path: &str) -> String {
        format!("{}{path}", self.0.lock().unwrap())
    }

    fn change(&self, url: &str) {
        url.clone_into(&mut self.0.lock().unwrap());
    }
}

/// The servers: a ledger with a gapless series `INV`, and a service on it.
pub(super) struct Stage {
    pub(super) postgres: Postgres,
    pub(super) deployment: Deployment,
    pub(super) address: Address,
    service: Service,
}

impl Stage {
    pub(super) fn set() -> Self {
        let postgres = Postgres::start();
        let mut deployment = Deployment::new(&postgres.url(LEDGER), None);
        deployment.http = HTTP.into();
        let gapless = deployment.series_file("INV", "I-{SEQ:6}", "policy = \"gapless\"");
        deployment.apply(&[gapless]);
        let service = deployment.serve();
        let address = Address(Arc::new(Mutex::new(service.url.clone())));
        Stage { postgres, deployment, address, service }
    }

    /// Strikes while the application makes its steps, of which there are about as many as
    /// `expected`. Ends with the last sender.
    pub(super) fn strike(
        mut self,
        steps: &Receiver<()>,
        (blows, expected): (&[Blow], usize),
        mut random: Rng,
    ) -> Self {
        let between = (expected / BLOWS[usize::from(is_long())]).max(1);
        let mut round = Vec::new();
        let mut count = 0;
        loop {
            for _ in 0..random.usize(1..2 * between) {
                if steps.recv().is_err() {
                    println!("{count} blows");
                    return self;
                }
            }
            if round.is_empty() {
                round.extend_from_slice(blows);
                random.shuffle(&mut round);
            }
            let blow = round.pop().unwrap();
            self.suffer(blow);
            count += 1;
            // What was done meanwhile brings the next one no nearer.
            steps.try_iter().for_each(drop);
        }
    }

    fn suffer(&mut self, blow: Blow) {
        if matches!(blow, Blow::Service | Blow::Both) {
            self.service.kill();
        }
        if matches!(blow, Blow::Postgres | Blow::Both) {
            self.postgres.restart();
        }
        if matches!(blow, Blow::Service | Blow::Both) {
            self.start();
        }
        if blow == Blow::Callers {
            let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                       where usename = 'shop'";
            self.postgres.sql(end);
        }
    }

    /// Both again, in this thread: a server ends with the thread that started it, and the one that
    /// struck is over.
    pub(super) fn start_again(&mut self) {
        self.suffer(Blow::Both);
    }

    fn start(&mut self) {
        self.service = self.deployment.serve();
        self.address.change(&self.service.url);
    }

    /// Replaces the service as an upgrade does, and looks for faults of the ledger.
    pub(super) fn verify(&mut self) {
        let next = self.deployment.serve();
        let service = std::mem::replace(&mut self.service, next);
        self.address.change(&self.service.url);
        assert!(service.terminate(), "the service ends well");
        self.deployment.assert_clean();
    }

    /// The content of the service's log, for the text of a failure.
    pub(super) fn log(&self) -> String {
        self.service.log()
    }
}
