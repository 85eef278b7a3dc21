//! The watch over how the Redis servers are set up: reports each hazard to the log and the ledger
//! once, when it is first seen, and the log when it is over. A server that is away meanwhile, or no
//! master, is no news when it comes back as it was. Never keeps anything from starting.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::engine::node::Context;
use crate::ledger::Event;
use crate::redis::{Checkup, ConfigWarning, Redis};
use crate::task::{Task, Ticks};

/// Time between two check-ups.
const CHECKUP_PERIOD: Duration = Duration::from_secs(60);
/// The same while a server does not answer, which is the rule at the start.
const CHECKUP_RETRY: Duration = Duration::from_secs(1);

/// Servers remembered; past it, former masters are forgotten.
const SERVERS_MAX: usize = 1_000;

/// The last answer of each server that ever answered.
#[derive(Debug, Default)]
struct Known {
    servers: HashMap<String, Said>,
    /// Those that do not answer now.
    silent: HashSet<String>,
}

/// Hazards of one server, and what it did not answer.
#[derive(Debug, Default)]
struct Said {
    config_warnings: HashSet<ConfigWarning>,
    unchecked: HashSet<String>,
}

/// Starts the watch.
pub(crate) fn watch_config(context: Arc<Context>, redis: Redis) -> Task {
    Task::start("hazards", move |stop| async move {
        let mut ticks = Ticks::every(CHECKUP_RETRY, stop);
        let mut known = Known::default();
        let mut next = Instant::now();
        while ticks.next().await {
            if Instant::now() < next {
                continue;
            }
            let checkups = redis.check_up().await;
            for (server, hazard) in known.take_in(&checkups) {
                tell(&context, &server, &hazard).await;
            }
            if checkups.iter().all(|checkup| checkup.was_answered) {
                next = Instant::now() + CHECKUP_PERIOD;
            }
        }
    })
}

impl Known {
    /// Takes over the answers of the servers; returns what is new of them. A server that does not
    /// answer stays as it was.
    fn take_in(&mut self, checkups: &[Checkup]) -> Vec<(String, ConfigWarning)> {
        let mut found = Vec::new();
        for checkup in checkups.iter().filter(|checkup| checkup.was_answered) {
            let server = &checkup.server;
            let said = self.servers.entry(server.clone()).or_default();
            said.config_warnings.retain(|hazard| {
                let stays = checkup.config_warnings.contains(hazard);
                if !stays {
                    tracing::info!(server, hazard = hazard.name(), "redis hazard is over");
                }
                stays
            });
            for hazard in &checkup.config_warnings {
                if said.config_warnings.insert(hazard.clone()) {
                    found.push((server.clone(), hazard.clone()));
                }
            }
            let unchecked: HashSet<String> = checkup.unchecked.iter().cloned().collect();
            for why in unchecked.difference(&said.unchecked) {
                tracing::info!(server, why, "could not be checked for hazards");
            }
            said.unchecked = unchecked;
        }
        self.note_silent(checkups);
        if self.servers.len() > SERVERS_MAX {
            let is_there = |of: &String| checkups.iter().any(|checkup| checkup.server == *of);
            self.servers.retain(|server, _| is_there(server));
        }
        found
    }

    /// Logs which servers have fallen silent.
    fn note_silent(&mut self, checkups: &[Checkup]) {
        let before = std::mem::take(&mut self.silent);
        for checkup in checkups.iter().filter(|checkup| !checkup.was_answered) {
            let Checkup { server, unchecked, .. } = checkup;
            if !before.contains(server) {
                let why = unchecked.join("; ");
                tracing::info!(server, why, "could not be checked for hazards");
            }
            self.silent.insert(server.clone());
        }
    }
}

/// Reports a hazard. A lost event is no reason to fail.
async fn tell(context: &Context, server: &str, hazard: &ConfigWarning) {
    let (name, cure) = (hazard.name(), hazard.cure());
    tracing::warn!(server, hazard = name, cure, "redis hazard: {hazard}");
    let event = Event {
        at_us: context.clock.now_us(),
        kind: "redis-hazard".into(),
        partition: None,
        epoch: None,
        node_id: Some(context.membership.node()),
        detail: json!({
            "server": server, "hazard": name, "meaning": hazard.to_string(), "cure": cure,
        }),
    };
    if let Err(error) = context.ledger.events().record(&event).await {
        tracing::warn!(%error, kind = event.kind, "event not recorded in the ledger");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkup(server: &str, config_warnings: &[ConfigWarning]) -> Checkup {
        Checkup {
            server: server.into(),
            was_answered: true,
            config_warnings: config_warnings.to_vec(),
            unchecked: vec![],
        }
    }

    #[test]
    fn a_hazard_is_news_once_until_it_is_over() {
        let mut known = Known::default();
        let lazy = [ConfigWarning::LazyAppendOnlyFile];
        assert_eq!(known.take_in(&[checkup("a", &lazy), checkup("b", &[])]).len(), 1);
        assert_eq!(known.take_in(&[checkup("a", &lazy), checkup("b", &lazy)]).len(), 1);
        assert_eq!(known.take_in(&[checkup("a", &[]), checkup("b", &lazy)]), []);
        assert_eq!(known.take_in(&[checkup("a", &lazy), checkup("b", &lazy)]).len(), 1);
        assert_eq!(known.take_in(&[checkup("b", &lazy)]), []);
        assert_eq!(known.take_in(&[checkup("a", &lazy)]), [], "a master again, and as it was");
        let other = [ConfigWarning::AppendOnlyFileFails];
        assert_eq!(known.take_in(&[checkup("a", &other)]).len(), 1, "it is another hazard");
    }

    #[test]
    fn a_server_that_does_not_answer_keeps_its_hazards() {
        let mut known = Known::default();
        let lazy = [ConfigWarning::LazyAppendOnlyFile];
        known.take_in(&[checkup("a", &lazy)]);
        assert_eq!(known.take_in(&[Checkup::unanswered("a".into(), "gone".into())]), []);
        assert_eq!(known.take_in(&[checkup("a", &lazy)]), []);
        // While sentinels or cluster nodes name no master, the servers of the URL represent it.
        assert_eq!(known.take_in(&[Checkup::unanswered("seeds".into(), "none".into())]), []);
        assert_eq!(known.take_in(&[checkup("a", &lazy)]), [], "nothing has changed");
    }

    #[test]
    fn servers_that_are_masters_no_more_are_forgotten_when_there_are_too_many() {
        let mut known = Known::default();
        for server in 0..SERVERS_MAX + 10 {
            known.take_in(&[checkup(&server.to_string(), &[])]);
        }
        assert!(known.servers.len() <= SERVERS_MAX, "{}", known.servers.len());
    }
}
