//! `numerator series from-expression | to-expression`: rule expressions into series files, and
//! series into rule expressions.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use numbering::{EXPRESSION_BYTES_MAX, Expression, SeriesDefinition, Serves};

use crate::config::Settings;
use crate::features::series::series_file::write_series;
use crate::terminal::output::{print, print_json};
use crate::terminal::session::open_catalog;

/// What to make a series of.
#[derive(Clone, Debug, Args)]
pub struct FromExpressionArgs {
    /// File with a rule expression (JSON)
    pub file: PathBuf,
    /// Code of the series
    #[arg(long)]
    pub code: String,
    /// Document type that it serves; may be repeated
    #[arg(long = "type", value_name = "TYPE", required = true)]
    pub types: Vec<String>,
    /// Display name; the code without it
    #[arg(long)]
    pub name: Option<String>,
    /// IANA time zone of dates and periods; UTC without it
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
}

/// What to say as an expression.
#[derive(Clone, Debug, Args)]
pub struct ToExpressionArgs {
    /// Code of the series
    pub code: String,
}

/// Prints the series file of an expression. Saves nothing, and needs no ledger.
///
/// # Errors
/// A file that cannot be read; an expression with a mistake (element, field, remedy).
pub(crate) fn from_expression(args: FromExpressionArgs) -> anyhow::Result<()> {
    let FromExpressionArgs { file, code, types, name, timezone } = args;
    let head = SeriesDefinition {
        name: name.unwrap_or_else(|| code.clone()),
        code,
        timezone,
        serves: Serves { types, ..Serves::default() },
        ..SeriesDefinition::default()
    };
    print([write_series(read_file(&file, head)?)?.trim_end()])?;
    Ok(())
}

/// Reads the expression of a file; never more than the maximum of an expression.
fn read_file(file: &Path, head: SeriesDefinition) -> anyhow::Result<SeriesDefinition> {
    let name = file.display();
    let (mut text, most) = (String::new(), EXPRESSION_BYTES_MAX as u64 + 1);
    File::open(file)
        .and_then(|opened| opened.take(most).read_to_string(&mut text))
        .with_context(|| format!("{name} cannot be read"))?;
    let definition = Expression::parse(&text).and_then(|expression| expression.define(head));
    definition.with_context(|| format!("{name}"))
}

/// Prints the expression of an active series.
///
/// # Errors
/// An unknown code; a series that says more than an expression can.
pub(crate) async fn to_expression(
    settings: &Settings,
    args: &ToExpressionArgs,
) -> anyhow::Result<()> {
    let catalog = open_catalog(settings).await?;
    let code = &args.code;
    let Some(served) = catalog.all().find(|s| s.series.definition().code == *code) else {
        bail!("no active series has the code {code:?}; `numerator series list` lists them");
    };
    let expression = Expression::of(&served.series).with_context(|| format!("series {code}"))?;
    print_json(&expression)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use numbering::read_series;

    #[test]
    fn an_expression_becomes_a_series_file_and_a_mistake_names_the_file() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("contract.json");
        let head = || SeriesDefinition {
            code: "HT".into(),
            name: "合同".into(),
            serves: Serves { types: vec!["HT".into()], ..Serves::default() },
            ..SeriesDefinition::default()
        };
        let read = |text: &str| {
            std::fs::write(&file, text).expect("written");
            read_file(&file, head())
        };
        let made = read(
            r#"[{"key": "variable", "label": "部门", "value": "单位"},
                            {"key": "serial", "value": "1(6)"}]"#,
        )
        .expect("sound");
        let text = write_series(made.clone()).expect("TOML");
        assert_eq!(read_series(&text), Ok(vec![made]), "{text}");
        let wrong = format!("{:#}", read("[]").expect_err("empty"));
        assert!(wrong.contains("contract.json: write an array"), "{wrong}");
        let large =
            format!("{:#}", read(&" ".repeat(EXPRESSION_BYTES_MAX + 9)).expect_err("large"));
        assert!(large.contains("contract.json: the expression has"), "{large}");
        let missing = format!("{:#}", read_file(folder.path(), head()).expect_err("a folder"));
        assert!(missing.contains("cannot be read"), "{missing}");
    }
}
