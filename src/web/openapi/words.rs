//! Texts that are one of a few words: in which field of which schema, and in which parameter of a
//! query. Clients that are generated from the description switch over them.

use numbering::ExchangeKind;
use serde_json::{Value, json};

use super::super::problem::Slug;
use crate::auth::Role;
use crate::language::Locale;
use crate::ledger::{EVENT_KINDS, IssuePath};

/// The paths whose words are listed.
const PATHS: [IssuePath; 3] = [IssuePath::Redis, IssuePath::Database, IssuePath::Imported];
const STEPS: [&str; 3] = ["in-progress", "succeeded", "failed"];
const EFFECTS: [&str; 6] = ["added", "renamed", "activated", "deactivated", "changed", "unchanged"];
/// The counts in lines and entries of a statement.
const COUNTED: [&str; 14] = [
    "issued",
    "archived",
    "imported",
    "discarded",
    "unaccounted",
    "collided",
    "before-import",
    "skipped",
    "kept-aside",
    "duplicate",
    "being-recorded",
    "not-looked-at",
    "missing",
    "twice",
];
/// Reasons of `/readyz` that are no problems of callers.
const STANDINGS: [&str; 4] = ["idle", "recovering", "clock", "cut-off"];

/// The words of a field of a schema, if it has any.
pub(super) fn of_field(schema: &str, field: &str) -> Option<Value> {
    let slugs = Slug::ALL.iter().map(|slug| slug.name());
    let kinds = ExchangeKind::ALL.map(ExchangeKind::name);
    Some(match (schema, field) {
        ("ProblemBody", "code") => slugs.collect(),
        ("ProblemBody", "number_taken") => json!(["no", "maybe"]),
        ("AllocationAnswer" | "NumberAbout", "path") => json!(PATHS.map(IssuePath::name)),
        ("ChangeAnswer", "kind") => json!(["counter", "chronology"]),
        ("ChangeAnswer", "state") => json!(["pending", "expired", "approved", "rejected"]),
        ("TokenAnswer", "state") => json!(["in-force", "expired", "revoked"]),
        ("TokenAnswer" | "TokenRequest", "roles") => json!(Role::ALL.map(Role::name)),
        ("StepAnswer", "state") => json!(STEPS),
        ("SerialState", "state") => ["accepted"].into_iter().chain(STEPS).collect(),
        ("ExchangeAnswer", "kind") => json!(kinds),
        ("LinkAnswer", "kind") => kinds.into_iter().chain(["other"]).collect(),
        ("LinkAnswer", "event") => json!(["issued", "accepted", "begun", "succeeded", "failed"]),
        ("CheckAnswer", "outcome") => json!(["accepted"]),
        ("ChangedRow" | "ChangedMembership", "effect") => json!(EFFECTS),
        ("CountLine" | "EntryAnswer", "what") => json!(COUNTED),
        ("EventAnswer", "event") => json!(EVENT_KINDS.as_slice()),
        ("ReasonAnswer", "reason") => slugs.chain(STANDINGS).collect(),
        ("Health", "status") => json!(["ok"]),
        ("Statement", "language") => json!(Locale::ALL.map(Locale::tag)),
        _ => return None,
    })
}

/// The words of a parameter of an operation, if it has any.
pub(super) fn of_parameter(operation: &str, parameter: &str) -> Option<Value> {
    Some(match (operation, parameter) {
        ("list_numbers", "status") => json!(["issued", "revised"]),
        ("list_numbers", "path") => json!(PATHS.map(IssuePath::name)),
        ("list_numbers", "sort") => json!(["time", "number"]),
        ("list_events", "kind") => json!(EVENT_KINDS.as_slice()),
        ("draw_up_statement", "format") => json!(["json", "text", "csv", "html"]),
        _ => return None,
    })
}
