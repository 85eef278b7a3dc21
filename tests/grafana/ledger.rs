//! The ledger, the journal that follows the answers, and the ceilings that bridge its absence.

use super::model::{Dashboard, Panel, Row};
use super::promql::{gauge, increase, mean, of, quantile, rate};

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        uid: "numerator-ledger",
        title: "numerator: ledger and journal",
        description: "Whether numbers get into the ledger, and how long issuing lasts without it.",
        rows: vec![
            journal(),
            ledger(),
            ceilings(),
            clocks(),
            tokens(),
            checkpoints(),
            reservations(),
        ],
    }
}

fn journal() -> Row {
    let panels = vec![
        Panel::lines(
            "Journal lag, time",
            "s",
            vec![(of("numerator_journal_lag_seconds"), "{{instance}}")],
            "How long the oldest record that is not committed has waited.",
        )
        .above(&[(30.0, "red")])
        .see("the-journal-lags"),
        Panel::lines(
            "Journal lag, records",
            "short",
            vec![
                (of("numerator_journal_lag_records"), "{{instance}}"),
                (gauge("min", "", "numerator_journal_queue_max"), "bound"),
            ],
            "Records handed out and not committed. At the bound, requests are refused.",
        )
        .see("the-journal-lags"),
        Panel::lines(
            "Records committed",
            "wps",
            vec![
                (rate("", "numerator_journaled_total"), "journaled"),
                (rate("", "numerator_adopted_total"), "adopted from silent nodes"),
            ],
            "Records of the Redis path that reach the journal: behind the answers, or from the \
             outboxes of nodes that fell silent.",
        ),
        Panel::lines(
            "Journal batches",
            "s",
            vec![
                (quantile("0.50", "numerator_journal_batch_seconds", "le"), "p50"),
                (quantile("0.95", "numerator_journal_batch_seconds", "le"), "p95"),
            ],
            "Time to commit a batch, retries included. No line while nothing happens.",
        )
        .see("the-journal-lags"),
        Panel::lines(
            "Records per batch",
            "short",
            vec![(mean("", "numerator_journal_batch_records"), "mean")],
            "How much the journal writes at once: the more waits, the more. No line while nothing \
             happens.",
        ),
    ];
    Row { title: "Journal", panels: panels.into_iter().chain(left_behind()).collect() }
}

/// What is not in the journal, and may never be.
fn left_behind() -> Vec<Panel> {
    vec![
        Panel::lines(
            "Outbox entries",
            "short",
            vec![(
                gauge("max", "partition", "numerator_outbox_entries"),
                "partition {{partition}}",
            )],
            "Entries in the outboxes of all nodes: what Redis holds and the journal may not. No \
             line while Redis cannot be read.",
        )
        .see("a-process-is-missing"),
        Panel::lines(
            "Rejected records",
            "short",
            vec![
                (gauge("sum", "instance", "numerator_rejected_total"), "refused by {{instance}}"),
                (gauge("max", "", "numerator_rejected_records"), "kept by the ledger"),
            ],
            "Records that the ledger refused for their content, since each process started; and \
             those that it keeps and nobody has journaled again or acknowledged.",
        )
        .above(&[(1.0, "red")])
        .see("a-rejected-record"),
        Panel::lines(
            "Values that became gaps",
            "short",
            vec![(
                increase("reason", "numerator_gap_values_total", "$__rate_interval"),
                "{{reason}}",
            )],
            "Values that went to the gap register, by reason. Unaccounted: one of them may have \
             been handed out and its record lost.",
        )
        .see("closed-at-the-ceiling"),
        Panel::lines(
            "Gaps registered",
            "short",
            vec![(increase("reason", "numerator_gaps_total", "$__rate_interval"), "{{reason}}")],
            "Runs of such values that went to the gap register, by reason.",
        ),
    ]
}

fn ledger() -> Row {
    let panels = vec![
        Panel::lines(
            "Ledger calls, p95 by kind",
            "s",
            vec![(quantile("0.95", "numerator_ledger_call_seconds", "le, call"), "{{call}}")],
            "Time of a call to the ledger. No line while nothing happens.",
        )
        .above(&[(1.0, "orange")])
        .see("ledger-unavailable"),
        Panel::lines(
            "Ledger calls per second",
            "ops",
            vec![(rate("call", "numerator_ledger_call_seconds_count"), "{{call}}")],
            "Calls to the ledger, by kind.",
        ),
        Panel::lines(
            "Ledger errors",
            "ops",
            vec![
                (rate("reason", "numerator_ledger_errors_total"), "{{reason}}"),
                (rate("", "numerator_chores_failed_total"), "panicked"),
            ],
            "Calls that the ledger did not carry out, by reason. Fenced ones belong to recoveries; \
             a panic is a bug.",
        )
        .see("ledger-unavailable"),
        Panel::lines(
            "Connections",
            "short",
            vec![
                (gauge("sum", "state", "numerator_ledger_connections"), "{{state}}"),
                (gauge("sum", "", "numerator_ledger_connections_max"), "bound"),
            ],
            "Connections to the ledger that calls share, used and idle, and how many there may be; \
             heartbeat and journal have one each beside.",
        )
        .see("long-waits"),
        Panel::lines(
            "Ledger went back",
            "short",
            vec![(gauge("sum", "instance", "numerator_ledger_went_back_total"), "{{instance}}")],
            "Times that the ledger was held because it showed less than it had confirmed.",
        )
        .above(&[(1.0, "red")])
        .see("a-held-partition"),
        Panel::lines(
            "Ledger hazards",
            "short",
            vec![(gauge("max", "hazard", "numerator_ledger_hazard"), "{{hazard}}")],
            "1 where the database is set up so that it may lose commits; `numerator status` says \
             what to set. No line where it could not be looked at.",
        )
        .above(&[(1.0, "orange")])
        .see("hazards-of-the-ledger"),
    ];
    Row { title: "Ledger", panels }
}

fn ceilings() -> Row {
    let panels = vec![
        Panel::lines(
            "Room below ceilings used",
            "percentunit",
            vec![(
                gauge("max", "partition", "numerator_ceiling_used_ratio"),
                "partition {{partition}}",
            )],
            "Largest share of its last grant that a counter in use has taken. The ledger raises \
             ceilings when half is used; while it is away, this says how far issuing gets.",
        )
        .above(&[(0.8, "orange")])
        .see("ceiling-room-is-low"),
        Panel::lines(
            "Numbers left below the ceiling",
            "short",
            vec![(
                gauge("min", "partition", "numerator_ceiling_room_numbers"),
                "partition {{partition}}",
            )],
            "Numbers that the counter with the least room has left; 0 also where none is in use.",
        )
        .see("ceiling-room-is-low"),
        Panel::lines(
            "Ceilings raised",
            "ops",
            vec![
                (rate("", "numerator_ceiling_raises_total"), "raised"),
                (rate("", "numerator_ceiling_waits_total"), "requests that waited"),
            ],
            "Ceilings raised per second, and requests that met one and had to wait.",
        ),
        Panel::lines(
            "Time left below the ceiling",
            "s",
            vec![(
                gauge("min", "partition", "numerator_ceiling_room_seconds"),
                "partition {{partition}}",
            )],
            "How long the counter that runs out first may go on without the ledger, at its present \
             rate: from half of ceiling.horizon up, while the ledger raises ceilings.",
        )
        .see("ceiling-room-is-low"),
    ];
    Row { title: "Ceilings", panels }
}

fn clocks() -> Row {
    let panel = Panel::lines(
        "Clock offset",
        "s",
        vec![(gauge("max", "instance", "numerator_clock_offset_seconds"), "{{instance}}")],
        "By how much each process's clock is ahead of PostgreSQL's; below 0 it is behind.",
    );
    let panels = vec![panel.above(&[(5.0, "orange"), (60.0, "red")]).see("a-clock-is-off")];
    Row { title: "Clocks", panels }
}

fn tokens() -> Row {
    let panel = Panel::lines(
        "Tokens without their event",
        "short",
        vec![(gauge("max", "", "numerator_tokens_untold"), "tokens")],
        "Tokens in force that are not as their last event left them, or that no event tells of: \
         somebody wrote them into the database.",
    );
    let panels = vec![panel.above(&[(1.0, "red")]).see("a-token-that-no-event-tells-of")];
    Row { title: "Tokens", panels }
}

fn checkpoints() -> Row {
    let panel = Panel::lines(
        "Age of the last checkpoint",
        "s",
        vec![
            (of("numerator_checkpoint_age_seconds"), "{{instance}}"),
            (gauge("max", "", "numerator_checkpoint_period_seconds"), "period"),
        ],
        "How long ago all of the record was under a checkpoint, as each process that has the key \
         found. No line where none has it.",
    );
    Row { title: "Under seal", panels: vec![panel.see("no-checkpoint-is-made")] }
}

/// Reservations that were swept.
const ENDED: &str = "numerator_reservations_ended_total";

fn reservations() -> Row {
    let panels = vec![
        Panel::lines(
            "Reservations",
            "short",
            vec![
                (gauge("max", "state", "numerator_reservations"), "{{state}}"),
                (increase("act", ENDED, "$__rate_interval"), "{{act}}"),
            ],
            "Live reservations by state, and what became of those that were swept.",
        )
        .see("a-reservation-stands-still"),
        Panel::lines(
            "Age of reservations",
            "s",
            vec![
                (gauge("max", "", "numerator_reservation_confirmed_age_seconds"), "confirmed"),
                (gauge("max", "", "numerator_reservation_over_age_seconds"), "over"),
            ],
            "For how long the oldest confirmed one waits for the journal, and since when the time \
             of the oldest is over that is still held.",
        )
        .above(&[(60.0, "orange"), (900.0, "red")])
        .see("a-reservation-stands-still"),
    ];
    Row { title: "Reservations", panels }
}
