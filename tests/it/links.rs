//! One node loses one of its links, and the other node does not: the service as a whole stays where
//! it is (F22).

use testkit::redis::Redis;

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn faults_one_node_loses_redis_and_the_partitions_stay_with_the_others() {
    let redis = Redis::start();
    let (stage, links) = Stage::start_linked(&redis).await;
    links.redis.refuse();
    stage.advance().await;
    stage.refused().await;
    assert_eq!(stage.recoveries(), 0, "nobody moved a partition for one broken link");
    links.redis.forward();
    stage.advance().await;
    let outcome = stage.close("one node without Redis").await;
    assert_eq!(outcome.gaps, "");
    assert!(outcome.refusals > 0, "the node says that it cannot serve");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_one_node_hears_no_answer_of_redis_and_there_is_not_even_a_gap() {
    let redis = Redis::start();
    let (stage, links) = Stage::start_linked(&redis).await;
    links.redis.swallow_answers();
    stage.refused().await;
    links.redis.forward();
    stage.advance().await;
    let outcome = stage.close("one node does not hear Redis").await;
    assert_eq!(outcome.gaps, "", "what was taken unheard is found in the outbox");
}

/// What a node took without an answer, and requests while its link is still down, is handed out
/// once the link is back: no value becomes a gap.
#[tokio::test(flavor = "multi_thread")]
async fn faults_an_epoch_ends_while_a_node_does_not_reach_redis_and_there_is_not_even_a_gap() {
    let redis = Redis::start();
    let patient = "barrier_max = \"1m\"\n";
    let (stage, links) = Stage::start_linked_with(&redis, patient).await;
    links.redis.swallow_answers();
    stage.refused().await;
    links.redis.refuse();
    // The data set gets another id, which ends each epoch; what is in it stays.
    let _replica = redis.start_replica(&[]);
    stage.called("settle").await;
    links.redis.forward();
    stage.advance().await;
    let outcome = stage.close("an epoch ends while one node does not reach Redis").await;
    assert_eq!(outcome.gaps, "", "what was taken unheard is handed out");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_one_node_loses_the_ledger_is_adopted_and_joins_again() {
    let redis = Redis::start();
    let (stage, links) = Stage::start_linked(&redis).await;
    links.ledger.refuse();
    stage.registered(1).await;
    stage.advance().await;
    links.ledger.forward();
    stage.registered(2).await;
    stage.advance().await;
    let outcome = stage.close("one node without the ledger").await;
    assert_eq!(outcome.gaps, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_one_node_hears_no_answer_of_the_ledger_and_what_it_handed_out_is_journaled() {
    let redis = Redis::start();
    let (stage, links) = Stage::start_linked(&redis).await;
    links.ledger.swallow_answers();
    stage.registered(1).await;
    stage.advance().await;
    links.ledger.forward();
    stage.registered(2).await;
    stage.advance().await;
    stage.close("one node does not hear the ledger").await;
}
