//! One call of one script: its source, its keys and its arguments, encoded once.
//!
//! Knows the scripts' text and the order of their arguments; sends nothing. Every call begins with
//! an echo that its reply must carry, so that a reply of another call is recognised.

use std::collections::HashMap;
use std::sync::LazyLock;

use fred::types::scripts::Script;
use fred::types::{Key, Value};
use numbering::hexadecimal;
use sha2::{Digest, Sha256};

/// Joins a script with the functions that it uses.
macro_rules! script {
    ($verb:literal $(, $lib:literal)*) => {
        LazyLock::new(|| Script::from_lua(concat!(
            $(include_str!(concat!("../../../lua/lib/", $lib, ".lua")),)*
            include_str!(concat!("../../../lua/", $verb, ".lua"))
        )))
    };
}

static ISSUE: LazyLock<Script> = script!(
    "issue",
    "clock",
    "admitted",
    "marked",
    "lines",
    "integer",
    "decimal",
    "server",
    "owned",
    "guard",
    "counter",
    "working",
    "take",
    "cold",
    "bucket",
    "place",
    "unpacked",
    "written",
    "witness",
    "evicts",
    "viewed",
    "expected",
    "complete",
    "recall",
    "allocated",
    "repeated",
    "completed",
    "kept",
    "forget",
    "attest",
    "headed",
    "remember",
    "dated"
);
static SEED: LazyLock<Script> = script!("seed", "integer", "decimal", "server", "owned", "guard");
static RAISE: LazyLock<Script> =
    script!("raise", "integer", "decimal", "server", "owned", "guard", "counter");
static OPEN: LazyLock<Script> = script!("open", "clock", "integer", "decimal", "server");
static TRIM: LazyLock<Script> = script!("trim", "integer", "decimal", "server", "owned", "cut");
static BAR: LazyLock<Script> = script!("bar", "server", "owned");
static READ_OUTBOX: LazyLock<Script> = script!("read_outbox", "integer", "server", "owned");
static DROP_OUTBOX: LazyLock<Script> =
    script!("drop_outbox", "integer", "decimal", "server", "owned", "cut");
static SETTLE: LazyLock<Script> = script!("settle", "integer", "decimal", "server", "completed");
static PROBE: LazyLock<Script> = script!("probe", "server");
static SURVEY: LazyLock<Script> = script!("survey", "decimal", "server");
static PEEK: LazyLock<Script> = script!("peek");
static INSPECT: LazyLock<Script> =
    script!("inspect", "integer", "decimal", "server", "owned", "counter");
static SCAN: LazyLock<Script> = script!("scan", "server");
static REVEAL: LazyLock<Script> = script!("reveal", "decimal", "unpacked");
static SEAL: LazyLock<Script> = script!("seal", "integer", "server");
static SWEEP: LazyLock<Script> = script!("sweep", "integer", "decimal", "server", "owned");
static LIMIT: LazyLock<Script> = script!("limit", "integer", "decimal");

/// A script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Issue,
    Seed,
    Raise,
    Open,
    Trim,
    Bar,
    ReadOutbox,
    DropOutbox,
    Settle,
    Probe,
    Survey,
    Peek,
    Inspect,
    Scan,
    Reveal,
    Seal,
    Sweep,
    Limit,
}

impl Verb {
    /// The word that leads the script's ordinary answer; also used in logs.
    pub(super) fn word(self) -> &'static str {
        match self {
            Verb::Issue => "issued",
            Verb::Seed => "seeded",
            Verb::Raise => "raised",
            Verb::Open => "opened",
            Verb::Trim | Verb::DropOutbox => "trimmed",
            Verb::Bar => "done",
            Verb::ReadOutbox | Verb::Peek => "entries",
            Verb::Settle => "executed",
            Verb::Probe => "server",
            Verb::Survey => "surveyed",
            Verb::Inspect => "inspected",
            Verb::Scan => "scanned",
            Verb::Reveal => "revealed",
            Verb::Seal => "sealed",
            Verb::Sweep => "swept",
            Verb::Limit => "shared",
        }
    }

    /// Its name in metrics of calls: the verbs that only commands call share one.
    pub(super) fn metered_as(self) -> &'static str {
        match self {
            Verb::Issue => "issue",
            Verb::Seed => "seed",
            Verb::Raise => "raise",
            Verb::Open => "open",
            Verb::Trim => "trim",
            Verb::Bar => "bar",
            Verb::ReadOutbox => "read_outbox",
            Verb::DropOutbox => "drop_outbox",
            Verb::Settle => "settle",
            Verb::Probe => "probe",
            Verb::Sweep => "sweep",
            Verb::Limit => "limit",
            Verb::Survey | Verb::Peek | Verb::Inspect | Verb::Scan | Verb::Reveal | Verb::Seal => {
                "other"
            }
        }
    }

    /// Its source.
    pub(super) fn script(self) -> &'static Script {
        match self {
            Verb::Issue => &ISSUE,
            Verb::Seed => &SEED,
            Verb::Raise => &RAISE,
            Verb::Open => &OPEN,
            Verb::Trim => &TRIM,
            Verb::Bar => &BAR,
            Verb::ReadOutbox => &READ_OUTBOX,
            Verb::DropOutbox => &DROP_OUTBOX,
            Verb::Settle => &SETTLE,
            Verb::Probe => &PROBE,
            Verb::Survey => &SURVEY,
            Verb::Peek => &PEEK,
            Verb::Inspect => &INSPECT,
            Verb::Scan => &SCAN,
            Verb::Reveal => &REVEAL,
            Verb::Seal => &SEAL,
            Verb::Sweep => &SWEEP,
            Verb::Limit => &LIMIT,
        }
    }
}

/// A call, encoded. Clones share the bytes.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) echo: String,
    pub(super) keys: Vec<Key>,
    pub(super) args: Vec<Value>,
}

impl Call {
    /// Encodes a call; `args` follow the echo.
    pub(super) fn new(
        verb: Verb,
        echo: String,
        keys: Vec<String>,
        args: Vec<impl Into<Vec<u8>>>,
    ) -> Self {
        let rest = args.into_iter().map(|arg| Value::Bytes(arg.into().into()));
        let args = std::iter::once(Value::from(echo.clone())).chain(rest).collect();
        assert!(!keys.is_empty(), "a call goes where its first key is");
        Call { verb, echo, keys: keys.into_iter().map(Key::from).collect(), args }
    }

    /// A key whose master serves all the others too.
    pub(super) fn key(&self) -> &Key {
        &self.keys[0]
    }
}

/// Fingerprint of a flight's bytes: 128 bits in hexadecimal (F10). Each part is preceded by its
/// length, so that two flights never yield the same bytes.
pub(super) fn fingerprint<'a>(verb: Verb, parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    hash.update(verb.word());
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    hexadecimal(&digest[..16])
}

/// The keys of a call.
#[derive(Default)]
pub(super) struct KeyList {
    keys: Vec<String>,
    places: HashMap<String, usize>,
}

impl KeyList {
    /// The place in KEYS, from 1, of a key that many requests name; adds it if it is new.
    pub(super) fn place(&mut self, name: &str, key: impl FnOnce() -> String) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.add(key());
        self.places.insert(name.to_owned(), place);
        place
    }

    /// Adds a key that no request names, and returns its place.
    pub(super) fn add(&mut self, key: String) -> usize {
        self.keys.push(key);
        self.keys.len()
    }

    /// The keys.
    pub(super) fn into_keys(self) -> Vec<String> {
        self.keys
    }
}
