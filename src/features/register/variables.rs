//! Variables that a list is filtered by, from all places that name one.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization as _;

use crate::web::body::must_be_storable;
use crate::web::problem::Problem;

/// The variable of the filter by recipient.
const RECIPIENT: &str = "RECIPIENT";

/// The variables to look for: a JSON object, names and values, and a recipient.
///
/// # Errors
/// A text that is no such object, a value that no ledger stores, a name that occurs twice.
pub(super) fn read_variables(
    context: Option<&str>,
    set: Vec<(String, String)>,
    recipient: Option<String>,
) -> Result<BTreeMap<String, String>, Problem> {
    let named: BTreeMap<String, String> = match context {
        None => BTreeMap::new(),
        Some(text) => serde_json::from_str(text).map_err(|_| {
            let why = "must be a JSON object of texts by the names of variables, such as \
                       {\"DISCIPLINE\":\"TER\"}";
            Problem::field("context", why)
        })?,
    };
    let recipient = recipient.map(|recipient| (RECIPIENT.to_owned(), recipient));
    let mut variables = BTreeMap::new();
    for (name, value) in named.into_iter().chain(set).chain(recipient) {
        must_be_storable(&[("context", &Some(name.clone())), ("context", &Some(value.clone()))])?;
        let (name, value) = (name.nfc().collect::<String>(), value.nfc().collect());
        if variables.insert(name.clone(), value).is_some() {
            let why = format!("must name {name} once");
            return Err(Problem::field("context", why));
        }
    }
    Ok(variables)
}
