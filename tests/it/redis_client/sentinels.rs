//! With sentinels: which of them the client believes, and how soon. Method: fake sentinels in front
//! of real servers, because real ones cannot be made to contradict each other on order.

use std::time::{Duration, Instant};

use testkit::redis::Redis as Server;

use super::fake::Fake;
use super::{LIMIT, client, probe, until_served};

/// A client behind two sentinels.
fn behind(sentinels: &[Fake; 2], credentials: &str) -> numerator::redis::Redis {
    let [one, other] = sentinels.each_ref().map(Fake::port);
    let url = format!(
        "redis-sentinel://{credentials}127.0.0.1:{one}?sentinelServiceName=m&node=127.0.0.1:{other}"
    );
    client(url, Duration::from_millis(500))
}

fn incarnation(server: &Server) -> String {
    let info = server.cli(&["info", "replication"]);
    let line = info.lines().find_map(|line| line.strip_prefix("master_replid:"));
    line.expect("a replication id").trim().to_owned()
}

#[tokio::test]
async fn a_master_that_sentinels_have_given_up_is_left_though_it_still_answers() {
    let (old, new) = (Server::start(), Server::start());
    let sentinels = [Fake::start(&[]).await, Fake::start(&[]).await];
    for sentinel in &sentinels {
        sentinel.name_master(old.port(), 1);
    }
    let redis = behind(&sentinels, "");
    assert_eq!(until_served(&redis).await.incarnation, incarnation(&old));
    // One of them does not know of it yet.
    sentinels[1].name_master(new.port(), 2);
    let wanted = incarnation(&new);
    let deadline = Instant::now() + LIMIT;
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    while until_served(&redis).await.incarnation != wanted {
        assert!(Instant::now() < deadline, "still with the old master");
        tick.tick().await;
    }
    for _ in 0..20 {
        let known = probe(&redis).await.expect("the new master answers").incarnation;
        assert_eq!(known, wanted, "a sentinel that knows less is not believed");
    }
}

#[tokio::test]
async fn the_password_of_the_master_is_not_sent_to_sentinels() {
    let server = Server::start();
    assert_eq!(server.cli(&["config", "set", "requirepass", "secret"]), "OK");
    let sentinels = [Fake::start(&[]).await, Fake::start(&[]).await];
    for sentinel in &sentinels {
        sentinel.name_master(server.port(), 1);
    }
    let redis = behind(&sentinels, ":secret@");
    assert!(until_served(&redis).await.is_master);
}
