//! The findings of `status`, as `--json` prints them.

use serde::Serialize;

use super::reservations::ReservationsAnswer;
use super::verdict::Judged;
use crate::engine::reconciler::{Life, Observed};
use crate::ledger::{
    Counter, HealthReport, HeldNumber, LedgerCheckup, LedgerConfigWarning, LedgerError, NodeWords,
    Owner, Partition, Totals, UnrecordedToken,
};
use crate::redis::{Checkup, ConfigWarning};
use crate::terminal::words;

/// The state in the stores.
#[derive(Debug, Serialize)]
pub(super) struct StatusAnswer {
    /// The verdict, and its reasons.
    #[serde(flatten)]
    pub(super) judged: Judged,
    pub(super) engine: &'static str,
    /// How the database keeps commits.
    pub(super) ledger_server: ServerAnswer,
    /// The masters of Redis and their configuration; none if no Redis is configured.
    pub(super) redis_servers: Vec<ServerAnswer>,
    pub(super) partitions: Vec<PartitionAnswer>,
    pub(super) nodes: Vec<NodeAnswer>,
    /// Why the ledger takes no heartbeats, if it takes none.
    pub(super) untold: Option<String>,
    /// What could not be read, and why.
    pub(super) unread: Vec<String>,
    /// Tokens in force that differ from the state after their last event.
    pub(super) untold_tokens: Vec<UnrecordedToken>,
    /// Counters of Redis with the least headroom: how far issuing gets while the ledger is away.
    pub(super) ceilings: Vec<CeilingAnswer>,
    /// None if they could not be read.
    pub(super) totals: Option<Totals>,
    /// Live reservations; none if they could not be counted.
    pub(super) reservations: Option<ReservationsAnswer>,
}

impl StatusAnswer {
    /// Tokens that differ from the state after their last event, a sentence each.
    pub(super) fn untold(&self) -> impl Iterator<Item = String> {
        self.untold_tokens.iter().map(|UnrecordedToken { name, why }| {
            format!("token {name}: {why}; somebody wrote it into the ledger past the program")
        })
    }
}

/// One partition.
#[derive(Debug, Serialize)]
pub(super) struct PartitionAnswer {
    pub(super) partition: u32,
    pub(super) epoch: u64,
    pub(super) state: &'static str,
    pub(super) owner: &'static str,
    /// Which data set of Redis it is.
    pub(super) incarnation: Option<String>,
    /// The owner that an operator wants: `auto` or `database`.
    pub(super) wanted: &'static str,
    /// How the epoch before was closed: `exact` or `ceiling`.
    pub(super) last_closing: Option<&'static str>,
    /// The last epoch closed at the ceiling; 0: none.
    pub(super) last_ceiling_epoch: u64,
    /// Why the epoch began.
    pub(super) cause: String,
    /// When it came into this state (RFC 3339).
    pub(super) changed_at: String,
    /// The state in Redis; absent if none is configured.
    pub(super) redis: Option<RedisAnswer>,
    /// While the database has it instead of Redis: the processes that Redis waits for.
    pub(super) waits_for: Vec<WaitAnswer>,
}

/// A process that does not reach a partition that the others reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct WaitAnswer {
    pub(super) node_id: String,
    pub(super) label: String,
    /// The data sets of Redis in which it sees the partition; empty: none.
    pub(super) sees: Vec<String>,
    /// Since when it reaches none, by its own clock (RFC 3339); none if it does not say.
    pub(super) since: Option<String>,
    pub(super) why: String,
}

/// One server of Redis, or the ledger's.
#[derive(Debug, Default, Serialize)]
pub(super) struct ServerAnswer {
    pub(super) server: String,
    /// Hazards that make a loss of its data likelier.
    pub(super) hazards: Vec<ConfigWarningAnswer>,
    /// What could not be checked, and why.
    pub(super) unchecked: Vec<String>,
}

/// One hazard.
#[derive(Debug, Serialize)]
pub(super) struct ConfigWarningAnswer {
    pub(super) hazard: &'static str,
    pub(super) meaning: String,
    /// The remedy.
    pub(super) cure: &'static str,
}

/// One partition in Redis.
#[derive(Debug, Serialize)]
pub(super) struct RedisAnswer {
    /// Whether the owner record is the one that the ledger names; none if the ledger does not name
    /// Redis as the owner, or Redis does not answer.
    pub(super) agrees: Option<bool>,
    /// The data set that the server shows; none if it does not answer.
    pub(super) data_set: Option<String>,
    /// Why it does not answer, or why nothing is known.
    pub(super) trouble: Option<String>,
    /// For how long new documents still need the ledger, because Redis has lost records of earlier
    /// ones; 0: they do not.
    pub(super) asking_ms: u64,
    /// Outboxes that are not empty: the journal's lag.
    pub(super) outboxes: Vec<OutboxAnswer>,
}

/// One outbox.
#[derive(Debug, Serialize)]
pub(super) struct OutboxAnswer {
    pub(super) node_id: String,
    /// Entries, one per flight; a few that are journaled wait to be trimmed.
    pub(super) entries: u64,
    /// Age of the oldest entry.
    pub(super) lag_ms: Option<u64>,
}

/// One node that has not left.
#[derive(Debug, Serialize)]
pub(super) struct NodeAnswer {
    pub(super) node_id: String,
    pub(super) label: String,
    pub(super) version: String,
    /// Raised with every heartbeat.
    pub(super) beat: i64,
    /// Whether it was seen to rise; none if the ledger takes no heartbeats: then it is not known.
    pub(super) alive: Option<bool>,
    pub(super) started_at: String,
    /// How far its clock is ahead of PostgreSQL's, by its last report; none if it reported none, or
    /// the ledger is a file.
    pub(super) clock_ahead_ms: Option<i64>,
    /// The node number in its ids of `{SNOWFLAKE}`; none if it has drawn no id yet.
    pub(super) node_number: Option<u16>,
    /// Partitions in which it may have left an outbox.
    pub(super) partitions: Vec<u32>,
    /// The data sets of Redis that it sees, with the partitions that it sees there; none for a
    /// one-shot command.
    pub(super) sight: Option<HealthReport>,
    /// What prevents its work, by its own report; none if it does not say.
    pub(super) words: Option<NodeWords>,
}

/// One counter.
#[derive(Debug, Serialize)]
pub(super) struct CeilingAnswer {
    pub(super) counter_id: i64,
    pub(super) counter_key: String,
    pub(super) partition: u32,
    pub(super) taken: i64,
    pub(super) ceiling: i64,
    /// Values left below the ceiling.
    pub(super) room: u64,
}

impl PartitionAnswer {
    pub(super) fn of(partition: Partition, redis: Option<RedisAnswer>) -> Self {
        let wanted = words::wanted_of(&partition);
        PartitionAnswer {
            partition: partition.partition,
            epoch: partition.epoch,
            state: words::state(partition.state),
            owner: words::owner(&partition.owner),
            incarnation: match partition.owner {
                Owner::Redis { incarnation } => Some(incarnation),
                Owner::None | Owner::Database => None,
            },
            wanted,
            last_closing: partition.last_closing.map(words::closing),
            last_ceiling_epoch: partition.last_ceiling_epoch,
            cause: partition.cause,
            changed_at: words::moment(partition.changed_at_us),
            redis,
            waits_for: Vec::new(),
        }
    }
}

impl NodeAnswer {
    pub(super) fn of(Observed { node, life }: Observed, held: &[HeldNumber]) -> Self {
        let held = held.iter().find(|held| held.holder == node.node_id);
        NodeAnswer {
            node_number: held.map(|held| held.node_number),
            node_id: node.node_id.to_string(),
            label: node.label,
            version: node.version,
            beat: node.beat,
            alive: match life {
                Life::Alive => Some(true),
                Life::Silent => Some(false),
                Life::Unknown => None,
            },
            started_at: words::moment(node.started_at_us),
            clock_ahead_ms: node.clock_ahead_us.map(|us| us / 1_000),
            partitions: node.partitions,
            sight: node.sight,
            words: node.words,
        }
    }
}

impl CeilingAnswer {
    pub(super) fn of(counter: Counter) -> Self {
        CeilingAnswer {
            counter_id: counter.counter_id,
            partition: counter.partition,
            taken: counter.taken,
            ceiling: counter.ceiling,
            room: counter.headroom(),
            counter_key: counter.key,
        }
    }
}

impl ServerAnswer {
    /// The ledger, if it could not be read.
    pub(super) fn unread(error: &LedgerError) -> Self {
        ServerAnswer {
            server: "ledger".into(),
            unchecked: vec![error.to_string()],
            ..ServerAnswer::default()
        }
    }

    pub(super) fn of_ledger(checkup: LedgerCheckup) -> Self {
        let hazard = |hazard: &LedgerConfigWarning| ConfigWarningAnswer {
            hazard: hazard.name(),
            meaning: hazard.to_string(),
            cure: hazard.cure(),
        };
        ServerAnswer {
            hazards: checkup.config_warnings.iter().map(hazard).collect(),
            server: "ledger".into(),
            unchecked: checkup.unchecked,
        }
    }

    pub(super) fn of(checkup: Checkup) -> Self {
        let hazard = |hazard: &ConfigWarning| ConfigWarningAnswer {
            hazard: hazard.name(),
            meaning: hazard.to_string(),
            cure: hazard.cure(),
        };
        ServerAnswer {
            hazards: checkup.config_warnings.iter().map(hazard).collect(),
            server: checkup.server,
            unchecked: checkup.unchecked,
        }
    }
}
