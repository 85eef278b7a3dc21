//! What `status` found, for people: tables, and sentences for what needs attention.

use std::collections::BTreeMap;

use super::super::words;
use super::answer::{RedisAnswer, StatusAnswer};
use crate::ledger::Totals;

impl StatusAnswer {
    /// The same for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let Totals { journal, revisions, gaps, collisions, rejected } = self.totals;
        let mut lines = vec![
            format!("ledger {}", self.engine),
            format!(
                "journal {journal}  revisions {revisions}  gaps {gaps}  collisions {collisions}  \
                 rejected {rejected}"
            ),
        ];
        let header =
            ["partition", "epoch", "state", "owner", "wanted", "closed before", "redis", "cause"];
        let mut partitions = words::table(header);
        for row in &self.partitions {
            partitions.add_row([
                row.partition.to_string(),
                row.epoch.to_string(),
                row.state.into(),
                row.owner.into(),
                row.wanted.into(),
                row.last_closing.unwrap_or("-").into(),
                row.redis.as_ref().map_or("-", RedisAnswer::word).into(),
                row.cause.clone(),
            ]);
        }
        lines.push(partitions.to_string());
        lines.extend(self.troubles());
        let mut nodes = words::table(["node", "label", "version", "beat", "state", "outboxes"]);
        let outboxes = self.outboxes();
        for row in &self.nodes {
            nodes.add_row([
                row.node_id.clone(),
                row.label.clone(),
                row.version.clone(),
                row.beat.to_string(),
                if row.alive { "alive" } else { "silent" }.into(),
                outboxes.get(row.node_id.as_str()).cloned().unwrap_or_default(),
            ]);
        }
        lines.push(nodes.to_string());
        if !self.ceilings.is_empty() {
            let mut ceilings = words::table(["counter", "key", "taken", "ceiling", "room"]);
            for row in &self.ceilings {
                ceilings.add_row([
                    row.counter_id.to_string(),
                    row.counter_key.clone(),
                    row.taken.to_string(),
                    row.ceiling.to_string(),
                    row.room.to_string(),
                ]);
            }
            lines.push(ceilings.to_string());
        }
        lines
    }

    /// What Redis is in trouble with, each sentence once, with its partitions; and how its servers
    /// are set up, where that is dangerous.
    fn troubles(&self) -> Vec<String> {
        let mut troubles: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &self.partitions {
            if let Some(trouble) = row.redis.as_ref().and_then(|redis| redis.trouble.as_deref()) {
                troubles.entry(trouble).or_default().push(row.partition.to_string());
            }
        }
        let line = |(trouble, partitions): (&str, Vec<String>)| {
            format!("partitions {}: {trouble}", partitions.join(", "))
        };
        let mut lines: Vec<String> = troubles.into_iter().map(line).collect();
        for server in &self.redis_servers {
            let name = &server.server;
            lines.extend(
                server.hazards.iter().map(|hazard| {
                    format!("redis {name}: {}; cure: {}", hazard.meaning, hazard.cure)
                }),
            );
            let unchecked = server.unchecked.iter();
            lines.extend(unchecked.map(|why| format!("redis {name}: not checked: {why}")));
        }
        lines
    }

    /// Per node what lies in its outboxes: entries and partition.
    fn outboxes(&self) -> BTreeMap<&str, String> {
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        for row in &self.partitions {
            for outbox in row.redis.iter().flat_map(|redis| &redis.outboxes) {
                let text = texts.entry(&outbox.node_id).or_default();
                let gap = if text.is_empty() { "" } else { ", " };
                text.push_str(&format!("{gap}{} in {}", outbox.entries, row.partition));
            }
        }
        texts
    }
}

impl RedisAnswer {
    fn word(&self) -> &'static str {
        match self.agrees {
            Some(true) => "agrees",
            Some(false) => "differs",
            None if self.trouble.is_some() => "unknown",
            None => "-",
        }
    }
}
