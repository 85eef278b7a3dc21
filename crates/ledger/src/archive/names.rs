//! Numbers and documents that moved to a file, as they are looked for: by hashes.

use std::collections::BTreeSet;

use crate::dialect::Conn;
use crate::query::{QueryBuilder, query};
use crate::{ArchiveFile, ArchivedName, ArchivedRun, LedgerError, number_hash};

/// Values of a statement that inserts many.
const NAMES_MAX: usize = 1_000;

/// Writes the names of the rows that runs represent. A document's project is one of them where its
/// series keeps the documents of projects apart.
pub(crate) async fn write(
    conn: &mut Conn,
    of: &ArchiveFile,
    runs: &[&ArchivedRun],
) -> Result<(), LedgerError> {
    let apart = series_apart(conn, runs).await?;
    let names: Vec<(i64, Option<i64>, Option<i64>, i64)> = runs
        .iter()
        .flat_map(|run| {
            let is_apart = apart.contains(&run.newest.series_id);
            run.names.iter().map(move |(number, document, project)| {
                let project = document.filter(|_| is_apart).map(|_| *project);
                (*number, *document, project, run.counter_id)
            })
        })
        .collect();
    for names in names.chunks(NAMES_MAX) {
        let mut query = QueryBuilder::new(
            "insert into archived_number (number_hash, document_hash, project_hash, counter_id,
             archive_file_id) ",
        );
        query.push_values(names, |mut row, (number, document, project, counter_id)| {
            row.push_bind(*number).push_bind(*document).push_bind(*project);
            row.push_bind(*counter_id).push_bind(of.archive_file_id);
        });
        query.build().once().execute(&mut *conn).await?;
    }
    Ok(())
}

/// The series of runs that keep the documents of projects apart: one that has numbers does so in
/// all of its versions, or in none.
async fn series_apart(
    conn: &mut Conn,
    runs: &[&ArchivedRun],
) -> Result<BTreeSet<i64>, LedgerError> {
    let ids: BTreeSet<i64> = runs.iter().map(|run| run.newest.series_id).collect();
    let mut query = QueryBuilder::new(
        r#"select distinct series_id from series_version
         where definition like '%"documents":"project"%' and series_id"#,
    );
    query.push_among(ids.into_iter().collect::<Vec<i64>>());
    Ok(query.build().scalar::<i64>().fetch_all(conn).await?.into_iter().collect())
}

/// Whether a value moved to a file, and a number of its counter with this text and this document,
/// or none, did: that of the project, as far as it was kept.
pub(crate) async fn is_archived(conn: &mut Conn, name: ArchivedName) -> Result<bool, LedgerError> {
    let found = query(
        "select 1 from archived_number where number_hash = $1 and counter_id = $2
         and document_hash is not distinct from $4 and coalesce(project_hash, $5) = $5
         and (select path = 'archived' and last_value >= $3 from journal_row
         where counter_id = $2 and first_value <= $3 order by first_value desc limit 1) limit 1",
    )
    .bind(name.number_hash)
    .bind(name.counter_id)
    .bind(name.first)
    .bind(name.document_hash)
    .bind(name.project_hash)
    .fetch_optional(conn)
    .await?;
    Ok(found.is_some())
}

/// Whether a number of any counter with this text moved to a file, in whatever scope: by hash, as
/// in [`has_text`].
pub(crate) async fn is_text_archived(conn: &mut Conn, number: &str) -> Result<bool, LedgerError> {
    let found = query("select 1 from archived_number where number_hash = $1 limit 1")
        .bind(number_hash(number))
        .fetch_optional(conn)
        .await?;
    Ok(found.is_some())
}

/// Whether a number of a counter with this text moved to a file. By hash, with a chance of one in
/// 10¹⁹ for each archived number that it is another one's.
pub(crate) async fn has_text(
    conn: &mut Conn,
    number: &str,
    counter_id: i64,
) -> Result<bool, LedgerError> {
    let found =
        query("select 1 from archived_number where number_hash = $1 and counter_id = $2 limit 1")
            .bind(number_hash(number))
            .bind(counter_id)
            .fetch_optional(conn)
            .await?;
    Ok(found.is_some())
}
