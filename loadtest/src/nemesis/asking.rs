//! One request of any caller: sent to one node after another until an answer decides it. Without
//! such an answer nothing is known of it.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use numerator::clock::{Clock as _, SystemClock};
use reqwest::Client;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use super::plan::NODES;
use super::progress::Progress;

/// After this time a caller asks another node.
const TIMEOUT: Duration = Duration::from_secs(4);

/// How long callers still ask for their last answer once the load is to end.
const FINISH_LIMIT: Duration = Duration::from_secs(60);

/// Pause of a caller that was refused.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// How long an answer that a caller lets pass is asked for again, in microseconds.
const PASSING_US: i64 = 10_000_000;

/// Where the nodes listen at present.
pub(super) type Addresses = RwLock<[String; NODES]>;

/// An answer that decides a request.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    /// Its status code.
    pub(super) status: u16,
    /// Its body.
    pub(super) body: Value,
    /// When the request was sent for the first time, in microseconds of UTC.
    pub(super) sent_us: i64,
    /// When the answer came, likewise.
    pub(super) at_us: i64,
}

impl Reply {
    /// Whether what was asked for is done.
    pub(super) fn is_well(&self) -> bool {
        matches!(self.status, 200 | 201)
    }

    /// A field that is a text; empty where there is none.
    pub(super) fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    /// The code of a problem; empty where it is none.
    pub(super) fn code(&self) -> &str {
        self.text("code")
    }
}

/// Sends the requests of a caller.
#[derive(Clone)]
pub(super) struct Asker {
    addresses: Arc<Addresses>,
    /// Where refusals and breaches are noted.
    pub(super) progress: Arc<Progress>,
    stop: watch::Receiver<bool>,
    client: Client,
}

impl Asker {
    /// A caller with connections of its own, one to each node.
    pub(super) fn new(
        addresses: &Arc<Addresses>,
        progress: &Arc<Progress>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let (addresses, progress) = (Arc::clone(addresses), Arc::clone(progress));
        let builder = testkit::client_builder().timeout(TIMEOUT).pool_max_idle_per_host(1);
        let client = builder.build().expect("a client without TLS");
        Asker { addresses, progress, stop, client }
    }

    /// Whether the load is to end.
    pub(super) fn has_ended(&self) -> bool {
        *self.stop.borrow()
    }

    /// Sends a request to `first`, then to the next nodes, until an answer decides it: none of 5xx,
    /// and for [`PASSING_US`] no problem whose code is in `passing`. `None` if the load ended.
    pub(super) async fn insist(
        &self,
        path: &str,
        body: &Value,
        first: usize,
        passing: &[&str],
    ) -> Option<Reply> {
        let sent_us = SystemClock.now_us();
        let ask = |node| async move {
            let (status, told) = self.post(node, path, body).await?;
            let at_us = SystemClock.now_us();
            let reply = Reply { status, body: told, sent_us, at_us };
            let is_over = at_us - sent_us > PASSING_US;
            match status < 500 && (is_over || !passing.contains(&reply.code())) {
                true => Ok(reply),
                false => Err(status.to_string()),
            }
        };
        self.ask_around(first, ask).await
    }

    /// Asks `first`, then the next nodes, until one gives what is asked for, or else says why not;
    /// `None` if the load ended.
    pub(super) async fn ask_around<T, F>(&self, first: usize, ask: impl Fn(usize) -> F) -> Option<T>
    where
        F: Future<Output = Result<T, String>>,
    {
        let given = async {
            let mut node = first;
            loop {
                match ask(node).await {
                    Ok(given) => return given,
                    Err(why) => self.progress.refused(why),
                }
                sleep(RETRY_PAUSE).await;
                node = (node + 1) % NODES;
            }
        };
        let ended = async {
            // An error means that the load has ended, and that no caller waits for an answer.
            let _ = self.stop.clone().wait_for(|stop| *stop).await;
            sleep(FINISH_LIMIT).await;
        };
        tokio::select! {
            given = given => Some(given),
            () = ended => None,
        }
    }

    /// Records an answer that no fault excuses.
    pub(super) fn breach(&self, what: &'static str, about: &str, reply: &Reply) {
        let Reply { status, body, .. } = reply;
        self.progress.breach(what, format!("{about}: {status} {body}"));
    }

    /// Asks once; why there is no answer.
    pub(super) async fn post(
        &self,
        node: usize,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value), String> {
        let url = {
            let addresses = self.addresses.read().expect("no holder of this lock panics");
            format!("{}{path}", addresses[node])
        };
        let why = |error: reqwest::Error| {
            (if error.is_timeout() { "no answer in time" } else { "no connection" }).to_owned()
        };
        let answer = self.client.post(url).json(body).send().await.map_err(why)?;
        let status = answer.status().as_u16();
        Ok((status, answer.json().await.map_err(why)?))
    }
}
