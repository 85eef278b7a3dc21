//! Keeps `docs/settings.md` in step with the settings: names, order, defaults, bounds, example.

use std::path::PathBuf;

use serde_json::Value;

use super::external::WrittenSource;
use super::layer::Layer;
use super::shared::WrittenTable;
use super::{DurationText, Settings, Sources};

/// Settings in whose place the example has another: exactly one of them may be set.
const ALTERNATIVES: [&str; 2] = ["auth.jwt.key_file", "auth.jwt.jwks_file"];

/// The source, and the table, that stand for all of them.
const SOURCE: &str = "erp";
const TABLE: &str = "sites";

/// The page.
const PAGE: &str = include_str!("../../docs/settings.md");

/// One row of the page's tables.
struct Line<'a> {
    setting: &'a str,
    default: &'a str,
    bounds: &'a str,
}

/// Every row that describes a setting.
fn lines() -> Vec<Line<'static>> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [setting, kind, default, bounds, meaning] = cells[..] else {
            panic!("not setting, type, default, bounds, meaning: {row}");
        };
        assert!(!kind.is_empty() && !meaning.is_empty(), "{row}");
        Line { setting: setting.trim_matches('`'), default: default.trim_matches('`'), bounds }
    })
    .collect()
}

/// Every setting with its default; `null` where it has none. Sorted by name.
fn defaults() -> Vec<(String, Value)> {
    // Sources and tables have the names that they are given; the page shows one of each.
    let external = [(SOURCE.to_owned(), WrittenSource::default())].into();
    let reference = [(TABLE.to_owned(), WrittenTable::default())].into();
    let layer = Layer { external, reference, ..Layer::default() };
    let Ok(Value::Object(layer)) = serde_json::to_value(layer) else {
        panic!("sections are tables");
    };
    let mut settings = Vec::new();
    let mut sections = vec![(String::new(), layer)];
    while let Some((prefix, section)) = sections.pop() {
        for (name, value) in section {
            match value {
                Value::Object(inner) => sections.push((format!("{prefix}{name}."), inner)),
                value => settings.push((format!("{prefix}{name}"), value)),
            }
        }
    }
    settings.sort_by(|a, b| a.0.cmp(&b.0));
    settings
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

/// The complete example file.
fn example() -> &'static str {
    let (_, example) = PAGE.split_once("```toml\n").expect("an example");
    example.split_once("```").expect("its end").0
}

#[test]
fn the_page_has_every_setting_with_its_default() {
    let mut lines = lines();
    lines.sort_by_key(|line| line.setting);
    let defaults = defaults();
    let named: Vec<&str> = lines.iter().map(|line| line.setting).collect();
    let wanted: Vec<&str> = defaults.iter().map(|(setting, _)| setting.as_str()).collect();
    assert_eq!(named, wanted);
    for (line, (setting, default)) in lines.iter().zip(&defaults) {
        let default = match default {
            // What stands for a missing value takes more than a literal to say.
            Value::Null => {
                assert!(line.default.starts_with("none"), "{setting}: {}", line.default);
                continue;
            }
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        assert_eq!(line.default, default, "{setting}");
    }
}

#[test]
fn the_page_has_the_order_of_the_sections() {
    let section = |setting: &str| setting.split('.').next().expect("a name").to_owned();
    let mut sections: Vec<String> = lines().iter().map(|line| section(line.setting)).collect();
    sections.dedup();
    let declared = format!("{:?}", Layer::default());
    let at = |section: &String| {
        declared.find(&format!(" {section}: ")).unwrap_or_else(|| panic!("{section}"))
    };
    assert!(sections.is_sorted_by_key(at), "{sections:?}");
}

#[test]
fn the_bounds_of_the_page_are_those_that_are_checked() {
    let mut checked = 0;
    for Line { setting, default, bounds } in lines() {
        // More than any setting may be, and no more than its type holds.
        let too_much = match (default.parse::<u64>(), default.parse::<DurationText>()) {
            (Ok(_), _) => "4000000000",
            (_, Ok(_)) => "4000d",
            _ => continue,
        };
        let is_of_source = setting.starts_with("external.");
        let whole = if is_of_source { "[external.erp]\naddress = \"https://erp/\"\n" } else { "" };
        let refusal = load(whole, &[(setting, too_much)]).expect_err(setting);
        assert!(refusal.ends_with(&format!("; write {bounds}")), "{setting}: {bounds}: {refusal}");
        load(whole, &[(setting, default)]).expect("a default is within its bounds");
        checked += 1;
    }
    assert!(checked > 20, "only {checked} settings were looked at");
}

#[test]
fn the_example_names_every_setting_and_leaves_each_default_as_it_is() {
    let table: toml::Table = example().parse().expect("TOML");
    for (setting, default) in defaults() {
        if ALTERNATIVES.contains(&setting.as_str()) {
            continue;
        }
        let mut path = setting.split('.');
        let mut value = table.get(path.next().expect("a name"));
        for name in path {
            value = value.and_then(|section| section.get(name));
        }
        let value = value.unwrap_or_else(|| panic!("{setting} is not in the example"));
        let value = serde_json::to_value(value).expect("JSON");
        // An empty list and a missing value would show nothing.
        let is_shown_otherwise = default.is_null() || default.is_array();
        assert!(is_shown_otherwise || value == default, "{setting}: {value}, not {default}");
    }
    let settings = load(example(), &[]).expect("the example is accepted");
    assert_eq!(settings.data_dir, PathBuf::from("/var/lib/numerator"));
    assert!(settings.redis.is_some() && settings.auth_tokens.len() == 1);
}
