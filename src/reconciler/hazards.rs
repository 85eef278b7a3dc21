//! The watch over how the Redis servers are set up: tells the log and the ledger of each hazard
//! once, when it is first seen, and the log when it is over. Never keeps anything from starting.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::allocator::Context;
use crate::counter::{Checkup, Hazard, Redis};
use crate::ledger::Event;
use crate::task::{Task, Ticks};

/// Time between two check-ups.
const CHECKUP_PERIOD: Duration = Duration::from_secs(60);
/// The same while a server does not answer, which is the rule at the start.
const CHECKUP_RETRY: Duration = Duration::from_secs(1);

/// Hazards and gaps of knowledge as last seen, by server.
#[derive(Debug, Default)]
struct Known {
    hazards: HashSet<(String, Hazard)>,
    unchecked: HashSet<(String, String)>,
}

/// Starts the watch.
pub(crate) fn watch_hazards(context: Arc<Context>, redis: Redis) -> Task {
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
    /// Takes in what the servers say now; gives what is new of it. A server that does not answer
    /// keeps the hazards that it had.
    fn take_in(&mut self, checkups: &[Checkup]) -> Vec<(String, Hazard)> {
        let mut found = Vec::new();
        for checkup in checkups.iter().filter(|checkup| checkup.was_answered) {
            let server = &checkup.server;
            self.hazards.retain(|(of, hazard)| {
                let stays = of != server || checkup.hazards.contains(hazard);
                if !stays {
                    tracing::info!(server, hazard = hazard.name(), "redis hazard is over");
                }
                stays
            });
            for hazard in &checkup.hazards {
                if self.hazards.insert((server.clone(), hazard.clone())) {
                    found.push((server.clone(), hazard.clone()));
                }
            }
        }
        // Servers that are masters no more are forgotten: they may come back set up otherwise.
        let is_there = |of: &String| checkups.iter().any(|checkup| checkup.server == *of);
        self.hazards.retain(|(of, _)| is_there(of));
        let unchecked: HashSet<_> = checkups
            .iter()
            .flat_map(|checkup| checkup.unchecked.iter().map(|why| (checkup.server.clone(), why)))
            .map(|(server, why)| (server, why.clone()))
            .collect();
        for (server, why) in unchecked.difference(&self.unchecked) {
            tracing::info!(server, why, "could not be checked for hazards");
        }
        self.unchecked = unchecked;
        found
    }
}

/// Tells of a hazard. An event more or less is no reason to fail.
async fn tell(context: &Context, server: &str, hazard: &Hazard) {
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
    if let Err(error) = context.ledger.record_event(&event).await {
        tracing::warn!(%error, kind = event.kind, "event not recorded in the ledger");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkup(server: &str, hazards: &[Hazard]) -> Checkup {
        Checkup {
            server: server.into(),
            was_answered: true,
            hazards: hazards.to_vec(),
            unchecked: vec![],
        }
    }

    #[test]
    fn a_hazard_is_news_once_until_it_is_over() {
        let mut known = Known::default();
        let lazy = [Hazard::LazyAppendOnlyFile];
        assert_eq!(known.take_in(&[checkup("a", &lazy), checkup("b", &[])]).len(), 1);
        assert_eq!(known.take_in(&[checkup("a", &lazy), checkup("b", &lazy)]).len(), 1);
        assert_eq!(known.take_in(&[checkup("a", &[]), checkup("b", &lazy)]), []);
        assert_eq!(known.take_in(&[checkup("a", &lazy), checkup("b", &lazy)]).len(), 1);
        assert_eq!(known.take_in(&[checkup("b", &lazy)]), []);
        assert_eq!(known.take_in(&[checkup("a", &lazy)]).len(), 1, "a master again");
    }

    #[test]
    fn a_server_that_does_not_answer_keeps_its_hazards() {
        let mut known = Known::default();
        let lazy = [Hazard::LazyAppendOnlyFile];
        known.take_in(&[checkup("a", &lazy)]);
        assert_eq!(known.take_in(&[Checkup::unanswered("a".into(), "gone".into())]), []);
        assert_eq!(known.take_in(&[checkup("a", &lazy)]), []);
    }
}
