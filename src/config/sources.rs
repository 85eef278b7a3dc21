//! The sources of settings, and the order in which they cover each other.
//!
//! Each value is checked separately before it is merged, so that an error names the setting and the
//! place where it was written, for every source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use numbering::{Misfit, json_of_toml, place_of, read_written};
use thiserror::Error;
use toml::{Table, Value};

use super::forms;
use super::layer::Layer;

/// Names the settings file where no flag does: for commands next to a service in a container.
const FILE_VARIABLE: &str = "NUMERATOR_CONFIG";
/// Variables of the environment that are settings begin so: `NUMERATOR__HTTP__LISTEN`.
const VARIABLE_PREFIX: &str = "NUMERATOR__";

/// The sources of the settings, from the lowest to the highest.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// The environment: every variable and its value.
    pub environment: Vec<(String, String)>,
    /// Flags, as names of settings (`http.listen`) and their values.
    pub flags: Vec<(String, String)>,
}

/// Why the settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// The settings file cannot be read.
    #[error("settings file {file}: {reason}; check the path given by --config or NUMERATOR_CONFIG")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// The settings file is not TOML.
    #[error("settings file {file}, line {line}, column {column}: {reason}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// A setting is unknown, of the wrong kind or out of bounds.
    #[error("setting {setting} ({origin}): {reason}")]
    Wrong {
        /// Its name, such as `http.listen`.
        setting: String,
        /// The place where it was written.
        origin: String,
        /// What is wrong, and the remedy.
        reason: String,
    },
}

/// All sources laid over each other.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// The settings of all sources together, of the right kinds but not yet within their bounds.
    pub(super) layer: Layer,
    /// The same as TOML, while it is laid together.
    table: Table,
    /// The place of each setting's value; a default has none.
    origins: BTreeMap<String, String>,
}

impl Sources {
    /// The sources of this process: its environment, and its command line.
    ///
    /// # Errors
    /// A setting in the environment that is not Unicode.
    pub fn of_process(
        file: Option<PathBuf>,
        flags: Vec<(String, String)>,
    ) -> Result<Self, SettingsError> {
        let named = std::env::var_os(FILE_VARIABLE).filter(|path| !path.is_empty());
        let file = file.or_else(|| named.map(PathBuf::from));
        let mut environment = Vec::new();
        for (variable, value) in std::env::vars_os() {
            match (variable.into_string(), value.into_string()) {
                (Ok(variable), Ok(value)) => environment.push((variable, value)),
                (Ok(variable), Err(_)) if variable.starts_with(VARIABLE_PREFIX) => {
                    return Err(SettingsError::Wrong {
                        setting: name_of_variable(&variable),
                        origin: format!("environment variable {variable}"),
                        reason: "is not Unicode; write it as UTF-8".into(),
                    });
                }
                _ => {}
            }
        }
        Ok(Sources { file, environment, flags })
    }

    /// Lays the sources over each other.
    pub(super) fn merge(&self) -> Result<Merged, SettingsError> {
        let mut merged = Merged::default();
        if let Some(file) = &self.file {
            merged.add_file(file)?;
        }
        for (variable, value) in &self.environment {
            if variable.starts_with(VARIABLE_PREFIX) {
                let origin = format!("environment variable {variable}");
                merged.add_text(&name_of_variable(variable), value, origin)?;
            }
        }
        for (setting, value) in &self.flags {
            merged.add_text(setting, value, "command line".into())?;
        }
        // Every value was accepted separately, and sections have no rules across their fields here.
        merged.layer = read(merged.table.clone())
            .map_err(|misfit| merged.blame("settings", forms::reason_of("settings", &misfit)))?;
        Ok(merged)
    }
}

impl Merged {
    /// An error about a setting, with the place where its value was written.
    pub(super) fn blame(&self, setting: &str, reason: String) -> SettingsError {
        let section = setting.rsplit_once('.').map_or(setting, |(section, _)| section);
        let origin = self.origins.get(setting).or_else(|| self.origins.get(section));
        let origin = origin.map_or("default", String::as_str).into();
        SettingsError::Wrong { setting: setting.into(), origin, reason }
    }

    /// Adds a file. Its errors show line and column as well as the name of the setting.
    fn add_file(&mut self, path: &Path) -> Result<(), SettingsError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| SettingsError::Unreadable {
            file: file.clone(),
            reason: error.to_string(),
        })?;
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let (line, column) = position(&text, &error);
            SettingsError::Syntax {
                file: file.clone(),
                line,
                column,
                reason: error.message().into(),
            }
        })?;
        if let Err(misfit) = read(table.clone()) {
            let setting = forms::setting_of(&misfit);
            let origin = format!("{file}, {}", place_of(&text, &misfit));
            let reason = forms::reason_of(&setting, &misfit);
            return Err(SettingsError::Wrong { setting, origin, reason });
        }
        for (setting, value) in leaves(&table) {
            self.origins.insert(setting.clone(), file.clone());
            put(&mut self.table, &setting, value);
        }
        Ok(())
    }

    /// Adds a value that came as text: as a string where the setting takes one, else as TOML.
    fn add_text(&mut self, setting: &str, text: &str, origin: String) -> Result<(), SettingsError> {
        let candidates = [Some(Value::String(text.into())), read_value(text)];
        let mut refusal = String::new();
        for value in candidates.into_iter().flatten() {
            match check_alone(setting, value.clone()) {
                Ok(()) => {
                    self.origins.insert(setting.into(), origin);
                    put(&mut self.table, setting, value);
                    return Ok(());
                }
                Err(reason) => refusal = reason,
            }
        }
        Err(SettingsError::Wrong { setting: setting.into(), origin, reason: refusal })
    }
}

/// Reads settings that were written as TOML.
fn read(table: Table) -> Result<Layer, Misfit> {
    read_written(&json_of_toml(Value::Table(table)))
}

/// `NUMERATOR__HTTP__LISTEN` is `http.listen`.
fn name_of_variable(variable: &str) -> String {
    let name = variable.strip_prefix(VARIABLE_PREFIX).unwrap_or(variable);
    name.split("__").map(str::to_ascii_lowercase).collect::<Vec<_>>().join(".")
}

/// A text as a TOML value, where it is exactly one.
fn read_value(text: &str) -> Option<Value> {
    let mut table: Table = format!("value = {text}").parse().ok()?;
    if table.len() == 1 { table.remove("value") } else { None }
}

/// Whether the settings would accept this one value.
fn check_alone(setting: &str, value: Value) -> Result<(), String> {
    let mut alone = Table::new();
    put(&mut alone, setting, value);
    read(alone).map(drop).map_err(|misfit| forms::reason_of(setting, &misfit))
}

/// Puts a value under its dotted name. A value that is in the way of the name is replaced.
fn put(table: &mut Table, setting: &str, value: Value) {
    let Some((section, rest)) = setting.split_once('.') else {
        table.insert(setting.into(), value);
        return;
    };
    let entry = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if !entry.is_table() {
        *entry = Value::Table(Table::new());
    }
    if let Value::Table(inner) = entry {
        put(inner, rest, value);
    }
}

/// The settings of a file with their dotted names; a section within a section (`auth.jwt`) is one
/// value.
fn leaves(table: &Table) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(section) if !section.is_empty() => found.extend(
                section.iter().map(|(inner, value)| (format!("{name}.{inner}"), value.clone())),
            ),
            _ => found.push((name.clone(), value.clone())),
        }
    }
    found
}

/// Line and column, from 1, of an error in a text.
fn position(text: &str, error: &toml::de::Error) -> (usize, usize) {
    let offset = error.span().map_or(0, |span| span.start).min(text.len());
    let before = text.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
