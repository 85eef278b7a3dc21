//! A replica that is promoted manually, and a client that is pointed at it.

use testkit::proxy::Proxy;
use testkit::redis::Redis;

use crate::stage::Stage;

/// Cuts a replica from its master, lets the load continue, and promotes the replica, which lags by
/// then; the clients are pointed at it.
async fn promote_lagging(stage: &Stage, proxy: &Proxy, master: &Redis, replica: &Redis) {
    master.hold_replicas_back();
    stage.advance().await;
    replica.promote();
    proxy.retarget(replica.port());
    stage.advance().await;
}

fn run_id(redis: &Redis) -> String {
    let info = redis.cli(&["info", "server"]);
    info.lines().find(|line| line.starts_with("run_id:")).expect("a run id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_a_lagging_replica_is_promoted_by_hand_and_no_number_comes_twice() {
    let master = Redis::start();
    let replica = master.start_replica(&[]);
    let proxy = Proxy::start(master.port());
    let stage = Stage::start(&proxy.redis_url()).await;
    promote_lagging(&stage, &proxy, &master, &replica).await;
    stage.close("manual promotion").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_fail_over_and_back_to_a_server_with_older_data_and_the_same_run_id() {
    let first = Redis::start();
    let second = first.start_replica(&[]);
    let proxy = Proxy::start(first.port());
    let stage = Stage::start(&proxy.redis_url()).await;
    let run_id_before = run_id(&first);
    promote_lagging(&stage, &proxy, &first, &second).await;
    // The clients return to the first server, which knows nothing of it all.
    proxy.retarget(first.port());
    stage.advance().await;
    // And once more there and back, now as a replica that lags.
    proxy.retarget(second.port());
    stage.advance().await;
    first.follow(&second);
    promote_lagging(&stage, &proxy, &second, &first).await;
    assert_eq!(run_id(&first), run_id_before);
    stage.close("there and back").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_a_master_demoted_under_its_clients_is_left_for_the_new_one() {
    let master = Redis::start();
    let replica = master.start_replica(&[]);
    let proxy = Proxy::start(master.port());
    let stage = Stage::start(&proxy.redis_url()).await;
    replica.promote();
    // New connections find the new master; earlier ones stay with the old one, which lives.
    proxy.retarget_new(replica.port());
    master.follow(&replica);
    stage.advance().await;
    stage.close("demotion").await;
}
