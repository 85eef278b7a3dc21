//! What the comment after a command of the runbook promises: its exit code, and what it prints.

/// A process that no longer exists: without it the others continue automatically after a restore.
pub(super) const A_NODE_THAT_IS_GONE: &str = "insert into runbook.node \
     (node_id, label, version, started_at_us) \
     values (decode(repeat('ab', 16), 'hex'), 'gone', '0', 0)";

/// What a line's comment promises.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Promise {
    /// Its exit code.
    pub(super) exit: i32,
    /// What its output shows, with any text between the words.
    shown: Vec<String>,
    /// What it does not show: quoted in a clause that begins with "no".
    not_shown: Vec<String>,
}

impl Promise {
    /// Reads it from a line of the runbook.
    pub(super) fn of(line: &str) -> Self {
        let mut promise = Promise::default();
        let Some((_, comment)) = line.rsplit_once(" # ") else { return promise };
        if let Some(code) = comment.strip_prefix("exits ") {
            let code = code.split([':', ';']).next().unwrap_or_default();
            promise.exit = code.parse().unwrap_or_else(|_| panic!("{line}: exits with what?"));
        }
        let mut is_denied = false;
        for (index, part) in comment.split('`').enumerate() {
            if index % 2 == 1 {
                let list = if is_denied { &mut promise.not_shown } else { &mut promise.shown };
                list.push(part.to_owned());
                continue;
            }
            let clause = part.rsplit([',', ';', ':']).next().unwrap_or_default();
            // Without a mark between them, what is quoted next belongs to the same clause.
            if index == 0 || clause.len() < part.len() {
                is_denied = clause.trim_start().starts_with("no ");
            }
        }
        promise
    }

    /// What the output leaves unfulfilled.
    pub(super) fn broken_by(&self, output: &str) -> Vec<&String> {
        let text = output.split_whitespace().collect::<Vec<_>>().join(" ");
        let missing = self.shown.iter().filter(|words| !text.contains(&**words));
        missing.chain(self.not_shown.iter().filter(|words| text.contains(&**words))).collect()
    }
}

#[test]
fn a_comment_promises_an_exit_code_and_what_is_shown_or_not() {
    let of = |line| {
        let Promise { exit, shown, not_shown } = Promise::of(line);
        (exit, shown.join("|"), not_shown.join("|"))
    };
    assert_eq!(of("numerator verify"), (0, String::new(), String::new()));
    assert_eq!(of("curl -sS x              # exits 7").0, 7);
    assert_eq!(of("numerator status # exits 1: `held`"), (1, "held".into(), String::new()));
    let line =
        "numerator status # owner `database`, no `open redis` or `x`; `closed before` is `y`";
    let (shown, not_shown) = ("database|closed before|y".into(), "open redis|x".into());
    assert_eq!(of(line), (0, shown, not_shown));
    let promise = Promise::of("numerator status # rows say `redis auto`, no node is `silent`");
    assert_eq!(promise.broken_by(" 1  open  redis  auto\n"), Vec::<&String>::new());
    assert_eq!(promise.broken_by(" silent "), ["redis auto", "silent"]);
}
