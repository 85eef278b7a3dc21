//! A cluster of three masters, with partitions on all of them.

use testkit::cluster::Cluster;

use crate::stage::Stage;

/// For each series the master that has its partition's keys.
fn homes(cluster: &Cluster, stage: &Stage) -> Vec<usize> {
    let homes: Vec<usize> =
        stage.partitions().into_iter().map(|partition| cluster.home_of(partition)).collect();
    assert!((0..3).all(|master| homes.contains(&master)), "a master has no partition: {homes:?}");
    homes
}

/// Kills a master under load and starts it again.
async fn one_master_is_killed(options: &[&str], what: &str) {
    let mut cluster = Cluster::start(options);
    let stage = Stage::start(&cluster.url()).await;
    let homes = homes(&cluster, &stage);
    cluster.masters[1].kill();
    // Everything on the others is served while it is down.
    stage.advance_some(|series| homes[series] != 1).await;
    cluster.masters[1].restart();
    stage.advance().await;
    stage.close(what).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_a_master_of_a_cluster_is_killed_and_comes_back_with_its_data() {
    let options =
        ["--appendonly", "yes", "--appendfsync", "always", "--cluster-require-full-coverage", "no"];
    one_master_is_killed(&options, "cluster, master killed, data kept").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_a_master_of_a_cluster_is_killed_and_comes_back_empty() {
    one_master_is_killed(&["--cluster-require-full-coverage", "no"], "cluster, master emptied")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_a_cluster_that_goes_down_as_a_whole_is_waited_for() {
    let mut cluster = Cluster::start(&[]);
    let stage = Stage::start(&cluster.url()).await;
    cluster.masters[2].kill();
    cluster.wait_until_down(2);
    cluster.masters[2].restart();
    cluster.wait_until_well();
    stage.advance().await;
    stage.close("cluster down").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_a_slot_is_moved_between_masters_under_load_and_its_partition_recovers() {
    let cluster = Cluster::start(&[]);
    let stage = Stage::start(&cluster.url()).await;
    let homes = homes(&cluster, &stage);
    let partition = stage.partitions()[0];
    let (from, to) = (homes[0], (homes[0] + 1) % 3);
    let epoch = stage.epoch(partition);
    cluster.move_slot(cluster.slot_of(partition), from, to);
    stage.advance().await;
    assert!(stage.epoch(partition) > epoch, "the keys came to another data set: a new epoch");
    stage.close("slot moved").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_a_slot_that_is_long_under_way_keeps_nobody_else_waiting() {
    let cluster = Cluster::start(&[]);
    let stage = Stage::start(&cluster.url()).await;
    let homes = homes(&cluster, &stage);
    let partitions = stage.partitions();
    let partition = partitions[0];
    let (from, to) = (homes[0], (homes[0] + 1) % 3);
    let slot = cluster.slot_of(partition);
    cluster.begin_move(slot, from, to);
    cluster.move_keys(slot, from, to);
    stage.advance_some(|series| partitions[series] != partition).await;
    cluster.end_move(slot, from, to);
    stage.advance().await;
    stage.close("slot long under way").await;
}
