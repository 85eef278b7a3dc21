//! The actors whose rows a look-up reads: an identity, a person through any identity, or both.
//! Reads the small table of names, never the journal.

use numerator_runtime::actor::through;

use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::{JournalFilter, LedgerError};

/// Actors whose rows are looked for one after the other, each by its index; of more, all rows are
/// looked through.
const ACTORS_MAX: usize = 32;

/// The actors whose rows are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// All of them.
    Any,
    /// By the id of a name.
    Id(i32),
    /// By names, of which there are too many to look for each.
    Named(Vec<String>),
    /// By the identity, for any person.
    Service(String),
}

/// The actors that a filter asks for, in parts; each part has an order of its own.
pub(crate) async fn of(conn: &mut Conn, filter: &JournalFilter) -> Result<Vec<User>, LedgerError> {
    let own = match (&filter.user_id, &filter.service) {
        (None, None) => return Ok(vec![User::Any]),
        (Some(person), Some(service)) if person != service => through(service, person),
        (Some(name), _) | (None, Some(name)) => name.clone(),
    };
    let actors = named(conn, filter, &own).await?;
    if actors.len() <= ACTORS_MAX {
        return Ok(actors.into_iter().map(|(id, _)| User::Id(id)).collect());
    }
    Ok(vec![match &filter.service {
        Some(service) if filter.user_id.is_none() => User::Service(service.clone()),
        _ => User::Named(actors.into_iter().map(|(_, name)| name).collect()),
    }])
}

/// The names that a filter asks for. Of an identity alone, no more than are looked for one by one:
/// it may speak for any number of people.
async fn named(
    conn: &mut Conn,
    filter: &JournalFilter,
    own: &str,
) -> Result<Vec<(i32, String)>, LedgerError> {
    let mut query = QueryBuilder::new("select name_id, name from journal_name where name = ");
    query.push_bind(own);
    match (&filter.service, &filter.user_id) {
        (Some(service), None) => {
            // The sign after `/` is `0`.
            query.push(" or (name > ").push_bind(through(service, ""));
            query.push(" and name < ").push_bind(format!("{service}0"));
            query.push(") limit ").push_bind(ACTORS_MAX as i64 + 1);
        }
        (None, Some(person)) => {
            query.push(" or name like ").push_bind(through("%", &literal(person)));
            query.push(" escape '!'");
        }
        // An identity that asked for itself has no person.
        _ => {}
    }
    let actors: Vec<(i32, String)> = query.build().typed().fetch_all(conn).await?;
    // A pattern does not fix the place of the first sign, nor, in SQLite, distinguish A from a.
    Ok(actors.into_iter().filter(|(_, actor)| filter.is_of_actor(actor)).collect())
}

/// A text as a pattern that means itself, escaped by `!`.
fn literal(text: &str) -> String {
    text.replace('!', "!!").replace('%', "!%").replace('_', "!_")
}
