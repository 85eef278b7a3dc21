//! Keeps `docs/settings.md` in step with the settings: its tables and its complete file are made of
//! their declarations. `REGENERATE=1 cargo test --lib config::page` writes them anew.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::external::WrittenSource;
use super::layer::{Jwt, Layer};
use super::section::Section as _;
use super::shared::WrittenTable;
use super::tokens::{AuthMode, WrittenToken};
use super::{DurationText, ForwardedHeader, JwtAlgorithm, LogFormat, Settings, Sources};
use crate::ledger::Migrate;

/// A setting as it is declared.
pub(crate) struct Declared {
    /// Its name within the section.
    pub(crate) name: &'static str,
    /// Its type, in words.
    pub(crate) kind: &'static str,
    /// Its meaning, in Markdown.
    pub(crate) meaning: String,
    /// Its bounds, in words.
    pub(crate) bounds: String,
    /// The effect of a missing value.
    pub(crate) absent: &'static str,
    /// An example, where its default does not show one.
    pub(crate) example: &'static str,
}

/// The word for a type.
pub(crate) trait Kind {
    /// The kind, as on the page.
    const KIND: &'static str;
}

macro_rules! kinds {
    ($($kind:ty: $word:literal,)*) => {
        $(impl Kind for $kind {
            const KIND: &'static str = $word;
        })*
    };
}

kinds! {
    bool: "boolean",
    u32: "number",
    u64: "number",
    usize: "number",
    String: "text",
    PathBuf: "path",
    SocketAddr: "address",
    DurationText: "duration",
    AuthMode: "text",
    ForwardedHeader: "text",
    LogFormat: "text",
    Migrate: "text",
    Jwt: "table",
    Vec<String>: "list of text",
    Vec<JwtAlgorithm>: "list of text",
    Vec<WrittenToken>: "list of tables",
    BTreeMap<String, Vec<String>>: "table of lists",
}

impl<T: Kind> Kind for Option<T> {
    const KIND: &'static str = T::KIND;
}

/// Settings in whose place the example has another: exactly one of them may be set.
const ALTERNATIVES: [&str; 2] = ["auth.jwt.key_file", "auth.jwt.jwks_file"];

/// The source, and the table, that represent all of them.
const SOURCE: &str = "erp";
const TABLE: &str = "sites";

/// More settings than an operator reads; the last three of them bound reservations.
const SETTINGS_MAX: usize = 63;

/// Longest cell of a table of the page.
const CELL_CHARS_MAX: usize = 200;

/// A token of the complete file.
const TOKENS: &str = "[[auth.tokens]]\nname = \"order-desk\"\n\
    # What `numerator token create order-desk --for-settings` prints.\n\
    sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"\n\
    roles = [\"caller\"]\nrequests_per_minute = 60000\nspeaks_for_people = true\n";

/// The page.
const PAGE: &str = include_str!("../../docs/settings.md");

/// A table of the page: its heading, the section, its subject, and its rows.
struct Listed {
    heading: String,
    section: String,
    /// Whether its rows are settings; otherwise they are fields of one.
    is_of_settings: bool,
    rows: Vec<Declared>,
}

/// Every table.
fn tables() -> Vec<Listed> {
    let of = |section: &str, is_of_settings, rows| Listed {
        heading: format!("## {section}"),
        section: section.to_owned(),
        is_of_settings,
        rows,
    };
    let partitions = Declared {
        name: "partitions",
        kind: u32::KIND,
        meaning: "The number of partitions over which series are spread; fixed when a ledger is \
                  set up. In a file, write it before all sections."
            .into(),
        bounds: format!("1 to {}", super::layer::PARTITIONS_MAX),
        absent: "",
        example: "",
    };
    let many = |name, meaning: &str, most: usize| Declared {
        name,
        kind: "table",
        meaning: meaning.into(),
        bounds: format!("at most {most}, each with a name of its own"),
        absent: "none",
        example: "",
    };
    let source = many("NAME", "A source of [values](numbering.md#values-of-a-source).", 100);
    let table = many("NAME", "A table of [reference data](numbering.md#reference-data).", 1_000);
    let mut tables =
        vec![Listed { section: String::new(), ..of("partitions", true, vec![partitions]) }];
    for (section, rows) in Layer::declared() {
        tables.push(of(section, true, rows));
    }
    let fields = |heading: &str, section: &str, rows| Listed {
        heading: heading.into(),
        ..of(section, false, rows)
    };
    tables.push(fields("### auth.jwt", "auth.jwt", Jwt::declared()));
    tables.push(of("external", true, vec![source]));
    let section = format!("external.{SOURCE}");
    tables.push(fields("### Fields of a source", &section, WrittenSource::declared()));
    tables.push(of("reference", true, vec![table]));
    let section = format!("reference.{TABLE}");
    tables.push(fields("### Fields of a table", &section, WrittenTable::declared()));
    tables
}

/// The defaults of a section.
fn defaults(section: &str) -> Map<String, Value> {
    // Sources and tables have the names that they are given; one of each represents all.
    let external = [(SOURCE.to_owned(), WrittenSource::default())].into();
    let reference = [(TABLE.to_owned(), WrittenTable::default())].into();
    let layer = Layer { external, reference, ..Layer::default() };
    let mut value = serde_json::to_value(layer).expect("JSON");
    for name in section.split('.').filter(|name| !name.is_empty()) {
        value = value[name].take();
    }
    let Value::Object(section) = value else { panic!("{section} is a table") };
    section
}

/// The name of a setting with its section.
fn full_name(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

impl Listed {
    /// The lines of the table.
    fn render(&self) -> String {
        let first = if self.is_of_settings { "setting" } else { "field" };
        let mut text = format!("| {first} | type | default | bounds | meaning |\n");
        text += "|---|---|---|---|---|\n";
        let defaults = defaults(&self.section);
        for Declared { name, kind, meaning, bounds, absent, .. } in &self.rows {
            let default = match defaults.get(*name) {
                Some(Value::String(text)) => format!("`{text}`"),
                None | Some(Value::Null | Value::Object(_)) => (*absent).to_owned(),
                Some(other) => format!("`{other}`"),
            };
            let shown =
                if self.is_of_settings { full_name(&self.section, name) } else { (*name).into() };
            text += &format!("| `{shown}` | {kind} | {default} | {bounds} | {meaning} |\n");
        }
        text
    }

    /// The lines of the complete file.
    fn example(&self) -> String {
        let section = &self.section;
        let mut text = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
        let defaults = defaults(section);
        for Declared { name, example, .. } in &self.rows {
            let full_name = full_name(section, name);
            let value = match defaults.get(*name) {
                Some(Value::Object(_)) | None => continue,
                Some(_) if !example.is_empty() => (*example).to_owned(),
                Some(default) => default.to_string(),
            };
            let is_head = value.starts_with("[[");
            let sign = if ALTERNATIVES.contains(&&*full_name) { "# or: " } else { "" };
            if !is_head {
                text += &format!("{sign}{name} = {value}\n");
            }
        }
        if section == "auth" { format!("{text}\n{TOKENS}") } else { text }
    }
}

/// The complete file.
fn example() -> String {
    let mut tables = tables();
    // A section within a section follows it.
    let jwt = tables.iter().position(|it| it.section == "auth.jwt").expect("a table");
    let jwt = tables.remove(jwt);
    let auth = tables.iter().position(|it| it.section == "auth").expect("a table");
    tables.insert(auth + 1, jwt);
    let is_shown = |it: &&Listed| !["external", "reference"].contains(&&*it.section);
    let sections: Vec<String> = tables.iter().filter(is_shown).map(Listed::example).collect();
    sections.join("\n")
}

/// The page with its tables and its complete file as they should be.
fn rendered() -> String {
    let mut page = PAGE.to_owned();
    for table in tables() {
        let heading = format!("\n{}\n", table.heading);
        let at = page.find(&heading).unwrap_or_else(|| panic!("no {}", table.heading));
        let from =
            at + page[at..].find("\n| ").unwrap_or_else(|| panic!("{heading}: no table")) + 1;
        let to = from + page[from..].find("\n\n").expect("text behind it") + 1;
        page.replace_range(from..to, &table.render());
    }
    let from = page.find("```toml\n").expect("an example") + "```toml\n".len();
    let to = from + page[from..].find("```").expect("its end");
    page.replace_range(from..to, &example());
    page
}

/// Settings of a file with this text and these flags.
pub(super) fn load(text: &str, flags: &[(&str, &str)]) -> Result<Settings, String> {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("numerator.toml");
    std::fs::write(&file, text).expect("written");
    let flags = flags.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let environment = vec![("HOME".into(), "/users/clerk".into())];
    let sources = Sources { file: Some(file), environment, flags };
    Settings::load(&sources).map_err(|error| error.to_string())
}

#[test]
fn the_page_has_every_setting_as_it_is_declared() {
    let page = rendered();
    if std::env::var_os("REGENERATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/settings.md");
        std::fs::write(path, &page).expect("written");
        return;
    }
    let mut lines = page.lines().zip(PAGE.lines());
    let differs = lines.find(|(wanted, line)| wanted != line);
    assert!(page == PAGE, "REGENERATE=1 writes docs/settings.md anew: {differs:?}");
}

#[test]
fn no_more_settings_than_an_operator_reads_and_no_cell_that_nobody_reads() {
    let settings: usize =
        tables().iter().filter(|it| it.is_of_settings).map(|it| it.rows.len()).sum();
    assert!(settings <= SETTINGS_MAX, "{settings} settings");
    let cells = PAGE.lines().filter(|line| line.starts_with('|')).flat_map(|row| row.split(" | "));
    let long: Vec<&str> = cells.filter(|cell| cell.chars().count() > CELL_CHARS_MAX).collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn the_page_has_the_order_of_the_sections() {
    let headings = tables().into_iter().filter(|it| it.is_of_settings).map(|it| it.heading);
    let at = |heading: &String| PAGE.find(&format!("\n{heading}\n"));
    assert!(headings.is_sorted_by_key(|heading| at(&heading)));
}

#[test]
fn the_bounds_of_the_page_are_those_that_are_checked() {
    let mut checked = 0;
    for Listed { section, rows, .. } in tables() {
        let defaults = defaults(&section);
        for Declared { name, bounds, .. } in rows {
            // More than any setting may be, and no more than its type holds.
            let (default, too_much) = match defaults.get(name) {
                Some(Value::Number(number)) => (number.to_string(), "4000000000"),
                Some(Value::String(text)) if text.parse::<DurationText>().is_ok() => {
                    (text.clone(), "4000d")
                }
                _ => continue,
            };
            let is_of_source = section.starts_with("external.");
            let whole = "[external.erp]\naddress = \"https://erp/\"\n";
            let whole = if is_of_source { whole } else { "" };
            let setting = full_name(&section, name);
            let refusal = load(whole, &[(&setting, too_much)]).expect_err(&setting);
            assert!(refusal.ends_with(&format!("; write {bounds}")), "{setting}: {refusal}");
            load(whole, &[(&setting, &default)]).expect("a default is within its bounds");
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} settings were looked at");
}

#[test]
fn the_complete_file_is_accepted() {
    let text = example();
    let settings = load(&text, &[]).expect("the example is accepted");
    assert_eq!(settings.data_dir, PathBuf::from("/var/lib/numerator"));
    assert!(settings.redis.is_some() && settings.auth_tokens.len() == 1);
    assert!(settings.auth_jwt.is_some() && settings.external.len() == 1, "{text}");
}
