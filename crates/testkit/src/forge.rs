//! The acts of a user with all rights in the database: statements that change what the ledger keeps
//! as it is. For tests of their detection.

/// The tables whose rows a SQLite ledger keeps by triggers.
const KEPT: [&str; 5] = ["journal", "journal_batch", "journal_kind", "journal_name", "checkpoint"];

/// The statements for PostgreSQL, run together, by a superuser.
#[must_use]
pub fn postgres(statements: &str) -> String {
    format!(
        "set session_replication_role = replica; {statements}; \
         set session_replication_role = origin"
    )
}

/// The statements for SQLite, run together. The triggers are gone afterwards.
#[must_use]
pub fn sqlite(statements: &str) -> String {
    let mut all = String::new();
    for table in KEPT {
        for what in ["stays", "is_not_removed"] {
            all.push_str("drop trigger if exists ");
            all.extend([table, "_", what, "; "]);
        }
    }
    all + statements
}
