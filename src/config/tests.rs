//! Layering of the sources, and each wrong setting.

use std::net::Ipv4Addr;

use super::*;
use crate::auth::{Grant, Role};

fn sources(flags: &[(&str, &str)]) -> Sources {
    Sources {
        file: None,
        environment: vec![("HOME".into(), "/users/clerk".into())],
        flags: flags.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
    }
}

fn refusal(flags: &[(&str, &str)]) -> String {
    Settings::load(&sources(flags)).expect_err("refused").to_string()
}

fn file_refusal(text: &str) -> String {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("numerator.toml");
    std::fs::write(&file, text).expect("written");
    let sources = Sources { file: Some(file), ..sources(&[]) };
    Settings::load(&sources).expect_err("refused").to_string()
}

#[test]
fn nothing_has_to_be_set() {
    let settings = Settings::load(&sources(&[])).expect("defaults");
    assert_eq!(settings.http_listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.http.connections_max, 10_000);
    assert_eq!(settings.database.call_limit, Duration::from_secs(15));
    let beat = settings.allocator.node_heartbeat();
    assert_eq!(beat, Duration::from_millis(250));
    assert_eq!(settings.allocator.recovery_settle_max(), Duration::from_millis(200));
    let sweep = settings.allocator.sweep;
    assert_eq!((sweep.period.as_secs(), sweep.epoch_min.as_secs()), (3_600, 86_400));
    assert_eq!(settings.database_url, "sqlite:/users/clerk/.local/share/numerator/numerator.db");
    assert_eq!(settings.redis_prefix, "nbr");
    assert_eq!(settings.partitions, 8);
    assert_eq!(settings.allocator.time_limit, Duration::from_secs(40));
    assert!(settings.redis.is_none() && settings.auth_tokens.is_empty());
}

#[test]
fn the_data_folder_follows_xdg() {
    let mut sources = sources(&[]);
    sources.environment.push(("XDG_DATA_HOME".into(), "/srv/data".into()));
    let settings = Settings::load(&sources).expect("settings");
    assert_eq!(settings.data_dir, PathBuf::from("/srv/data/numerator"));
    // By the specification a relative path is ignored.
    sources.environment.last_mut().expect("variable").1 = "data".into();
    let settings = Settings::load(&sources).expect("settings");
    assert_eq!(settings.data_dir, PathBuf::from("/users/clerk/.local/share/numerator"));
}

#[test]
fn without_a_home_the_data_folder_must_be_named() {
    let nowhere = Sources::default();
    let refusal = Settings::load(&nowhere).expect_err("refused").to_string();
    assert!(refusal.contains("data.dir") && refusal.contains("HOME"), "{refusal}");
    let flags = vec![("database.url".into(), "postgres://db/numbers".into())];
    Settings::load(&Sources { flags, ..nowhere }).expect("needs no folder");
}

#[test]
fn the_environment_covers_the_file_and_flags_cover_both() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("numerator.toml");
    std::fs::write(
        &file,
        "partitions = 16\n[http]\nlisten = \"127.0.0.1:1\"\ntime_limit = \"5s\"\n\
         [node]\nttl = \"9s\"\n",
    )
    .expect("written");
    let mut sources = sources(&[("http.listen", "127.0.0.1:3")]);
    sources.file = Some(file);
    for (variable, value) in [
        ("NUMERATOR__HTTP__LISTEN", "127.0.0.1:2"),
        ("NUMERATOR__HTTP__TIME_LIMIT", "6s"),
        ("NUMERATOR__REDIS__URL", "rediss://cache:6379"),
        ("NUMERATOR__DATABASE__CONNECTIONS_MAX", "3"),
        ("NUMERATOR_UNRELATED", "x"),
    ] {
        sources.environment.push((variable.into(), value.into()));
    }
    let settings = Settings::load(&sources).expect("settings");
    assert_eq!(settings.http_listen, SocketAddr::from((Ipv4Addr::LOCALHOST, 3)));
    assert_eq!(settings.allocator.time_limit, Duration::from_secs(6));
    assert_eq!(settings.allocator.node_ttl, Duration::from_secs(9));
    assert_eq!(settings.partitions, 16);
    assert_eq!(settings.database.connections_max, 3);
    assert_eq!(settings.redis.expect("redis").url, "rediss://cache:6379");
}

#[test]
fn a_source_has_a_name_and_an_address_that_can_be_trusted() {
    let of = |name: &str, address: &str| format!("[external.{name}]\naddress = \"{address}\"\n");
    for (text, setting) in [
        (of("erp", "http://erp.example/next"), "external.erp.address"),
        (of("erp", "https://user:secret@erp.example/"), "external.erp.address"),
        (of("erp", "https://169.254.169.254/latest"), "external.erp.address"),
        (of("erp", "next"), "external.erp.address"),
        ("[external.erp]\ntime_limit = \"1s\"\n".into(), "external.erp.address"),
        (of("ERP", "https://erp.example/"), "external.ERP"),
        (of("erp", "https://erp.example/") + "attempts_max = 0\n", "external.erp.attempts_max"),
        (of("erp", "https://erp.example/") + "retries = 0\n", "external.erp"),
    ] {
        let refusal = file_refusal(&text);
        assert!(refusal.starts_with(&format!("setting {setting} (")), "{text}: {refusal}");
        assert!(!refusal.contains("secret"), "{refusal}");
    }
    let mut sources = sources(&[("external.erp.attempts_max", "1")]);
    let variable = "NUMERATOR__EXTERNAL__ERP__ADDRESS".to_owned();
    sources.environment.push((variable, "https://erp.example/next".into()));
    let external = Settings::load(&sources).expect("settings").external;
    assert_eq!((external.len(), external[0].attempts_max, &*external[0].name), (1, 1, "erp"));
    assert_eq!(external[0].address, "https://erp.example/next");
}

#[test]
fn every_bound_of_issuing_has_its_setting() {
    let settings = Settings::load(&sources(&[
        ("allocator.queue_max", "11"),
        ("allocator.flight_max", "12"),
        ("ceiling.step_min", "14"),
        ("ceiling.horizon", "15s"),
        ("recovery.barrier_max", "180ms"),
        ("recovery.per_minute_max", "7"),
        ("sweep.keep", "40d"),
        ("sweep.counters_max", "8"),
        ("redis.return_after", "183ms"),
        ("node.ttl", "24s"),
        ("node.clock_offset_max", "21m"),
        ("idempotency.window", "21h"),
        ("idempotency.records_max", "123456"),
        ("idempotency.keep_whole", "true"),
        ("journal.queue_max", "23"),
        ("retry.delay", "24ms"),
        ("http.time_limit", "26s"),
    ]))
    .expect("settings")
    .allocator;
    let ms = Duration::from_millis;
    assert_eq!((settings.queue_max, settings.flight_max), (11, 12));
    assert_eq!((settings.ceiling_step_min, settings.ceiling_horizon), (14, ms(15_000)));
    assert_eq!(settings.recovery_per_minute_max, 7);
    let barrier = (settings.recovery_barrier_max, settings.recovery_settle_max());
    assert_eq!(barrier, (ms(180), ms(18)));
    assert_eq!(settings.return_after, ms(183));
    assert_eq!((settings.node_ttl, settings.node_heartbeat()), (ms(24_000), ms(2_000)));
    assert_eq!(settings.clock_offset_max, ms(21 * 60_000));
    assert_eq!(settings.idempotency_window, ms(21 * 3_600_000));
    assert_eq!(
        (settings.idempotency_records_max, settings.idempotency_keep_whole),
        (123_456, true)
    );
    assert_eq!((settings.journal.queue_max, settings.journal.batch_rows_max), (23, 23));
    assert_eq!(settings.retry_delay, ms(24));
    let sweep = settings.sweep;
    assert_eq!((sweep.period, sweep.keep), (ms(3_600_000), ms(40 * 86_400_000)));
    assert_eq!((sweep.counters_max, sweep.epoch_min), (8, ms(32 * 3_600_000)));
    assert_eq!(settings.time_limit, ms(26_000));
}

#[test]
fn each_wrong_setting_is_refused_by_its_name() {
    for (setting, value, says) in [
        ("http.listen", "localhost", "such as \"127.0.0.1:8080\""),
        ("http.listen", "8080", "such as \"127.0.0.1:8080\""),
        ("http.time_limit", "40", "250ms"),
        ("http.time_limit", "1ms", "100ms to 1h"),
        ("http.connections_max", "0", "1 to"),
        ("http.listn", "127.0.0.1:1", "unknown field"),
        ("htp.listen", "127.0.0.1:1", "unknown field"),
        ("http.listen.port", "1", "an IP address and a port"),
        ("database.url", "mysql://db", "postgres://"),
        ("database.connections_max", "many", "a whole number"),
        ("redis.url", "localhost:6379", "redis://"),
        ("redis.url", "redis://:secret@cache:6379", "write rediss instead"),
        ("redis.prefix", "a{b", "braces"),
        ("redis.prefix", "a b", "spaces"),
        ("redis.prefix", "", "1 to 32"),
        ("redis.command_timeout", "1h", "10ms to 1m"),
        ("partitions", "0", "1 to 1024"),
        ("partitions", "-1", "a whole number"),
        ("allocator.queue_max", "0", "1 to"),
        ("allocator.flight_max", "100000", "1 to 1000"),
        ("ceiling.step_min", "0", "1 to"),
        ("ceiling.horizon", "2d", "to 1h"),
        ("recovery.barrier_max", "1ms", "10ms to"),
        ("node.heartbeat", "1ms", "unknown field"),
        ("node.ttl", "99ms", "100ms to"),
        ("idempotency.window", "1ms", "1s to"),
        ("journal.queue_max", "0", "1 to"),
        ("retry.delay", "0s", "1ms to"),
        ("log.format", "xml", "pretty"),
        ("log.filter", "=[", "info"),
        ("auth.tokens", "[{name = \"a b\", sha256 = \"\"}]", "1 to 64"),
        ("auth.tokens", "[{name = \"ci\", sha256 = \"zz\"}]", "64 hexadecimal"),
        ("auth.tokens", "[{name = \"ci\"}]", "sha256"),
        ("auth.mode", "maybe", "one of `auto`, `on`, `off`"),
        ("http.hosts", "[\"https://numbers.example.com\"]", "without scheme"),
        ("http.hosts", "[\"localhost:8080\"]", "and port"),
        ("http.hosts", "[\"\"]", "and port"),
    ] {
        let refusal = refusal(&[(setting, value)]);
        assert!(refusal.contains(&format!("setting {setting} (command line)")), "{refusal}");
        assert!(refusal.contains(says), "{setting} = {value}: {refusal}");
    }
}

#[test]
fn redis_on_another_machine_without_tls_is_accepted_where_a_setting_says_so() {
    let url = ("redis.url", "redis://clerk:secret@cache:6379");
    let refused = refusal(&[url]);
    assert!(refused.contains("redis.allow_plaintext") && !refused.contains("secret"), "{refused}");
    let settings = Settings::load(&sources(&[url, ("redis.allow_plaintext", "true")]));
    assert_eq!(settings.expect("settings").redis.expect("redis").url, url.1);
}

#[test]
fn a_mistake_in_the_file_is_shown_by_line_and_column() {
    let refusal = file_refusal("partitions = 8\n\n[http]\nlistn = \"127.0.0.1:1\"\n");
    assert!(refusal.contains("setting http.listn"), "{refusal}");
    assert!(refusal.contains("line 4, column 1"), "{refusal}");
    let refusal = file_refusal("[node]\nttl = 3\n");
    assert!(refusal.contains("setting node.ttl"), "{refusal}");
    assert!(refusal.contains("line 2, column 7") && refusal.contains("250ms"), "{refusal}");
    let refusal = file_refusal("[http\n");
    assert!(refusal.contains("line 1, column 6"), "{refusal}");
    let refusal = file_refusal("[recovery]\nbarrier_max = \"1ms\"\n");
    assert!(refusal.contains("setting recovery.barrier_max") && refusal.contains("numerator.toml"));
}

#[test]
fn a_missing_file_and_a_wrong_variable_are_named() {
    let missing = Sources { file: Some("/nowhere/numerator.toml".into()), ..sources(&[]) };
    let refusal = Settings::load(&missing).expect_err("refused").to_string();
    assert!(refusal.contains("/nowhere/numerator.toml") && refusal.contains("--config"));
    let mut wrong = sources(&[]);
    wrong.environment.push(("NUMERATOR__HTTP__LISTN".into(), "x".into()));
    let refusal = Settings::load(&wrong).expect_err("refused").to_string();
    assert!(refusal.contains("http.listn"), "{refusal}");
    assert!(refusal.contains("NUMERATOR__HTTP__LISTN"), "{refusal}");
}

#[test]
fn another_address_than_loopback_needs_a_token() {
    let open = ("http.listen", "0.0.0.0:8080");
    let refusal = refusal(&[open]);
    assert!(refusal.contains("http.listen") && refusal.contains("token create"), "{refusal}");
    let tokens = format!("[{{name = \"ci\", sha256 = \"{}\"}}]", "0f".repeat(32));
    let settings = Settings::load(&sources(&[open, ("auth.tokens", &tokens)])).expect("settings");
    let [Token { sha256, granted }] = &settings.auth_tokens[..] else {
        panic!("{:?}", settings.auth_tokens)
    };
    let Grant { identity, expires_at_us: None } = granted else { panic!("{granted:?}") };
    assert!(settings.asks_for_tokens);
    assert_eq!((*sha256, &*identity.name, identity.count_max), ([0x0f; 32], "ci", 1_000_000));
    // A token without roles takes numbers, and changes nothing.
    assert!(identity.roles.iter().eq([Role::Caller]) && identity.scope.is_everything());
    Settings::load(&sources(&[("http.listen", "[::1]:8080")])).expect("loopback");
}

#[test]
fn callers_have_to_name_themselves_wherever_others_can_reach_the_service() {
    let tokens = format!("[{{name = \"ci\", sha256 = \"{}\"}}]", "0f".repeat(32));
    let tokens = ("auth.tokens", &*tokens);
    let (local, open) = (("http.listen", "[::1]:80"), ("http.listen", "0.0.0.0:80"));
    let asks = |flags: &[_]| Settings::load(&sources(flags)).expect("settings").asks_for_tokens;
    for (mode, of_local, with_tokens) in
        [("auto", false, true), ("on", true, true), ("off", false, false)]
    {
        assert_eq!(asks(&[("auth.mode", mode), local]), of_local, "{mode}");
        assert_eq!(asks(&[("auth.mode", mode), local, tokens]), with_tokens, "{mode}");
    }
    // Those of the ledger are enough.
    assert!(asks(&[("auth.mode", "on"), open]));
    assert!(asks(&[("auth.mode", "auto"), open, tokens]));
    for flags in [vec![open], vec![open, tokens]] {
        let refused = refusal(&[&[("auth.mode", "off")], &flags[..]].concat());
        assert!(
            refused.contains("setting auth.mode") && refused.contains("127.0.0.1"),
            "{refused}"
        );
    }
}

#[test]
fn a_token_name_stands_once() {
    let hash = "00".repeat(32);
    let twice = format!("[{{name=\"ci\",sha256=\"{hash}\"}},{{name=\"ci\",sha256=\"{hash}\"}}]");
    let refusal = refusal(&[("auth.tokens", &twice)]);
    assert!(refusal.contains("twice"), "{refusal}");
}

#[test]
fn a_section_of_which_there_may_be_many_is_told_its_brackets() {
    let refused = file_refusal("[auth.tokens]\nname = \"a\"\nsha256 = \"00\"\n");
    assert!(refused.contains("line 1") && refused.contains("write [[auth.tokens]]"), "{refused}");
}

#[test]
fn a_certificate_needs_its_key_and_a_key_its_certificate() {
    let (certificate, key) = (("http.tls_certificate", "/c.pem"), ("http.tls_key", "/k.pem"));
    let refused = refusal(&[certificate]);
    assert!(refused.contains("http.tls_key") && refused.contains("name the file"), "{refused}");
    let refused = refusal(&[key]);
    assert!(refused.contains("http.tls_certificate") && refused.contains("name the"), "{refused}");
    let settings = Settings::load(&sources(&[certificate, key])).expect("both");
    let tls = settings.http.tls.expect("TLS");
    assert_eq!(tls.reload_period, Duration::from_secs(10));
    assert_eq!((tls.certificate, tls.key), ("/c.pem".into(), "/k.pem".into()));
    assert!(Settings::load(&sources(&[])).expect("neither").http.tls.is_none());
}

/// An issuer with its keys, of which a test changes some.
fn of_jwt<'a>(changed: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let usual = [
        ("auth.jwt.issuer", "https://login.example"),
        ("auth.jwt.audience", "numerator"),
        ("auth.jwt.algorithms", "[\"RS256\", \"EdDSA\"]"),
        ("auth.jwt.jwks_url", "https://login.example/jwks"),
    ];
    let kept = usual.into_iter().filter(|(name, _)| changed.iter().all(|(it, _)| it != name));
    kept.chain(changed.iter().copied()).filter(|(_, value)| !value.is_empty()).collect()
}

#[test]
fn an_issuer_of_jwts_says_for_whom_with_which_algorithms_and_by_which_keys() {
    let long = "x".repeat(256);
    for (changed, blamed, says) in [
        (&[("auth.jwt.issuer", "")][..], "issuer", "iss"),
        (&[("auth.jwt.audience", "")], "audience", "another deployment"),
        (&[("auth.jwt.algorithms", "")], "algorithms", "EdDSA"),
        (&[("auth.jwt.algorithms", "[\"none\"]")], "algorithms", "HS256"),
        (&[("auth.jwt.algorithms", "[\"HS512\"]")], "algorithms", "HS256"),
        (&[("auth.jwt.algorithms", "[\"HS256\", \"RS256\"]")], "algorithms", "secret"),
        (&[("auth.jwt.algorithms", "[\"HS256\"]")], "algorithms", "key_file"),
        (&[("auth.jwt.jwks_url", "")], "issuer", "auth.jwt.jwks_file"),
        (&[("auth.jwt.key_file", "/k.pem")], "issuer", "exactly one"),
        (&[("auth.jwt.jwks_url", "http://login.example/jwks")], "jwks_url", "https://"),
        (&[("auth.jwt.jwks_url", "https://a:b@login.example/")], "jwks_url", "password"),
        (&[("auth.jwt.jwks_url", "ftp://127.0.0.1/")], "jwks_url", "https://"),
        (&[("auth.jwt.jwks_url", "/jwks")], "jwks_url", "https://"),
        (&[("auth.jwt.roles", "{a = [\"boss\"]}")], "roles", "super-admin"),
        (&[("auth.jwt.roles", "{a = []}")], "roles", "super-admin"),
        (&[("auth.jwt.name_claim", &long)], "name_claim", "1 to 255"),
    ] {
        let refused = refusal(&of_jwt(changed));
        assert!(refused.contains(&format!("setting auth.jwt.{blamed} ")), "{refused}");
        assert!(refused.contains(says), "{refused}");
    }
    let local = ("auth.jwt.jwks_url", "http://127.0.0.1:9/jwks");
    let roles = ("auth.jwt.roles", "{\"a.b\" = [\"auditor\"]}");
    let settings = Settings::load(&sources(&of_jwt(&[local, roles]))).expect("settings");
    // An issuer implies that callers must authenticate.
    assert!(settings.asks_for_tokens);
    let jwt = settings.auth_jwt.expect("an issuer");
    assert_eq!(jwt.algorithms, [JwtAlgorithm::RS256, JwtAlgorithm::EdDsa]);
    assert_eq!(jwt.roles.expect("roles")["a.b"], [Role::Auditor]);
    assert_eq!((&*jwt.name_claim, jwt.count_max), ("sub", 1));
    assert!(Settings::load(&sources(&[])).expect("settings").auth_jwt.is_none());
    // In a file, where the error names the place.
    let refused = file_refusal("[auth.jwt]\nissuer = \"https://a\"\n");
    assert!(refused.contains("auth.jwt.audience (") && refused.contains(".toml"), "{refused}");
}
