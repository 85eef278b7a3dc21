//! The projects under which the requested documents have rows: rows have codes, and a project of a
//! table keeps its documents under each of its names.
//!
//! The codes that a row ever had are read from the ledger. The asking process may not know of a
//! renaming under which another one has numbered.

use std::collections::{BTreeMap, BTreeSet};

use numbering::DocumentsOf;

use crate::Projects;
use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::{LedgerError, Question};

/// Codes of rows, by table and id.
type Codes = BTreeMap<(String, String), Vec<String>>;

/// The projects of each question's document. Read after the names of the documents are locked.
pub(crate) async fn of(
    conn: &mut Conn,
    questions: &[Question],
) -> Result<Vec<Projects>, LedgerError> {
    let codes = codes_of(conn, questions).await?;
    let projects = |question: &Question| match &question.documents {
        DocumentsOf::Series => Projects::Any,
        DocumentsOf::NoProject => Projects::These(vec![String::new()]),
        DocumentsOf::Project(code) => Projects::These(vec![code.clone()]),
        DocumentsOf::Row { table, id } => {
            let row = codes.get(&(table.clone(), id.clone()));
            Projects::These(row.cloned().unwrap_or_default())
        }
    };
    Ok(questions.iter().map(projects).collect())
}

async fn codes_of(conn: &mut Conn, questions: &[Question]) -> Result<Codes, LedgerError> {
    let mut asked: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for question in questions.iter().filter(|question| question.document_id.is_some()) {
        if let DocumentsOf::Row { table, id } = &question.documents {
            asked.entry(table).or_default().insert(id);
        }
    }
    let mut codes = Codes::new();
    for (table, ids) in asked {
        let mut query =
            QueryBuilder::new("select reference_id, code from reference_code where table_name = ");
        query.push_bind(table).push(" and reference_id in ");
        for (index, id) in ids.into_iter().enumerate() {
            query.push(if index == 0 { "(" } else { ", " }).push_bind(id);
        }
        query.push(")");
        let rows: Vec<(String, String)> =
            query.build().once().typed().fetch_all(&mut *conn).await?;
        for (id, code) in rows {
            codes.entry((table.to_owned(), id)).or_default().push(code);
        }
    }
    Ok(codes)
}
