//! How a Redis server is configured, as far as it concerns what is lost with it.
//!
//! Reads what a server says of itself and changes nothing. A configuration warning names what
//! makes data loss likelier and a recovery more expensive; no number depends on the absence of it.

use std::collections::HashMap;
use std::fmt;

use fred::types::Value;
use tokio::task::JoinSet;

use super::Redis;
use super::link::Link;

/// A setting or state of a Redis server that makes losing data likelier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConfigWarning {
    /// `maxmemory-policy` lets the server drop keys when memory is short.
    Eviction {
        /// The policy in force.
        policy: String,
    },
    /// `appendonly no`.
    NoAppendOnlyFile {
        /// Whether it takes snapshots (`save`); `None`: it does not say.
        snapshots: Option<bool>,
    },
    /// `appendfsync no`.
    LazyAppendOnlyFile,
    /// The last write of the append-only file failed.
    AppendOnlyFileFails,
    /// There are replicas, and `min-replicas-to-write` or `min-replicas-max-lag` is 0.
    NoMinReplicas {
        /// How many replicas are connected.
        replicas: u64,
    },
}

/// What one server says of its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkup {
    /// Where it listens; if no master is known, the servers of `redis.url`.
    pub server: String,
    /// Whether it answered at all.
    pub was_answered: bool,
    /// What is dangerous.
    pub config_warnings: Vec<ConfigWarning>,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
}

impl ConfigWarning {
    /// Its name in answers, log lines and events.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            ConfigWarning::Eviction { .. } => "eviction",
            ConfigWarning::NoAppendOnlyFile { .. } => "no-append-only-file",
            ConfigWarning::LazyAppendOnlyFile => "lazy-append-only-file",
            ConfigWarning::AppendOnlyFileFails => "append-only-file-fails",
            ConfigWarning::NoMinReplicas { .. } => "no-min-replicas",
        }
    }

    /// How to remove it.
    #[must_use]
    pub fn cure(&self) -> &'static str {
        match self {
            ConfigWarning::Eviction { .. } => "CONFIG SET maxmemory-policy noeviction",
            ConfigWarning::NoAppendOnlyFile { .. } => "CONFIG SET appendonly yes",
            ConfigWarning::LazyAppendOnlyFile => "CONFIG SET appendfsync everysec (or always)",
            ConfigWarning::AppendOnlyFileFails => "make room on its disk and see its log",
            ConfigWarning::NoMinReplicas { .. } => {
                "CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 10"
            }
        }
    }
}

/// What it is and what it may lead to.
impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigWarning::Eviction { policy } => write!(
                f,
                "maxmemory-policy is {policy}: keys are dropped when memory is short, and each \
                 loss is a recovery; new documents need the ledger"
            ),
            ConfigWarning::NoAppendOnlyFile { snapshots } => {
                let kept = match snapshots {
                    Some(true) => "what is newer than its last snapshot",
                    Some(false) => "everything",
                    None => "what is newer than its last snapshot, if it takes any,",
                };
                write!(
                    f,
                    "appendonly is no: a restart loses {kept}; with a process that died too, that \
                     is a gap"
                )
            }
            ConfigWarning::LazyAppendOnlyFile => f.write_str(
                "appendfsync is no: a machine that fails loses up to half a minute of writes",
            ),
            ConfigWarning::AppendOnlyFileFails => {
                f.write_str("the append-only file cannot be written: a restart loses what is newer")
            }
            ConfigWarning::NoMinReplicas { replicas } => write!(
                f,
                "{replicas} replicas, but none is needed for a write: a master cut off from them \
                 goes on taking numbers that a fail-over forgets"
            ),
        }
    }
}

impl Redis {
    /// Asks every master for its configuration. Never fails: what is not answered is in
    /// [`Checkup::unchecked`]. Takes a few `redis.command_timeout` at most.
    pub async fn check_up(&self) -> Vec<Checkup> {
        let masters = self.masters.masters().await;
        if masters.is_empty() {
            let server = self.masters.seeds();
            return vec![Checkup::unanswered(server, "no master is known".into())];
        }
        let mut asked = JoinSet::new();
        for link in masters {
            let server = link.address().to_string();
            asked.spawn(async move {
                match check_up(&link).await {
                    Ok(checkup) => Checkup { server, ..checkup },
                    Err(error) => {
                        let error = link.judge(&link.wire(), &error);
                        Checkup::unanswered(server, format!("it does not answer: {error}"))
                    }
                }
            });
        }
        let mut checkups = asked.join_all().await;
        checkups.sort_by(|a, b| a.server.cmp(&b.server));
        checkups
    }
}

impl Checkup {
    /// Nothing could be checked.
    #[must_use]
    pub fn unanswered(server: String, why: String) -> Self {
        Checkup { server, unchecked: vec![why], ..Checkup::default() }
    }
}

async fn check_up(link: &Link) -> Result<Checkup, fred::error::Error> {
    let told = link.inquire("INFO", Vec::new()).await?;
    let text = told.as_str().unwrap_or_default();
    let info = Info::read(&text);
    // What INFO leaves out; a managed server may refuse to answer.
    let name = if info.keeps_append_only_file() { "appendfsync" } else { "save" };
    let told = link.inquire("CONFIG", vec!["GET".into(), name.into()]).await;
    Ok(info.judge(told.map_err(|error| error.details().to_owned()).map(setting)))
}

/// The value in an answer to `CONFIG GET`: a name and its value.
fn setting(answer: Value) -> Option<String> {
    answer.into_array().into_iter().nth(1).and_then(Value::into_string)
}

/// The fields of `INFO`.
struct Info<'a>(HashMap<&'a str, &'a str>);

impl<'a> Info<'a> {
    fn read(text: &'a str) -> Self {
        Info(text.lines().filter_map(|line| line.trim_end().split_once(':')).collect())
    }

    fn keeps_append_only_file(&self) -> bool {
        self.0.get("aof_enabled").is_some_and(|flag| *flag == "1")
    }

    /// Judges the fields, and the one setting that they leave out: `appendfsync` if there is an
    /// append-only file, else `save`.
    fn judge(&self, setting: Result<Option<String>, String>) -> Checkup {
        let mut checkup = Checkup { was_answered: true, ..Checkup::default() };
        let Checkup { config_warnings, unchecked, .. } = &mut checkup;
        let untold = |name: &str| format!("{name}: INFO does not show it");
        match self.0.get("maxmemory_policy") {
            Some(&"noeviction") => {}
            Some(policy) => {
                config_warnings.push(ConfigWarning::Eviction { policy: (*policy).to_owned() });
            }
            None => unchecked.push(untold("maxmemory-policy")),
        }
        let (setting, refusal) = match setting {
            Ok(setting) => (setting, "CONFIG GET answers nothing".to_owned()),
            Err(error) => (None, error),
        };
        if !self.0.contains_key("aof_enabled") {
            unchecked.push(untold("appendonly"));
        } else if self.keeps_append_only_file() {
            if self.0.get("aof_last_write_status").is_some_and(|status| *status != "ok") {
                config_warnings.push(ConfigWarning::AppendOnlyFileFails);
            }
            match setting.as_deref() {
                Some("no") => config_warnings.push(ConfigWarning::LazyAppendOnlyFile),
                Some(_) => {}
                None => unchecked.push(format!("appendfsync: {refusal}")),
            }
        } else {
            let snapshots = setting.map(|save| !save.is_empty());
            config_warnings.push(ConfigWarning::NoAppendOnlyFile { snapshots });
        }
        let replicas = self.0.get("connected_slaves").and_then(|count| count.parse().ok());
        match replicas {
            // Shown only if both settings ask for replicas.
            Some(1..) if !self.0.contains_key("min_slaves_good_slaves") => {
                config_warnings
                    .extend(replicas.map(|replicas| ConfigWarning::NoMinReplicas { replicas }));
            }
            Some(_) => {}
            None => unchecked.push(untold("replicas")),
        }
        checkup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "# Memory\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\n\
        aof_enabled:1\r\naof_last_write_status:ok\r\n# Replication\r\nrole:master\r\n\
        connected_slaves:1\r\nmin_slaves_good_slaves:1\r\n";

    fn judge(info: &str, setting: Result<&str, &str>) -> Checkup {
        Info::read(info).judge(setting.map(|text| Some(text.into())).map_err(Into::into))
    }

    #[test]
    fn a_sound_server_has_no_hazard() {
        let sound = Checkup { was_answered: true, ..Checkup::default() };
        assert_eq!(judge(SOUND, Ok("everysec")), sound);
        let alone = SOUND.replace("slaves:1\r\nmin_slaves", "slaves:0\r\nother");
        assert_eq!(judge(&alone, Ok("always")), sound, "without replicas none are asked for");
    }

    #[test]
    fn each_dangerous_field_is_a_hazard_of_its_own() {
        let config_warnings =
            |from: &str, to: &str, setting| judge(&SOUND.replace(from, to), setting);
        for (from, to, setting, hazard) in [
            (
                "noeviction",
                "allkeys-lru",
                "always",
                ConfigWarning::Eviction { policy: "allkeys-lru".into() },
            ),
            ("status:ok", "status:err", "always", ConfigWarning::AppendOnlyFileFails),
            ("", "", "no", ConfigWarning::LazyAppendOnlyFile),
            (
                "enabled:1",
                "enabled:0",
                "",
                ConfigWarning::NoAppendOnlyFile { snapshots: Some(false) },
            ),
            (
                "enabled:1",
                "enabled:0",
                "3600 1",
                ConfigWarning::NoAppendOnlyFile { snapshots: Some(true) },
            ),
            ("min_slaves", "other", "always", ConfigWarning::NoMinReplicas { replicas: 1 }),
        ] {
            let checkup = config_warnings(from, to, Ok(setting));
            assert_eq!(
                (checkup.config_warnings, checkup.unchecked),
                (vec![hazard], vec![]),
                "{to}"
            );
        }
    }

    #[test]
    fn what_a_server_does_not_tell_could_not_be_checked() {
        let refusal = "NOPERM this user has no permissions to run the 'config|get' command";
        let checkup = judge(SOUND, Err(refusal));
        assert_eq!(checkup.config_warnings, []);
        assert_eq!(checkup.unchecked, [format!("appendfsync: {refusal}")]);
        let checkup = judge(&SOUND.replace("enabled:1", "enabled:0"), Err(refusal));
        assert_eq!(checkup.config_warnings, [ConfigWarning::NoAppendOnlyFile { snapshots: None }]);
        let checkup = judge("", Ok(""));
        assert_eq!((checkup.config_warnings.len(), checkup.unchecked.len()), (0, 3), "{checkup:?}");
    }
}
