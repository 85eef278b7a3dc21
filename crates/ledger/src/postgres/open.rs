//! Opens a PostgreSQL ledger: session limits, durability checks, the state of its schema.

use std::time::Duration;

use numerator_runtime::clock::SharedClock;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use super::{PgEngine, fitness, migrate, postgres_options};
use crate::connections::Share;
use crate::engine::Engine;
use crate::protocol::holding::agree;
use crate::schema::Migrated;
use crate::{Lack, LedgerError, LedgerSettings, all_lacks};

/// How long the first connection may take; a server that is up answers in a fraction of it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A statement that takes longer is a line of the log, for the analysis of single statements.
const SLOW_STATEMENT: Duration = Duration::from_secs(1);

/// How long a statement may run beyond its wait for a lock.
const STATEMENT_TIME: Duration = Duration::from_secs(2);

/// The remedy for a server that shows no certificate, or one that is not accepted.
const UNVERIFIED: &str = "; a server beyond this machine must show a certificate of its name: name \
                          who signed it by sslrootcert=FILE in database.url, or write \
                          sslmode=disable there where nobody else is on that network";

/// PostgreSQL's code of a right that is missing.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// The remedy for a missing right.
const ROLES: &str = "run `numerator migrate --roles` as the owner of the tables: it migrates, and \
                     grants what the service needs as deploy/postgres/roles.sql does \
                     (docs/deploy.md, Roles of PostgreSQL)";

/// The settings of every session: no wait without a bound (F14). A process stopped between two
/// statements loses its locks after two seconds; a dead one's connection is noticed by keepalives.
/// Compiling statements as short as these costs more than it saves. Notices contain nothing to act
/// on: a migration that finds its table in place writes one at each start.
const SESSION: [(&str, &str); 10] = [
    ("application_name", "numerator"),
    ("client_min_messages", "warning"),
    ("default_transaction_isolation", "read committed"),
    ("idle_in_transaction_session_timeout", "2s"),
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "10s"),
    ("timezone", "UTC"),
    ("jit", "off"),
];

/// Opens the database that `url` names; sets it up where it is empty, and brings its schema up to
/// date where the settings say so.
///
/// # Errors
/// A server that cannot be reached or does not accept the connection, by its address; one that may
/// lose commits; a schema that is newer than this binary, or older where that is not to be changed.
pub(crate) async fn open(
    url: &str,
    settings: LedgerSettings,
    clock: SharedClock,
) -> Result<(Box<dyn Engine>, Option<Migrated>), LedgerError> {
    let options = session(url, settings)?;
    // The pool would try a refused connection until its time is up, and say only that it is up.
    let mut first = connect(&options).await?;
    let engine = PgEngine::new(options, settings, clock);
    let opened = async {
        require_durable_commits(&mut first).await?;
        wait_for_commits(&mut first).await?;
        let migrated = migrate::run(&mut first, settings).await?;
        agree(&engine.store(Share::Common)).await?;
        Ok::<_, LedgerError>(migrated)
    };
    let migrated = match opened.await {
        Ok(migrated) => migrated,
        Err(error) => return Err(explained(error, &mut first).await),
    };
    first.close().await?;
    Ok((Box::new(engine), migrated))
}

/// How sessions of the program are opened.
///
/// # Errors
/// `Refused` for a URL that is none.
pub(super) fn session(
    url: &str,
    settings: LedgerSettings,
) -> Result<PgConnectOptions, LedgerError> {
    let options = postgres_options(url)
        .map_err(|why| LedgerError::Refused(format!("database.url: {why}")))?
        .options(SESSION)
        .options(timeouts(settings.lock_timeout));
    // A line with the whole statement for each wait is less useful than one of the calls.
    Ok(options.log_slow_statements("debug".parse().expect("a level"), SLOW_STATEMENT))
}

/// A failure with the missing right, if that is its cause: the server names one table only.
async fn explained(error: LedgerError, connection: &mut PgConnection) -> LedgerError {
    let (LedgerError::Fault(cause) | LedgerError::Migration(cause)) = &error else { return error };
    if !cause.contains(INSUFFICIENT_PRIVILEGE) {
        return error;
    }
    let mut lacks = fitness::missing(connection).await.unwrap_or_default();
    lacks.retain(|lack| matches!(lack, Lack::Right { .. }));
    let remedy = match &lacks[..] {
        [] => ROLES.to_owned(),
        lacks => all_lacks(lacks),
    };
    LedgerError::Refused(format!("database.url: {cause}; {remedy}"))
}

/// How long statements may wait and run: one that gets its lock at the last moment has time to
/// work. The wait is set twice, so that a transaction can return to it.
fn timeouts(lock_timeout: Duration) -> [(&'static str, String); 3] {
    let ms = |wait: Duration| format!("{}ms", wait.as_millis());
    [
        ("lock_timeout", ms(lock_timeout)),
        ("numerator.lock_timeout", ms(lock_timeout)),
        ("statement_timeout", ms(lock_timeout + STATEMENT_TIME)),
    ]
}

/// Connects once, without the pool, so that a failure is the server's own and names its address.
pub(super) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, LedgerError> {
    let address = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let unreachable = |cause| LedgerError::Unreachable { cause, maybe_written: false };
    let connecting = PgConnection::connect_with(options);
    let Ok(connected) = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await else {
        let limit_s = CONNECT_TIMEOUT.as_secs();
        return Err(unreachable(format!("{address}: no answer within {limit_s} s")));
    };
    let remedy = |error: &sqlx::Error| match error {
        sqlx::Error::Tls(_) => UNVERIFIED,
        _ => "",
    };
    connected.map_err(|error| match (remedy(&error), LedgerError::from(error)) {
        (remedy, LedgerError::Unreachable { cause, .. }) => {
            unreachable(format!("{address}: {cause}{remedy}"))
        }
        (_, LedgerError::Fault(why)) => LedgerError::Refused(format!("{address}: {why}")),
        (_, other) => other,
    })
}

/// The ledger must not lose a commit (F9): the settings that only the server has must be right, and
/// the opposite of the sessions' own settings must not be requested.
pub(super) async fn require_durable_commits(
    connection: &mut PgConnection,
) -> Result<(), LedgerError> {
    let query = "select name from pg_settings where setting = 'off'
                 and (name = 'fsync' or name = 'synchronous_commit' and source = 'client')";
    let off: Option<String> = sqlx::query_scalar(query).fetch_optional(&mut *connection).await?;
    match off {
        Some(setting) => Err(LedgerError::Refused(format!(
            "PostgreSQL runs with {setting} = off and may lose a commit, after which numbers would \
             be issued twice; set {setting} = on"
        ))),
        None => Ok(()),
    }
}

/// Has a session wait for its commits, regardless of the settings of server, database and role, now
/// and while it lasts (F41): no reload changes what a session has set itself. A setting that waits
/// for standbys less, or more, stays as it is.
pub(super) async fn wait_for_commits(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query(
        "select set_config('synchronous_commit',
         coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)",
    )
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use numerator_runtime::clock::ManualClock;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A listener, and a URL that leads to it.
    async fn listener() -> (TcpListener, String, String) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("port");
        let address = listener.local_addr().expect("address").to_string();
        let url = format!("postgres://clerk:secret@{address}/numbers?sslmode=disable");
        (listener, address, url)
    }

    async fn failure(url: &str) -> LedgerError {
        open(url, LedgerSettings::default(), Arc::new(ManualClock::at(0)))
            .await
            .err()
            .expect("no ledger")
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_named_with_what_the_system_says() {
        let (listener, address, url) = listener().await;
        drop(listener);
        let error = failure(&url).await;
        assert!(matches!(error, LedgerError::Unreachable { maybe_written: false, .. }), "{error}");
        let says = error.to_string();
        assert!(says.contains(&address) && says.contains("Connection refused"), "{says}");
        assert!(!says.contains("secret"), "{says}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_accepts_and_never_answers_is_given_up() {
        let (_silent, address, url) = listener().await;
        let says = failure(&url).await.to_string();
        assert!(says.contains(&format!("{address}: no answer within 5 s")), "{says}");
    }

    /// A server without a certificate that asks for the password in clear text; all that it
    /// receives.
    async fn eavesdrop(listener: TcpListener) -> String {
        let (mut client, _) = listener.accept().await.expect("client");
        let (mut heard, mut buffer) = (Vec::new(), [0; 1_024]);
        for answer in [b"N".as_slice(), b"R\0\0\0\x08\0\0\0\x03", b""] {
            let Ok(length @ 1..) = client.read(&mut buffer).await else { break };
            heard.extend_from_slice(&buffer[..length]);
            let _ = client.write_all(answer).await;
        }
        String::from_utf8_lossy(&heard).into_owned()
    }

    #[tokio::test]
    async fn a_server_beyond_this_machine_that_shows_no_certificate_is_told_no_password() {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.expect("port");
        let port = listener.local_addr().expect("address").port();
        let server = tokio::spawn(eavesdrop(listener));
        let says = failure(&format!("postgres://clerk:secret@0.0.0.0:{port}/numbers")).await;
        let heard = server.await.expect("server");
        assert!(!heard.contains("secret") && !heard.contains("clerk"), "{heard:?}");
        assert!(says.to_string().contains("sslrootcert=FILE"), "{says}");
    }

    #[tokio::test]
    async fn a_server_that_refuses_the_password_is_quoted_and_asked_for_no_notices() {
        let (listener, address, url) = listener().await;
        let server = tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.expect("client");
            let length = client.read_u32().await.expect("length of the first message");
            let mut startup = vec![0; usize::try_from(length).expect("short") - 4];
            client.read_exact(&mut startup).await.expect("first message");
            let fields = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed\0\0";
            client.write_u8(b'E').await.expect("kind");
            let length = u32::try_from(fields.len()).expect("short") + 4;
            client.write_u32(length).await.expect("length");
            client.write_all(fields).await.expect("refusal");
            String::from_utf8_lossy(&startup).into_owned()
        });
        let error = failure(&url).await;
        assert!(matches!(error, LedgerError::Refused(_)), "{error}");
        let says = error.to_string();
        assert!(says.contains(&format!("{address}: 28P01: password authentication")), "{says}");
        let startup = server.await.expect("server");
        assert!(startup.contains("client_min_messages=warning"), "{startup}");
    }
}
