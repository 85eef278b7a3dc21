//! `numerator series explain`: which series would serve a request, and why the others would not.
//! Takes nothing.

use clap::Args;
use numbering::{Explanation, Inputs, Verdict};
use serde::Serialize;

use crate::config::Settings;
use crate::engine::allocator::AllocError;
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{clock, foresee_catalog};
use crate::terminal::settings::{name_value, set_once};
use crate::terminal::words::table;
use crate::web::Problem;

/// The request to explain.
#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// Document type
    #[arg(long = "type", value_name = "TYPE", required_unless_present = "type_id")]
    pub type_code: Option<String>,
    /// Id of the document type, for series that have a table of types
    #[arg(long, value_name = "ID", conflicts_with = "type_code")]
    pub type_id: Option<String>,
    /// Project
    #[arg(long)]
    pub project: Option<String>,
    /// Id of the project, for series that have a table of projects
    #[arg(long, value_name = "ID", conflicts_with = "project")]
    pub project_id: Option<String>,
    /// Document date: 2025-12-02, or a date-time with offset; now without it
    #[arg(long)]
    pub date: Option<String>,
    /// Value of a variable, such as ORIGINATOR=A, or its id (originator_id=22); may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    pub context: Vec<(String, String)>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The choice and its reasons.
#[derive(Serialize)]
struct ExplainAnswer {
    /// Code of the series that would serve the request.
    chosen: Option<String>,
    /// Why none would.
    problem: Option<String>,
    series: Vec<SeriesAnswer>,
}

/// The result for one series.
#[derive(Serialize)]
struct SeriesAnswer {
    code: String,
    verdict: &'static str,
    why: String,
}

impl SeriesAnswer {
    fn of(explanation: Explanation) -> Self {
        let verdict = match explanation.verdict {
            Verdict::Serves => "serves",
            Verdict::Ties => "ties",
            Verdict::Yields => "yields",
            Verdict::Refuses => "refuses",
        };
        SeriesAnswer { code: explanation.series, verdict, why: explanation.why }
    }
}

/// Prints every series with its verdict; the one that would serve the request comes first.
///
/// # Errors
/// A variable that is set twice, a ledger that cannot be reached. A request that no series serves
/// is an answer, not an error.
pub async fn run(settings: &Settings, args: ExplainArgs) -> anyhow::Result<()> {
    let context = set_once("--context", args.context)?;
    let ExplainArgs { type_code, type_id, project, project_id, date, .. } = args;
    let type_code = type_code.unwrap_or_default();
    let inputs =
        Inputs { type_code, type_id, project, project_id, date, context, ..Inputs::default() };
    let ((_, catalog), now) = (foresee_catalog(settings).await?, clock().now());
    let chosen = catalog.choose(&inputs, now).map_err(AllocError::from).and_then(|served| {
        // A date that cannot be read has chosen nothing.
        served.series.document_day(&inputs, now).map_err(AllocError::from).map(|_| served)
    });
    let answer = ExplainAnswer {
        chosen: chosen.as_ref().ok().map(|served| served.version.definition.code.clone()),
        problem: chosen.err().map(|error| Problem::from(error).to_string()),
        series: catalog.explain(&inputs, now).into_iter().map(SeriesAnswer::of).collect(),
    };
    if args.json {
        print_json(&answer)?;
        return Ok(());
    }
    let mut shown = table(["series", "verdict", "why"]);
    for SeriesAnswer { code, verdict, why } in answer.series {
        shown.add_row([code, verdict.into(), why]);
    }
    let head = match (&answer.chosen, &answer.problem) {
        (Some(code), _) => format!("series {code} would serve the request"),
        (None, problem) => problem.clone().unwrap_or_default(),
    };
    print([head, shown.to_string()])?;
    Ok(())
}
