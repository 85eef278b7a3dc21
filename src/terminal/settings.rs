//! The flags that every command takes: where settings come from, and single settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::config::{Settings, SettingsError, Sources};
use crate::ledger::Migrate;
use crate::telemetry::log;

/// Where the settings come from. Flags cover the environment (`NUMERATOR__SECTION__KEY`), which
/// covers the file.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub struct SettingsArgs {
    /// Settings file (TOML); without it the one that `NUMERATOR_CONFIG` in the environment names
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// `data.dir`: folder of the embedded ledger
    #[arg(long, global = true, value_name = "FOLDER")]
    pub data_dir: Option<String>,
    /// `database.url`: `sqlite:<path>` or `postgres://…`
    #[arg(long, global = true, value_name = "URL")]
    pub database_url: Option<String>,
    /// `redis.url`; without one, the ledger takes the numbers
    #[arg(long, global = true, value_name = "URL")]
    pub redis_url: Option<String>,
    /// `http.listen`: address and port of `serve`
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// `audit.without_key`: write without the key to a ledger that is under seal
    #[arg(long, global = true)]
    pub without_key: bool,
    /// Any setting, such as `--setting log.filter=debug`; may be repeated
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = name_value)]
    pub setting: Vec<(String, String)>,
}

impl SettingsArgs {
    /// Loads the settings and starts the log of a one-shot command. It changes no schema that is
    /// there: reading a ledger must not stop the older program that runs on it.
    ///
    /// # Errors
    /// The first wrong setting.
    pub fn prepare(&self, default_filter: &str) -> Result<Settings, SettingsError> {
        let mut settings = self.prepare_to_migrate(default_filter)?;
        settings.database.migrate = Migrate::Explicit;
        Ok(settings)
    }

    /// The same for a command that changes an older schema where the settings allow it.
    ///
    /// # Errors
    /// The first wrong setting.
    pub fn prepare_to_migrate(&self, default_filter: &str) -> Result<Settings, SettingsError> {
        let settings = self.load()?;
        log::start(&settings.log, default_filter);
        Ok(settings)
    }

    /// Loads the settings.
    ///
    /// # Errors
    /// The first wrong setting.
    pub fn load(&self) -> Result<Settings, SettingsError> {
        Settings::load(&Sources::of_process(self.config.clone(), self.flags())?)
    }

    /// The settings file, where there is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        Sources::of_process(self.config.clone(), Vec::new()).ok()?.file
    }

    /// The flags as names of settings and their values.
    pub(crate) fn flags(&self) -> Vec<(String, String)> {
        let named = [
            ("data.dir", &self.data_dir),
            ("database.url", &self.database_url),
            ("redis.url", &self.redis_url),
            ("http.listen", &self.listen),
        ];
        let named = named.into_iter().filter_map(|(setting, value)| {
            value.as_ref().map(|value| (setting.to_owned(), value.clone()))
        });
        let without_key = self.without_key.then(|| ("audit.without_key".into(), "true".into()));
        self.setting.iter().cloned().chain(named).chain(without_key).collect()
    }
}

/// Reads `NAME=VALUE`; the value may hold further equals signs, or nothing.
pub(crate) fn name_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
    }
}

/// The values of variables by name, each set once by this flag.
///
/// # Errors
/// A variable that is set twice.
pub(crate) fn set_once(
    flag: &str,
    values: Vec<(String, String)>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut context = BTreeMap::new();
    for (name, value) in values {
        if context.insert(name.clone(), value).is_some() {
            bail!("variable {name} is set twice; leave one {flag} {name}=… out");
        }
    }
    Ok(context)
}
