//! Texts that are one of a few words: in which field of which schema, and in which parameter of a
//! query. Clients that are generated from the description switch over them.

use numbering::ExchangeKind;
use serde_json::{Value, json};

use super::super::problem::Slug;
use crate::auth::Role;
use crate::language::Locale;
use crate::ledger::{EVENT_KINDS, IssuePath};

/// The paths whose words are listed.
const PATHS: [IssuePath; 5] = [
    IssuePath::Redis,
    IssuePath::Database,
    IssuePath::Imported,
    IssuePath::Registered,
    IssuePath::AsWritten,
];
const STEPS: [&str; 3] = ["in-progress", "succeeded", "failed"];
const EFFECTS: [&str; 6] = ["added", "renamed", "activated", "deactivated", "changed", "unchanged"];
/// The counts in lines and entries of a statement.
const COUNTED: [&str; 22] = [
    "issued",
    "archived",
    "imported",
    "registered",
    "as-written",
    "voided",
    "replaced",
    "discarded",
    "unaccounted",
    "collided",
    "before-import",
    "skipped",
    "returned",
    "cancelled",
    "expired",
    "reserved",
    "kept-aside",
    "duplicate",
    "being-recorded",
    "not-looked-at",
    "missing",
    "twice",
];
/// Why values are not issued, or not yet.
const GAPS: [&str; 8] = [
    "discarded",
    "unaccounted",
    "collided",
    "before-import",
    "skipped",
    "returned",
    "cancelled",
    "expired",
];
/// States of reservations.
const RESERVATIONS: [&str; 6] =
    ["reserved", "issued", "cancelled", "expired", "lost", "handed-back"];
/// The same of live ones.
const LIVE: [&str; 4] = ["reserved", "issued", "cancelled", "expired"];
/// Reasons of `/readyz` that are no problems of callers.
const STANDINGS: [&str; 4] = ["idle", "recovering", "clock", "cut-off"];

/// The words of a field of a schema, if it has any.
pub(super) fn of_field(schema: &str, field: &str) -> Option<Value> {
    let slugs = Slug::ALL.iter().map(|slug| slug.name());
    let kinds = ExchangeKind::ALL.map(ExchangeKind::name);
    Some(match (schema, field) {
        ("ProblemBody", "code") => slugs.collect(),
        ("ProblemBody", "number_taken") => json!(["no", "maybe"]),
        ("NumberRow", "kind") => json!(["number", "revision"]),
        ("GapRow", "kind") => json!(["gap"]),
        ("GapAbout", "reason") => json!(GAPS),
        ("AllocationAnswer" | "NumberAbout", "path") => json!(PATHS.map(IssuePath::name)),
        ("ReservationAnswer" | "ReservedNumber", "status") => json!(RESERVATIONS),
        ("ListedReservation", "status") => json!(LIVE),
        ("PassedOverAnswer", "became") => json!(["returned", "skipped"]),
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
        ("list_numbers", "status") => json!(["issued", "revised", "voided", "replaced"]),
        ("list_numbers", "path") => json!(PATHS.map(IssuePath::name)),
        ("list_numbers", "sort") => json!(["time", "number"]),
        ("list_events", "kind") => json!(EVENT_KINDS.as_slice()),
        ("draw_up_statement", "format") => json!(["json", "text", "csv", "html"]),
        _ => return None,
    })
}
