//! `numerator series check`: proves series files on their own, with the tables of reference data in
//! the ledger. Saves nothing, and creates no ledger if there is none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use numbering::{GiveUp, ProofError, ReferenceData, SeriesDefinition};

use crate::config::Settings;
use crate::features::series::command::read_files;
use crate::ledger::SeriesRefusal;
use crate::startup;
use crate::terminal::output::{print, say};
use crate::terminal::ownership::must_own_ledger;
use crate::terminal::session::{clock, refusal};

const EXAMPLES: &str = "Examples:
  numerator series check invoices.toml
  numerator series check *.toml";

/// What to check.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// Series files (TOML)
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Proves the series of files: refuses what `apply` would refuse on a ledger with these tables and
/// no other series.
///
/// # Errors
/// A file with a mistake, or two numbers that could be equal.
pub(crate) async fn run(settings: &Settings, args: &CheckArgs) -> anyhow::Result<()> {
    let definitions = read_files(&args.files)?;
    numbering::check_rules(&definitions)?;
    let tables = tables_for(settings, &definitions).await;
    let accepted =
        numbering::prove_saved(&definitions, &tables, |_| true, &[], &[], &GiveUp::default())
            .map_err(|error| match error {
                ProofError::Ambiguity(ambiguity) => refusal(&SeriesRefusal::Ambiguous(ambiguity)),
                ProofError::Hasty(hasty) => refusal(&SeriesRefusal::Hasty(hasty)),
                other @ (ProofError::Series { .. } | ProofError::GivenUp) => other.into(),
            })?;
    print(definitions.iter().map(|definition| {
        let code = &definition.code;
        match accepted.iter().find(|accepted| accepted.code == *code) {
            Some(accepted) => format!("{code} accepted: {}", accepted.ambiguity),
            None => format!("{code} proved"),
        }
    }))?;
    say(format_args!(
        "numerator: the series of a ledger and the numbers that are out were not looked at; \
         `series apply --dry-run` proves the files beside them, and saves nothing"
    ));
    Ok(())
}

/// The tables of the ledger, if a series refers to any. Reports if they are not read: then they
/// count as empty.
async fn tables_for(settings: &Settings, definitions: &[SeriesDefinition]) -> Arc<ReferenceData> {
    if !definitions.iter().any(SeriesDefinition::refers_to_tables) {
        return Arc::default();
    }
    let why = match read_tables(settings).await {
        Ok(Some(tables)) => return Arc::new(tables),
        Ok(None) => "there is no ledger here".to_owned(),
        Err(error) => format!("the ledger cannot be read: {error:#}"),
    };
    say(format_args!(
        "numerator: no tables are looked into, they count as empty: {why}; `series apply` looks \
         into those of its ledger"
    ));
    Arc::default()
}

/// Whether the ledger is a file that does not exist: opening it would create it.
pub(crate) fn has_no_ledger(settings: &Settings) -> bool {
    let path = settings.database_url.strip_prefix("sqlite:");
    path.is_some_and(|path| !Path::new(path.strip_prefix("//").unwrap_or(path)).exists())
}

/// The tables of the ledger; `None` if it is a file that does not exist.
async fn read_tables(settings: &Settings) -> anyhow::Result<Option<ReferenceData>> {
    if has_no_ledger(settings) {
        return Ok(None);
    }
    must_own_ledger(settings)?;
    let ledger = startup::open(&settings.database_url, settings.database, clock()).await?;
    Ok(Some(ledger.reference().data().await?))
}
