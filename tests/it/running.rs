//! Signals to a running service: to read `log.filter` again, and to stop, for which a balancer gets
//! its time.

use std::time::{Duration, Instant};

use testkit::eventually::eventually;
use testkit::load;
use testkit::process::free_port;

use crate::deployment::Deployment;

const LIMIT: Duration = Duration::from_secs(20);

/// Goal: the log shows more, and less, without a restart; settings that cannot be read change
/// nothing. Method: SIGHUP with each.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_reads_what_to_log_again_and_goes_on() {
    let mut deployment = Deployment::embedded();
    deployment.apply_load_series();
    deployment.extra = "[log]\nfilter = \"warn\"\n".into();
    let service = deployment.serve();
    let (client, mut documents) = (testkit::client(), 0..);
    let port = service.url.rsplit(':').next().unwrap().to_owned();
    let file = deployment.path(&format!("numerator-{port}.toml"));
    let settings = std::fs::read_to_string(&file).unwrap();
    let mut take = async || {
        let document = format!("d{}", documents.next().unwrap());
        assert_eq!(load::take(&client, &service.url, &document).await.0, 201);
    };
    take().await;
    assert!(!service.log().contains("generate-number"), "{}", service.log());
    std::fs::write(&file, settings.replace("\"warn\"", "\"info\"")).unwrap();
    service.signal("HUP");
    eventually(LIMIT, async || {
        take().await;
        let log = service.log();
        if log.contains("generate-number") { Ok(()) } else { Err(log) }
    })
    .await;
    for wrong in ["filter = \"=[\"", "filter = 1", "filter ="] {
        let told = service.log().matches("the log goes on as before").count();
        std::fs::write(&file, settings.replace("filter = \"warn\"", wrong)).unwrap();
        service.signal("HUP");
        eventually(LIMIT, async || {
            let log = service.log();
            let is_told = log.matches("the log goes on as before").count() > told;
            if is_told { Ok(()) } else { Err(log) }
        })
        .await;
    }
    let before = service.log().matches("generate-number").count();
    take().await;
    eventually(LIMIT, async || {
        let log = service.log();
        if log.matches("generate-number").count() > before { Ok(()) } else { Err(log) }
    })
    .await;
    std::fs::write(&file, &settings).unwrap();
    service.signal("HUP");
    eventually(LIMIT, async || {
        let log = service.log();
        if log.contains("the log goes by this from now on filter=\"warn\"") {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
    assert!(service.terminate());
}

/// Goal: a proxy learns that a process stops before its port closes. Method: requests during the
/// delay, and a second signal that ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_asked_to_stop_says_so_and_takes_requests_for_its_delay() {
    for own_port in [false, true] {
        let mut deployment = Deployment::embedded();
        deployment.apply_load_series();
        deployment.http = "drain_delay = \"5m\"\n".into();
        if own_port {
            deployment.http += &format!("health_listen = \"127.0.0.1:{}\"\n", free_port());
        }
        let mut service = deployment.serve();
        let client = testkit::client();
        service.signal("TERM");
        let ready = format!("{}/readyz", service.health_url);
        eventually(LIMIT, async || match client.get(&ready).send().await.unwrap().status() {
            status if status == 503 => Ok(()),
            status => Err(status),
        })
        .await;
        for document in ["d1", "d2"] {
            // From a connection of its own, too.
            let (status, body) = load::take(&testkit::client(), &service.url, document).await;
            assert_eq!(status, 201, "{body}");
        }
        let alive = client.get(format!("{}/healthz", service.health_url)).send().await.unwrap();
        assert_eq!(alive.status(), 200, "nobody restarts it");
        assert!(service.is_running());
        let began = Instant::now();
        service.signal("TERM");
        assert!(service.has_ended_well(), "{}", service.log());
        assert!(began.elapsed() < Duration::from_secs(60), "the second signal ends the delay");
        deployment.assert_clean();
    }
}
