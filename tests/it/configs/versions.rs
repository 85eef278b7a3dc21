//! Versions of series: what a reader already has, what differs, going back, and the effect of a
//! change that is not saved.

use reqwest::Method;
use serde_json::{Value, json};

use super::{change, configs, create, get, send, series, take, told, with};
use crate::deployment::Deployment;
use testkit::service::Service;

/// The status and the tag of a reading by who has something of these tags.
async fn read(url: &str, known: Option<&str>) -> (u16, String) {
    let request = testkit::client().get(url);
    let request = match known {
        Some(tag) => request.header("If-None-Match", tag),
        None => request,
    };
    let answer = request.send().await.unwrap();
    let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
    let status = answer.status().as_u16();
    assert_eq!(answer.bytes().await.unwrap().is_empty(), status == 304);
    (status, tag)
}

/// The answer to a caller that sends a header `If-Match` as it is.
async fn put_on(service: &Service, id: i64, tag: &str, body: &Value) -> (u16, Value) {
    let url = configs(service, &format!("/{id}"));
    let request = testkit::client().put(url).header("If-Match", tag).json(body);
    told(request.send().await.unwrap()).await
}

#[tokio::test]
async fn configs_who_has_what_it_asks_for_is_told_so_and_a_change_names_what_it_builds_on() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let id = create(&service, &series("TAG", "T-{SEQ:3}")).await;
    let below = ["", "/TAG", &format!("/{id}/versions"), &format!("/{id}/versions/1")];
    let urls = below.map(|below| configs(&service, below));
    let mut tags = Vec::new();
    for url in &urls {
        let (status, tag) = read(url, None).await;
        assert!(status == 200 && tag.starts_with('"'), "{url}: {tag}");
        assert_eq!(read(url, Some(&format!("\"x\", {tag}"))).await, (304, tag.clone()), "{url}");
        tags.push(tag);
    }
    assert_eq!(tags[1], format!("\"{id}-1\""));
    let next = |width: u8| series("TAG", &format!("T-{{SEQ:{width}}}"));
    for (tag, wanted) in [
        (format!("\"{}-1\"", id - 1), 409),
        (format!("\"{id}-2\""), 409),
        (format!("W/\"{id}-1\""), 422),
        (format!("\"{id}-1\""), 200),
        // As it was shown before ids were in it.
        ("\"2\"".to_owned(), 200),
    ] {
        let (_, now) = get(&urls[1]).await;
        let width = 3 + u8::try_from(now["version"].as_u64().unwrap()).unwrap();
        let (status, said) = put_on(&service, id, &tag, &next(width)).await;
        assert_eq!(status, wanted, "{tag}: {said}");
        if status == 409 {
            assert_eq!(
                (&said["code"], &said["field"]),
                (&"version-conflict".into(), &"If-Match".into())
            );
        }
    }
    for (url, tag) in urls.iter().zip(&tags).take(3) {
        let (status, now) = read(url, Some(tag)).await;
        assert!(status == 200 && now != *tag, "{url}");
    }
    assert_eq!(read(&urls[3], Some(&tags[3])).await.0, 304, "a version stays what it is");
}

#[tokio::test]
async fn configs_what_differs_is_told_and_a_series_goes_back_by_a_version_of_its_own() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let id = create(&service, &series("BACK", "B-{SEQ:3}")).await;
    assert_eq!(take(&service, "BACK", "d1").await.1["document_number"], "B-001");
    let longer = with(series("BACK", "B-{SEQ:5}"), "prefix", json!("P"));
    assert_eq!(change(&service, id, 1, &longer).await.0, 200);
    let url = configs(&service, "/BACK/versions/2/diff");
    let (status, diff) = get(&url).await;
    assert_eq!((status, &diff["against"], &diff["version"]), (200, &json!(1), &json!(2)), "{diff}");
    let template =
        json!({ "path": "/definition/template", "before": "B-{SEQ:3}", "after": "B-{SEQ:5}" });
    assert_eq!(diff["changes"], json!([{ "path": "/definition/prefix", "after": "P" }, template]));
    let effect = &diff["effect"];
    assert_eq!((&effect["counters"], &effect["go_on"]), (&json!(1), &json!(["SEQ"])), "{effect}");
    assert_eq!(
        (&effect["next_before"][0], &effect["next_after"][0]),
        (&json!("B-002"), &json!("B-00002"))
    );
    let says = effect["summary"].to_string();
    assert!(
        says.contains("its 1 counter goes on") && says.contains("B-00002 in the place of"),
        "{says}"
    );
    let (_, mirrored) = get(&configs(&service, "/BACK/versions/1/diff?against=2")).await;
    assert_eq!(mirrored["changes"][0], json!({ "path": "/definition/prefix", "before": "P" }));
    let (_, first) = get(&configs(&service, "/BACK/versions/1/diff")).await;
    assert_eq!((&first["against"], first["changes"].as_array().unwrap().len()), (&Value::Null, 3));
    assert_eq!(get(&configs(&service, "/BACK/versions/2/diff?against=7")).await.0, 404);

    let url = configs(&service, &format!("/{id}/rollback"));
    let back = json!({ "version": 1, "reason": "the forms are short" });
    let wrong = with(back.clone(), "version", json!(9));
    for (version, body, status) in [
        (None, &back, 428),
        (Some(1), &back, 409),
        (Some(2), &wrong, 404),
        (Some(2), &json!({ "version": 1, "reason": "" }), 422),
    ] {
        assert_eq!(roll(&url, version, body).await.0, status, "{body}");
    }
    let (status, tried) = roll(&format!("{url}?dry_run=true"), Some(2), &back).await;
    assert_eq!(
        (status, &tried["saved"], &tried["version"]),
        (200, &json!(false), &json!(3)),
        "{tried}"
    );
    assert_eq!(tried["effect"]["next_after"][0], "B-002", "{tried}");
    let (status, saved) = roll(&url, Some(2), &back).await;
    assert_eq!(
        (status, &saved["version"], &saved["saved"]),
        (200, &json!(3), &json!(true)),
        "{saved}"
    );
    assert_eq!(take(&service, "BACK", "d2").await.1["document_number"], "B-002");
    let command = ["series", "rollback", "BACK", "--to", "2", "--reason", "as it was"];
    let told = deployment.ok(&[&command[..], &["--dry-run"]].concat());
    assert!(told.contains("BACK version 4 would be saved: its 1 counter goes on"), "{told}");
    assert!(told.contains("/definition/prefix: – → \"P\""), "{told}");
    assert!(deployment.ok(&command).starts_with("BACK version 4 saved\n"));
    let (_, all) = get(&configs(&service, "/BACK/versions")).await;
    let why: Vec<_> = all["versions"].as_array().unwrap().iter().map(|it| &it["reason"]).collect();
    assert_eq!(why, ["as it was", "the forms are short", "test", "test"]);
}

/// Sends a roll back.
async fn roll(url: &str, version: Option<u64>, body: &Value) -> (u16, Value) {
    told(send(Method::POST, url, version, body).await).await
}

#[tokio::test]
async fn configs_a_used_series_goes_back_to_no_other_counters_behind_the_same_text() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let back = json!({ "version": 1, "reason": "as it was" });
    let id = create(&service, &series("ANEW", "A-{YEAR}-{SEQ:3}")).await;
    let yearly = with(series("ANEW", "A-{YEAR}-{SEQ:3}"), "serials", json!([{ "reset": "year" }]));
    assert_eq!(change(&service, id, 1, &yearly).await.0, 200);
    take(&service, "ANEW", "d1").await;
    let url = configs(&service, &format!("/{id}/rollback"));
    let (status, refused) = roll(&url, Some(2), &back).await;
    assert_eq!((status, &refused["code"]), (409, &json!("series-in-use")), "{refused}");
    let (_, diff) = get(&configs(&service, "/ANEW/versions/2/diff")).await;
    assert_eq!(diff["effect"]["begin_anew"], json!(["SEQ"]), "{diff}");
}

#[tokio::test]
async fn configs_a_dry_run_tells_what_each_change_would_do() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let id = create(&service, &series("TRY", "T-{SEQ:3}")).await;
    let other = with(series("LIKE", "T-{SEQ:3}"), "unique_within", json!(["type"]));
    let url = configs(&service, "?dry_run=true");
    let (status, tried) = told(send(Method::POST, &url, None, &other).await).await;
    assert_eq!((status, &tried["effect"]["readers"]), (200, &json!(["TRY"])), "{tried}");
    let url = configs(&service, &format!("/{id}?dry_run=true"));
    let (_, tried) =
        told(send(Method::PUT, &url, Some(1), &series("TRY", "U-{SEQ:3}")).await).await;
    assert_eq!(tried["changes"][0]["path"], "/definition/template", "{tried}");
    assert_eq!(tried["effect"]["summary"][0], "it has no counters yet");
    let reason = json!({ "reason": "over" });
    let off = configs(&service, &format!("/{id}/deactivate?dry_run=true"));
    let (status, tried) = told(send(Method::POST, &off, Some(1), &reason).await).await;
    assert_eq!(
        (status, &tried["active"], &tried["version"]),
        (200, &json!(false), &json!(2)),
        "{tried}"
    );
    assert_eq!((&tried["saved"], &tried["changes"][0]["path"]), (&json!(false), &json!("/active")));
    assert_eq!(tried["effect"]["next_after"], json!([]), "{tried}");
    assert_eq!(take(&service, "TRY", "d1").await.1["document_number"], "T-001", "it serves");
    let on = configs(&service, &format!("/{id}/activate?dry_run=true"));
    let (_, tried) = told(send(Method::POST, &on, None, &reason).await).await;
    assert_eq!((&tried["version"], &tried["changes"]), (&json!(1), &json!([])), "{tried}");
    let (_, all) = get(&configs(&service, "/TRY/versions")).await;
    assert_eq!(all["versions"].as_array().unwrap().len(), 1, "nothing is saved");
}

#[tokio::test]
async fn configs_are_listed_by_what_they_serve_and_page_by_page() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let of_project =
        with(series("L1", "L1-{SEQ:3}"), "serves", json!({ "types": ["K"], "projects": ["P1"] }));
    create(&service, &of_project).await;
    create(
        &service,
        &with(series("L2", "L2-{SEQ:3}"), "serves", json!({ "types": ["K"], "projects": ["P2"] })),
    )
    .await;
    create(&service, &series("L3", "L3-{SEQ:3}")).await;
    let codes = async |query: &str| {
        let (status, list) = get(&configs(&service, query)).await;
        assert_eq!(status, 200, "{list}");
        let codes = list["configs"].as_array().unwrap().iter().map(|it| it["code"].clone());
        (
            codes.filter_map(|it| it.as_str().map(str::to_owned)).collect::<Vec<_>>(),
            list["next"].clone(),
        )
    };
    assert_eq!(codes("?code=L2").await.0, ["L2"]);
    assert_eq!(codes("?type=K").await.0, ["L1", "L2"]);
    assert_eq!(codes("?type=K&project=P2&is_active=true").await.0, ["L2"]);
    assert_eq!(codes("?type=L3&project=P2").await.0, ["L3"], "it serves any project");
    assert_eq!(codes("?type=K&is_active=false").await.0.len(), 0);
    assert_eq!(codes("?type=K&limit=1").await, (vec!["L1".to_owned()], json!("L1")));
    assert_eq!(codes("?type=K&limit=1&after=L1").await, (vec!["L2".to_owned()], Value::Null));
    let (all, next) = codes("").await;
    assert!(all.len() > 3 && all.is_sorted() && next == Value::Null, "{all:?}");
    for wrong in ["?limit=0", "?limit=1001", "?limit=x"] {
        assert_eq!(get(&configs(&service, wrong)).await.0, 422, "{wrong}");
    }
}

#[tokio::test]
async fn configs_what_says_nothing_of_dates_takes_near_ones_and_says_so() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let id = create(&service, &series("DATED", "D-{YEAR}-{SEQ:3}")).await;
    let (_, config) = get(&configs(&service, "/DATED")).await;
    let said = json!({ "past": "5y", "future": "1y" });
    assert_eq!(config["definition"]["document_date"], said, "{config}");
    let url = format!("{}/api/v1/document-numbering/preview", service.url);
    let look = async |date: &str| {
        let body = json!({ "type": "DATED", "date": date });
        told(send(Method::POST, &url, None, &body).await).await
    };
    for (date, says) in
        [("2568-06-30", "B.E. 2568"), ("9999-12-31", "correct"), ("0001-01-01", "correct")]
    {
        let (status, told) = look(date).await;
        assert_eq!((status, &told["code"]), (422, &json!("invalid-date")), "{told}");
        assert!(told["detail"].as_str().unwrap().contains(says), "{told}");
    }
    assert_eq!(look("1999-06-30").await.0, 422);
    let wide = with(series("DATED", "D-{YEAR}-{SEQ:3}"), "document_date", json!({ "past": "90y" }));
    assert_eq!(change(&service, id, 1, &wide).await.0, 200);
    assert_eq!(look("1999-06-30").await.0, 200);
    let wrong = with(wide, "document_date", json!({ "past": "5m" }));
    let (status, told) = change(&service, id, 2, &wrong).await;
    assert!(status == 422 && told["detail"].as_str().unwrap().contains("such as 5y"), "{told}");
}
