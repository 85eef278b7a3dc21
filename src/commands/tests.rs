//! What the command line accepts, and what it refuses with exit code 2.

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;
use crate::auth::COUNT_MAX;
use crate::features::series::command::SeriesCommand;
use crate::features::tokens::command::TokenCommand;

fn read(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

fn command(line: &str) -> Command {
    read(line).expect(line).command
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// The page of commands; its table is between two marks.
const PAGE: &str = "docs/cli.md";
const TABLE_BEGINS: &str = "<!-- commands: made from the command line -->\n";
const TABLE_ENDS: &str = "<!-- end of commands -->\n";

/// Longest cell of the table, in bytes; further options are left to `--help`.
const CELL_MAX: usize = 200;

/// A row for each command that runs, below its parents' names.
fn rows(parents: &str, command: &clap::Command) -> Vec<String> {
    let name = format!("{parents} {}", command.get_name());
    let below = command.get_subcommands().filter(|one| one.get_name() != "help");
    let own = (!command.is_subcommand_required_set()).then(|| row(&name, command));
    own.into_iter().chain(below.flat_map(|one| rows(&name, one))).collect()
}

/// The row of a command: how it is called, its first sentence, its own options.
fn row(name: &str, command: &clap::Command) -> String {
    let values = command.get_positionals().map(|value| format!(" {value}"));
    let call: String = std::iter::once(name.to_owned()).chain(values).collect();
    let call = call.trim_start_matches(" numerator ");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let is_own = |arg: &&clap::Arg| !arg.is_global_set() && !arg.is_hide_set();
    let own = command.get_arguments().filter(is_own).filter_map(clap::Arg::get_long);
    let mut options = String::new();
    for option in own.filter(|option| *option != "help") {
        let separator = if options.is_empty() { "" } else { ", " };
        let more = format!("{separator}`--{option}`");
        if options.len() + more.len() > CELL_MAX {
            options += ", …";
            break;
        }
        options += &more;
    }
    format!("| `{call}` | {} | {options} |\n", about.replace('|', "\\|"))
}

/// Goal: every command can be found on the page of commands, as the program describes it. Method:
/// the table is rendered from the command line; `REGENERATE=1` with this test writes it anew.
#[test]
fn the_page_of_commands_has_the_table_of_the_command_line() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&file).expect("the page");
    let (before, rest) = page.split_once(TABLE_BEGINS).expect("where the table begins");
    let (table, after) = rest.split_once(TABLE_ENDS).expect("where the table ends");
    let mut all = Cli::command();
    all.build();
    let wanted =
        format!("| command | what it does | options |\n|---|---|---|\n{}", rows("", &all).concat());
    if std::env::var_os("REGENERATE").is_some() {
        let page = format!("{before}{TABLE_BEGINS}{wanted}{TABLE_ENDS}{after}");
        std::fs::write(&file, page).expect("written");
        return;
    }
    assert_eq!(table, wanted, "REGENERATE=1 writes {PAGE} anew");
}

/// Goal: a user's first attempts work. Method: each example of a help text is parsed like a typed
/// line.
#[test]
fn the_examples_of_each_help_are_lines_that_the_command_takes() {
    let mut all = Cli::command();
    all.build();
    let mut seen = Vec::new();
    let mut waiting: Vec<&clap::Command> = all.get_subcommands().collect();
    while let Some(command) = waiting.pop() {
        waiting.extend(command.get_subcommands());
        let Some(help) = command.get_after_help() else { continue };
        let help = help.to_string();
        for line in help.lines().filter_map(|line| line.strip_prefix("  ")) {
            let words = shlex::split(line).expect("words");
            Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
            let own = command.get_bin_name().expect("built");
            assert!(line.starts_with(own), "{line} is no example of {own}");
        }
        seen.push(command.get_name());
    }
    seen.sort_unstable();
    let first = [
        "apply",
        "archive",
        "assign",
        "check",
        "checkpoints",
        "correct",
        "counters",
        "doctor",
        "events",
        "export",
        "find",
        "gaps",
        "hand-back",
        "import",
        "keygen",
        "move-counter",
        "next",
        "parse",
        "register",
        "reserve",
        "rollback",
        "serve",
        "statement",
        "status",
        "verify",
        "verify",
        "void",
    ];
    assert_eq!(seen, first);
}

#[test]
fn shells_and_manual_pages_know_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    manual::man(&manual::ManArgs { folder: folder.path().into() }).expect("written");
    for command in Cli::command().get_subcommands() {
        let page = folder.path().join(format!("numerator-{}.1", command.get_name()));
        assert!(page.exists(), "{}", page.display());
    }
    let nowhere = manual::ManArgs { folder: folder.path().join("none") };
    let refused = manual::man(&nowhere).expect_err("no such folder");
    assert!(refused.to_string().contains("none cannot be written"), "{refused}");
    let line = command("numerator completions bash");
    assert!(matches!(line, Command::Completions(_)));
}

#[test]
fn next_takes_the_inputs_of_a_number() {
    let line = "numerator next RFA --date 2025-12-02 --phase P2 --project LCBP3-C2 \
                --set DISCIPLINE=TER --set NOTE=a=b --set EMPTY= --count 3 --document D1 --json";
    let Command::Next(args) = command(line) else { panic!("not next") };
    assert!(args.json);
    let request = args.inputs.request(args.document, args.count).expect("request");
    assert_eq!(request.inputs.type_code, "RFA");
    assert_eq!(request.inputs.date.as_deref(), Some("2025-12-02"));
    assert_eq!(request.inputs.phase.as_deref(), Some("P2"));
    assert_eq!(request.inputs.project.as_deref(), Some("LCBP3-C2"));
    assert_eq!(request.inputs.context["DISCIPLINE"], "TER");
    assert_eq!(request.inputs.context["NOTE"], "a=b");
    assert_eq!(request.inputs.context["EMPTY"], "");
    assert_eq!((request.count, request.document_id.as_deref()), (3, Some("D1")));
}

#[test]
fn next_takes_one_number_unless_told_otherwise() {
    let Command::Next(args) = command("numerator next SPO") else { panic!("not next") };
    let request = args.inputs.request(args.document, args.count).expect("request");
    assert_eq!((request.count, request.document_id, request.again), (1, None, false));
}

#[test]
fn a_variable_set_twice_is_refused() {
    let line = "numerator preview RFA --set REV=A --set REV=B";
    let Command::Preview(args) = command(line) else { panic!("not preview") };
    let refusal = args.inputs.request(None, 1).expect_err("refused").to_string();
    assert!(refusal.contains("REV is set twice"), "{refusal}");
}

#[test]
fn wrong_usage_ends_with_2() {
    for line in [
        "numerator next".to_owned(),
        "numerator next SPO --set REV".to_owned(),
        "numerator next SPO --set =A".to_owned(),
        "numerator next SPO --count 0".to_owned(),
        format!("numerator next SPO --count {}", COUNT_MAX + 1),
        "numerator series apply".to_owned(),
        "numerator series".to_owned(),
        "numerator parse".to_owned(),
        "numerator revise D1".to_owned(),
        "numerator series close-period SPO --before 2025-01-01".to_owned(),
        "numerator parse SPO-20240122-001 --project P".to_owned(),
        "numerator token create".to_owned(),
        "numerator token revoke orders".to_owned(),
        "numerator token rotate orders --grace 3".to_owned(),
        "numerator reference import rows.csv".to_owned(),
        "numerator series explain".to_owned(),
        "numerator next RFA --project P --project-id 1".to_owned(),
        "numerator nonsense".to_owned(),
        "numerator fallback".to_owned(),
        "numerator fallback maybe".to_owned(),
        "numerator gaps --reason bad-luck".to_owned(),
        "numerator gaps --limit 0".to_owned(),
        "numerator drain --patience 3".to_owned(),
        "numerator reconcile --margin 5 --apply".to_owned(),
        "numerator reconcile --without-redis".to_owned(),
        "numerator reconcile --ledger-restored --hold".to_owned(),
        "numerator reconcile --ledger-restored --new-epoch".to_owned(),
        "numerator reconcile --ledger-restored --patience 3s".to_owned(),
        "numerator --setting x serve".to_owned(),
    ] {
        assert_eq!(read(&line).expect_err(&line).exit_code(), 2, "{line}");
    }
    let help = read("numerator --help").expect_err("help");
    assert_eq!((help.kind(), help.exit_code()), (ErrorKind::DisplayHelp, 0));
}

#[test]
fn flags_name_settings_before_and_after_the_command() {
    let line = "numerator --data-dir /d serve --listen 127.0.0.1:9 --redis-url redis://r \
                --database-url sqlite:x --setting log.filter=a=debug --setting http.listen=x";
    let flags = read(line).expect(line).settings.flags();
    let expected = [
        ("log.filter", "a=debug"),
        // A flag of its own comes after --setting and so covers it.
        ("http.listen", "x"),
        ("data.dir", "/d"),
        ("database.url", "sqlite:x"),
        ("redis.url", "redis://r"),
        ("http.listen", "127.0.0.1:9"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(flags, expected);
}

#[test]
fn every_command_of_the_reference_is_there() {
    for (line, is_it) in [
        ("numerator serve", matches!(command("numerator serve"), Command::Serve)),
        (
            "status",
            matches!(command("numerator status --json"), Command::Status(args) if args.json),
        ),
        (
            "verify",
            matches!(command("numerator verify --json"), Command::Verify(args) if args.json),
        ),
        (
            "apply",
            matches!(
                command("numerator series apply a.toml b.toml"),
                Command::Series(SeriesCommand::Apply(args)) if args.files.len() == 2
            ),
        ),
        (
            "list",
            matches!(
                command("numerator series list --json"),
                Command::Series(SeriesCommand::List(args)) if args.json
            ),
        ),
        (
            "show",
            matches!(
                command("numerator series show SPO"),
                Command::Series(SeriesCommand::Show(args)) if args.code == "SPO"
            ),
        ),
        (
            "parse",
            matches!(
                command("numerator parse SPO SPO-20240122-001 --project P"),
                Command::Parse(args) if args.number == "SPO-20240122-001"
            ),
        ),
        (
            "token",
            matches!(
                command("numerator token create ci"),
                Command::Token(TokenCommand::Create(args)) if args.token.name == "ci"
            ),
        ),
    ] {
        assert!(is_it, "{line}");
    }
}

#[test]
fn rules_are_explained_and_tables_imported() {
    for (line, is_it) in [
        (
            "explain",
            matches!(
                command("numerator series explain --type RFA --context ORIGINATOR=A --json"),
                Command::Series(SeriesCommand::Explain(args)) if args.context.len() == 1
            ),
        ),
        (
            "import",
            matches!(
                command("numerator reference import m.csv --table organizations --of projects"),
                Command::Reference(reference::command::ReferenceCommand::Import(args))
                    if !args.apply && args.of.as_deref() == Some("projects")
            ),
        ),
        (
            "reference list",
            matches!(
                command("numerator reference list types --json"),
                Command::Reference(reference::command::ReferenceCommand::List(args)) if args.json
            ),
        ),
    ] {
        assert!(is_it, "{line}");
    }
}

#[test]
fn every_command_of_the_runbook_is_there_and_writes_only_when_told_to() {
    let line = "numerator reconcile --partition 3 --new-epoch";
    let Command::Reconcile(args) = command(line) else { panic!("not reconcile") };
    assert_eq!((args.partition, args.new_epoch, args.apply), (Some(3), true, false));
    let line = "numerator reconcile --ledger-restored --partition 3 --margin 100 --json";
    let Command::Reconcile(args) = command(line) else { panic!("not reconcile") };
    assert!(args.restored.ledger_restored && args.json && !args.apply);
    assert_eq!((args.partition, args.restored.margin), (Some(3), Some(100)));
    let Command::Drain(args) = command("numerator drain --patience 3s") else {
        panic!("not drain")
    };
    assert_eq!((args.patience.0.as_secs(), args.apply), (3, false));
    let line = "numerator fallback off --dry-run";
    let Command::Fallback(args) = command(line) else { panic!("not fallback") };
    assert!(args.switch == operations::fallback::Switch::Off && args.dry_run);
    let line = "numerator gaps --explain --reason discarded --series SPO";
    let Command::Gaps(args) = command(line) else { panic!("not gaps") };
    assert!(
        args.explain
            && !args.settle
            && args.reason == Some(register::gaps_command::Reason::Discarded)
    );
}
