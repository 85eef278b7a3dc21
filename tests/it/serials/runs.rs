//! What may run: checks of interface serials and steps of system serials, requested by many callers
//! at once, on several nodes, with a flushed Redis and a killed runner.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::load::post;
use testkit::service::Service;

use super::{INTERFACE, LIMIT, STEP, Stand, UNIFIED, ask, ask_with_key};

/// Posts one body to all services, 32 times at once; the answers.
async fn at_once(services: [&Service; 2], route: &str, body: &Value) -> Vec<(u16, Value)> {
    let calls = (0..32).map(|n| {
        let url = format!("{}/api/v1/serials/{route}", services[n % 2].url);
        let body = body.clone();
        tokio::spawn(async move { post(&testkit::client(), &url, &body).await })
    });
    let mut answers = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        answers.push(call.await.unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_checks_on_two_nodes_one_is_accepted_and_a_flush_forgets_nothing() {
    for stand in Stand::both() {
        let other = stand.deployment.serve();
        let check = json!({ "serial": INTERFACE, "window": "1d", "unified_serial": UNIFIED });
        let answers = at_once([&stand.service, &other], "interface/check", &check).await;
        let accepted: Vec<_> = answers.iter().filter(|(status, _)| *status == 200).collect();
        assert_eq!(accepted.len(), 1, "{answers:?}");
        assert_eq!(accepted[0].1["outcome"], "accepted");
        for (status, problem) in answers.iter().filter(|(status, _)| *status != 200) {
            assert_eq!((*status, &problem["code"]), (409, &json!("interface-serial-repeated")));
            assert_eq!(problem["standing"]["since"], accepted[0].1["accepted_at"], "{problem}");
            assert_eq!(problem["standing"]["user_id"], "local");
            assert_eq!(
                (&problem["retryable"], &problem["number_taken"]),
                (&json!(false), &json!("no"))
            );
        }
        if let Some(redis) = &stand.redis {
            redis.flushall();
        }
        let (status, problem) = ask(&other, "interface/check", &check).await;
        assert_eq!((status, &problem["standing"]["repeats"]), (409, &json!(32)), "{problem}");
        let metrics = testkit::client().get(format!("{}/metrics", other.url)).send().await.unwrap();
        let metrics = metrics.text().await.unwrap();
        assert!(
            metrics.contains("numerator_serial_checks_total{outcome=\"repeated\"}"),
            "{metrics}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_begins_on_two_nodes_one_runs_and_neither_a_flush_nor_a_crash_runs_it_again() {
    for mut stand in Stand::both() {
        let other = stand.deployment.serve();
        let begin = json!({ "serial": STEP, "unified_serial": UNIFIED });
        let answers = at_once([&stand.service, &other], "system/begin", &begin).await;
        let run: Vec<_> = answers.iter().filter(|(status, _)| *status == 201).collect();
        assert_eq!(run.len(), 1, "{answers:?}");
        assert_eq!((&run[0].1["run"], &run[0].1["attempt"]), (&json!(true), &json!(1)));
        let unknown = |status: u16, problem: &Value| {
            assert_eq!((status, &problem["code"]), (409, &json!("state-unknown")), "{problem}");
            assert_eq!(problem["standing"]["state"], "in-progress");
            assert_eq!(problem["standing"]["since"], run[0].1["begun_at"]);
        };
        for (status, problem) in answers.iter().filter(|(status, _)| *status != 201) {
            unknown(*status, problem);
        }
        // Redis forgets everything, and the process that began it dies before it succeeds.
        if let Some(redis) = &stand.redis {
            redis.flushall();
        }
        stand.service.kill();
        let (status, problem) = ask(&other, "system/begin", &begin).await;
        unknown(status, &problem);
        let attempt = |number: u32| json!({ "serial": STEP, "attempt": number });
        let mut gone = attempt(1);
        gone["reason"] = json!("its runner is gone; the account shows no entry");
        for replayed in [false, true] {
            let (status, answer) = ask(&other, "system/fail", &gone).await;
            assert_eq!((status, &answer["replayed"]), (200, &json!(replayed)), "{answer}");
        }
        let (status, answer) = ask(&other, "system/begin", &begin).await;
        assert_eq!((status, &answer["attempt"]), (201, &json!(2)), "{answer}");
        let (status, problem) = ask(&other, "system/succeed", &attempt(1)).await;
        assert_eq!((status, &problem["code"]), (409, &json!("attempt-not-current")), "{problem}");
        let mut done = attempt(2);
        done["result"] = json!({ "balance": "12.50" });
        for replayed in [false, true] {
            let (status, answer) = ask(&other, "system/succeed", &done).await;
            assert_eq!((status, &answer["replayed"]), (200, &json!(replayed)), "{answer}");
        }
        let (status, problem) = ask(&other, "system/begin", &begin).await;
        assert_eq!((status, &problem["code"]), (409, &json!("already-processed")), "{problem}");
        let mut by_result = begin.clone();
        by_result["on_repeat"] = json!("result");
        let (status, answer) = ask(&other, "system/begin", &by_result).await;
        assert_eq!((status, &answer["run"]), (200, &json!(false)), "{answer}");
        assert_eq!(answer["result"], json!({ "balance": "12.50" }));
        let (status, problem) = ask(&other, "system/fail", &gone).await;
        assert_eq!((status, &problem["code"]), (409, &json!("already-processed")), "{problem}");
    }
}

/// Programs read a stored result again, and not all of them survive a deep one.
#[tokio::test]
async fn a_result_is_refused_whose_lists_stand_too_deep_in_each_other() {
    let stand = Stand::embedded();
    assert_eq!(ask(&stand.service, "system/begin", &json!({ "serial": STEP })).await.0, 201);
    let url = format!("{}/api/v1/serials/system/succeed", stand.service.url);
    for (depth, expected) in [(65, 422), (8_000, 422), (64, 200)] {
        let result = "[".repeat(depth) + &"]".repeat(depth);
        let body = format!("{{\"serial\":\"{STEP}\",\"attempt\":1,\"result\":{result}}}");
        let request = testkit::client().post(&url).header("content-type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, expected, "{depth}: {text}");
        assert!(expected == 200 || text.contains("\"field\":\"result\""), "{depth}: {text}");
    }
}

#[tokio::test]
async fn a_result_comes_back_byte_for_byte_and_a_keyed_begin_is_told_the_same_again() {
    let stand = Stand::embedded();
    let begin = json!({ "serial": STEP });
    let (status, first) = ask_with_key(&stand.service, "system/begin", "k", &begin).await;
    assert_eq!((status, &first["run"]), (201, &json!(true)));
    let (status, again) = ask_with_key(&stand.service, "system/begin", "k", &begin).await;
    assert_eq!((status, &again["run"], &again["replayed"]), (200, &json!(true), &json!(true)));
    let result = "{ \"amount\": 0.10, \"id\": 12345678901234567890123 }";
    let body = format!("{{\"serial\": \"{STEP}\", \"attempt\": 1, \"result\": {result}}}");
    let url = format!("{}/api/v1/serials/system/succeed", stand.service.url);
    let request = testkit::client().post(url).header("Content-Type", "application/json").body(body);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    let text = answer.text().await.unwrap();
    assert!(text.contains(result), "{text}");
    let (status, problem) = ask_with_key(&stand.service, "system/begin", "k", &begin).await;
    assert_eq!((status, &problem["code"]), (409, &json!("already-processed")));
}

#[tokio::test]
async fn a_ledger_that_went_back_lets_nothing_run_until_an_operator_releases_it() {
    let stand = Stand::on_redis_and_postgres();
    let postgres = stand.postgres.as_ref().unwrap();
    postgres.sql("update serials.partition set state = 'held', cause = 'test'");
    let began = Instant::now();
    for step in 1.. {
        let begin = json!({ "serial": format!("C0001A010120150710{step:012}") });
        let (status, problem) = ask(&stand.service, "system/begin", &begin).await;
        if status == 503 {
            assert_eq!(problem["code"], "partition-held", "{problem}");
            break;
        }
        assert!(began.elapsed() < LIMIT, "not noticed: {problem}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let check = json!({ "serial": INTERFACE, "window": "1h" });
    let (status, problem) = ask(&stand.service, "interface/check", &check).await;
    assert_eq!((status, &problem["code"]), (503, &json!("partition-held")), "{problem}");
}
