//! All reference data as one reader sees them. Writes nothing, and knows of no series.

use numbering::{Membership, ReferenceData, ReferenceRow};
use sqlx_macros::FromRow;

use crate::LedgerError;
use crate::dialect::Conn;
use crate::query::query_as;

/// Rows and all their codes in one statement: no reader sees half a renaming.
pub(crate) async fn read(conn: &mut Conn) -> Result<ReferenceData, LedgerError> {
    let found: Vec<CodeRow> = query_as(
        "select r.table_name, r.reference_id, r.code, r.name, r.active, c.code as used
         from reference_row r join reference_code c
         on c.table_name = r.table_name and c.reference_id = r.reference_id
         order by r.table_name, r.reference_id, c.code",
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut rows: Vec<ReferenceRow> = Vec::new();
    for (row, used) in found.into_iter().map(CodeRow::read) {
        let is_last = |last: &&mut ReferenceRow| (&last.table, &last.id) == (&row.table, &row.id);
        let is_present = used == row.code;
        if rows.last_mut().filter(is_last).is_none() {
            rows.push(row);
        }
        if let Some(row) = rows.last_mut().filter(|_| !is_present) {
            row.former_codes.push(used);
        }
    }
    let memberships: Vec<MembershipRow> = query_as(
        "select table_name, reference_id, of_table_name, of_reference_id, active from membership
         order by table_name, reference_id, of_table_name, of_reference_id",
    )
    .fetch_all(conn)
    .await?;
    let memberships = memberships.into_iter().map(Membership::from).collect::<Vec<_>>();
    Ok(ReferenceData::new(rows, memberships))
}

/// A row, and one of the codes that it has or had.
#[derive(FromRow)]
struct CodeRow {
    table_name: String,
    reference_id: String,
    code: String,
    name: String,
    active: i32,
    used: String,
}

impl CodeRow {
    fn read(self) -> (ReferenceRow, String) {
        let row = ReferenceRow {
            table: self.table_name,
            id: self.reference_id,
            code: self.code,
            name: self.name,
            active: self.active == 1,
            former_codes: Vec::new(),
        };
        (row, self.used)
    }
}

/// The columns of a membership.
#[derive(FromRow)]
struct MembershipRow {
    table_name: String,
    reference_id: String,
    of_table_name: String,
    of_reference_id: String,
    active: i32,
}

impl From<MembershipRow> for Membership {
    fn from(row: MembershipRow) -> Self {
        Membership {
            table: row.table_name,
            id: row.reference_id,
            of_table: row.of_table_name,
            of_id: row.of_reference_id,
            active: row.active == 1,
        }
    }
}
