//! What `/metrics` shows of what expires (certificates, tokens), of what is due (checkpoints), and
//! of what the process uses.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use testkit::eventually::eventually;
use testkit::postgres::Postgres;
use testkit::process::free_port;
use testkit::service::Service;

use crate::deployment::Deployment;

/// Longest wait; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

const DAY_S: f64 = 86_400.0;

/// The day (UTC) this many days from now.
fn day_in(days: i64) -> Date {
    let now_s = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap();
    let then = Timestamp::from_second(now_s + days * 86_400).unwrap();
    then.to_zoned(TimeZone::UTC).date()
}

/// A certificate that expires in this many days, in a file next to its key.
pub(crate) fn certificate(file: &Path, days: i64) {
    let ends = day_in(days);
    let [month, day] = [ends.month(), ends.day()].map(|part| u8::try_from(part).unwrap());
    let mut wanted = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    wanted.not_after = rcgen::date_time_ymd(ends.year().into(), month, day);
    let key = rcgen::KeyPair::generate().unwrap();
    std::fs::write(file.with_extension("key"), key.serialize_pem()).unwrap();
    std::fs::write(file, wanted.self_signed(&key).unwrap().pem()).unwrap();
}

/// The page of a service.
async fn page(service: &Service) -> String {
    testkit::get(format!("{}/metrics", service.health_url)).await.unwrap().text().await.unwrap()
}

/// A value of the page.
fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not in\n{page}")).parse().unwrap()
}

async fn shows(service: &Service, name: &str, is_so: impl Fn(f64) -> bool) {
    eventually(LIMIT, async || {
        let seen = value(&page(service).await, name);
        if is_so(seen) { Ok(()) } else { Err(format!("{name} {seen}\n{}", service.log())) }
    })
    .await;
}

#[tokio::test]
async fn what_ends_what_is_due_and_what_a_process_uses_is_shown() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("endings"), None);
    let server = deployment.path("server.pem");
    certificate(&server, 5);
    let health = format!("127.0.0.1:{}", free_port());
    let [shown, key] =
        [server.clone(), server.with_extension("key")].map(|it| it.display().to_string());
    deployment.http = format!(
        "tls_certificate = \"{shown}\"\ntls_key = \"{key}\"\n\
         health_listen = \"{health}\"\n"
    );
    let seal = deployment.path("audit.key").display().to_string();
    deployment.ok(&["audit", "keygen", &seal]);
    let last = day_in(3);
    deployment.extra =
        format!("[auth]\nmode = \"on\"\n[audit]\nkey = \"{seal}\"\ncheckpoint = \"1s\"\n");
    let service = deployment.serve();
    let first = page(&service).await;
    assert_eq!(value(&first, "numerator_token_left_seconds"), f64::INFINITY, "nobody has any");
    let left = "numerator_certificate_left_seconds{certificate=\"server\"}";
    assert!((3.9 * DAY_S..5.0 * DAY_S).contains(&value(&first, left)), "{first}");
    for none in ["database-authority", "database-client"] {
        let name = format!("numerator_certificate_left_seconds{{certificate=\"{none}\"}}");
        assert!(value(&first, &name).is_nan(), "{none}");
    }
    for name in ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"] {
        assert!(value(&first, name) > 0.0, "{name}");
    }
    assert!(first.contains("# TYPE process_cpu_seconds_total counter"), "{first}");
    let (open, most) = (value(&first, "process_open_fds"), value(&first, "process_max_fds"));
    assert!(open <= most, "{open} of {most}");
    assert_eq!(value(&first, "numerator_checkpoint_period_seconds"), 1.0);

    deployment.ok(&["token", "create", "desk", "--role", "caller", "--expires", &last.to_string()]);
    let token = |seconds: f64| (2.9 * DAY_S..4.1 * DAY_S).contains(&seconds);
    shows(&service, "numerator_token_left_seconds", token).await;
    // A key that does not match: what is shown expires as before, whatever the file says.
    let other = deployment.path("other.pem");
    certificate(&other, 500);
    std::fs::copy(&other, &server).unwrap();
    eventually(LIMIT, async || {
        let is_told = service.log().contains("are not used");
        if is_told { Ok(()) } else { Err(service.log()) }
    })
    .await;
    assert!(value(&page(&service).await, left) < 5.0 * DAY_S);
    std::fs::copy(other.with_extension("key"), &key).unwrap();
    shows(&service, left, |seconds| seconds > 498.0 * DAY_S).await;

    // What cannot be bound grows old.
    shows(&service, "numerator_checkpoint_age_seconds", |seconds| seconds < 1.0).await;
    postgres.sql("alter table endings.checkpoint rename to lost");
    shows(&service, "numerator_checkpoint_age_seconds", |seconds| seconds > 3.0).await;
    postgres.sql("alter table endings.lost rename to checkpoint");
    shows(&service, "numerator_checkpoint_age_seconds", |seconds| seconds < 1.0).await;
    assert!(service.terminate());
    // A service that starts where none can be made shows the age of the last one, not its own.
    let changed = testkit::forge::postgres(
        "update checkpoint set body = regexp_replace(body, '\"at\":\"[^\"]*\"', \
         '\"at\":\"2020-01-01T00:00:00Z\"')",
    );
    postgres.sql(&format!("set search_path = endings; {changed}"));
    let other = deployment.serve();
    shows(&other, "numerator_checkpoint_age_seconds", |seconds| seconds > 365.0 * DAY_S).await;
    assert!(other.terminate());
}
