//! `numerator hand-back`: hands a block back, with the numbers that were used.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use uuid::Uuid;

use super::answer::{HandedBackAnswer, ReservationAnswer};
use super::command::print_answer;
use super::handing_back::{self, HandBackOrder, used_of};
use crate::config::Settings;
use crate::terminal::output::must_print;
use crate::terminal::session::{operator, refusal, with_service};
use crate::web::problem::Problem;

const EXAMPLES: &str = "Examples:
  numerator hand-back 0193737a-6a7c-7d0c-9d55-2f4f3b8a9c02 --used book-17.csv
  numerator hand-back 0193737a-6a7c-7d0c-9d55-2f4f3b8a9c02 --used R-0041=shop/17 R-0042=shop/18
  numerator hand-back 0193737a-6a7c-7d0c-9d55-2f4f3b8a9c02 --unused";

/// Which block, and which of its numbers were used.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct HandBackArgs {
    /// The block
    pub reservation: Uuid,
    /// Numbers that were used, or a CSV file with the columns `number` and `document_id`
    #[arg(
        long,
        value_name = "FILE.csv|NUMBER=DOCUMENT",
        num_args = 1..,
        required_unless_present = "unused"
    )]
    pub used: Vec<String>,
    /// None of its numbers was used
    #[arg(long, conflicts_with = "used")]
    pub unused: bool,
    /// Print everything about it, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Hands the block back, and prints what became of its numbers.
///
/// # Errors
/// A file that cannot be read; a refusal, with its slug; a service that cannot start.
pub(super) async fn hand_back(settings: &Settings, args: HandBackArgs) -> anyhow::Result<()> {
    let HandBackArgs { reservation: id, used, unused: _, json } = args;
    let used = used_of(read_used(&used)?.into_iter()).map_err(refusal)?;
    let done = with_service(settings, async |service| {
        let order = HandBackOrder { id, used, owner: None, by: operator() };
        let (context, catalog) = (Arc::clone(&service.context), service.allocator.catalog());
        // A task of its own: what is begun is finished.
        let handing =
            tokio::spawn(async move { handing_back::hand_back(&context, &catalog, order).await });
        handing.await?.map_err(|error| refusal(Problem::from(error)))
    })
    .await?;
    let answer = ReservationAnswer::of_ended(&done.ended, done.replayed);
    print_answer(&answer, json)?;
    match answer.handed_back.filter(|_| !json) {
        Some(HandedBackAnswer { used, returned, spent }) => {
            Ok(must_print([format!("used {used}, returned {returned}, spent {spent}")])?)
        }
        None => Ok(()),
    }
}

/// The numbers and their documents, of arguments and files.
fn read_used(args: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let mut used = Vec::new();
    for arg in args {
        match arg.split_once('=') {
            Some((number, document)) => used.push((number.to_owned(), document.to_owned())),
            None => used.extend(read_file(Path::new(arg))?),
        }
    }
    Ok(used)
}

/// The numbers and their documents of a file.
fn read_file(path: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let shown = path.display();
    let unread = || format!("{shown} cannot be read as CSV");
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).with_context(unread)?;
    let names = reader.headers().with_context(unread)?.clone();
    let place =
        |wanted: &str| names.iter().position(|name| name.trim_start_matches('\u{feff}') == wanted);
    let (Some(number), Some(document)) = (place("number"), place("document_id")) else {
        bail!("{shown}: its first line must name the columns `number` and `document_id`");
    };
    let mut used = Vec::new();
    for record in reader.records() {
        let record = record.with_context(unread)?;
        let field = |place: usize| record.get(place).unwrap_or_default().to_owned();
        used.push((field(number), field(document)));
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_of_arguments_and_of_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("used.csv");
        std::fs::write(&file, "\u{feff}document_id, number\nshop/18, R-2\n").expect("written");
        let args = ["R-1=shop/17=a".to_owned(), file.display().to_string()];
        let pair = |number: &str, document: &str| (number.to_owned(), document.to_owned());
        let used = read_used(&args).expect("numbers");
        assert_eq!(used, [pair("R-1", "shop/17=a"), pair("R-2", "shop/18")]);
        std::fs::write(&file, "number\nR-2\n").expect("written");
        let refused = read_used(&args).expect_err("a column is missing").to_string();
        assert!(refused.contains("document_id"), "{refused}");
        assert!(read_used(&["missing.csv".to_owned()]).is_err());
    }
}
