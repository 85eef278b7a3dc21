//! With sentinels, which promote a replica automatically.

use testkit::redis::Redis;
use testkit::sentinel::Sentinels;

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn shapes_sentinels_promote_a_lagging_replica_after_the_master_was_killed() {
    let mut master = Redis::start();
    let replica = master.start_replica(&[]);
    let sentinels = Sentinels::start(&master, 1);
    let stage = Stage::start(&sentinels.url()).await;
    master.hold_replicas_back();
    stage.advance().await;
    master.kill();
    sentinels.wait_for_master(&replica);
    stage.advance().await;
    // The old master comes back, is made a replica, and is not mistaken for the master.
    master.restart();
    master.wait_until_follower();
    stage.advance().await;
    stage.close("sentinel, master killed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_sentinels_fail_over_and_back_while_both_servers_live() {
    let first = Redis::start();
    let second = first.start_replica(&[]);
    let sentinels = Sentinels::start(&first, 1);
    let stage = Stage::start(&sentinels.url()).await;
    sentinels.fail_over_to(&second);
    stage.advance().await;
    first.wait_until_follower();
    sentinels.fail_over_to(&first);
    stage.advance().await;
    stage.close("sentinel, there and back").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_a_master_wakes_after_its_replica_was_promoted_and_issues_nothing_more() {
    let master = Redis::start();
    let replica = master.start_replica(&[]);
    let sentinels = Sentinels::start(&master, 1);
    let stage = Stage::start(&sentinels.url()).await;
    master.signal("STOP");
    sentinels.wait_for_master(&replica);
    stage.advance().await;
    // What was on its way to it arrives now.
    master.signal("CONT");
    master.wait_until_follower();
    stage.advance().await;
    stage.close("sentinel, master asleep").await;
}
