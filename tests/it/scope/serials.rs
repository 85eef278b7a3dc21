//! Steps and interface serials are those of a series within reach, and not of a future time.

use jiff::tz::TimeZone;
use jiff::{Span, Zoned};
use numerator::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::Scene;
use crate::deployment::Deployment;

const UNIFIED: &str = "C0001A0101201507100000000001";
const STEP: &str = "C0001A010120150710000000000001";
const CALL: &str = "C0001A0101D0002201507102301100000000001";

/// What can be done with a step and with an interface serial.
fn acts(step: &str, call: &str) -> [(&'static str, Value); 4] {
    [
        ("system/begin", json!({ "serial": step, "unified_serial": UNIFIED })),
        ("system/succeed", json!({ "serial": step, "attempt": 1 })),
        ("system/fail", json!({ "serial": step, "attempt": 1, "reason": "no" })),
        ("interface/check", json!({ "serial": call, "window": "1d", "unified_serial": UNIFIED })),
    ]
}

fn scene() -> Scene {
    Scene::start(
        Deployment::embedded(),
        &[
            ("all", &[]),
            ("other", &["--series", "SPO"]),
            ("project", &["--project", "P1"]),
            ("steps", &["--series", "SYSTEM-SERIAL"]),
            ("calls", &["--series", "INTERFACE-SERIAL", "--series", "UNIFIED-SERIAL"]),
        ],
    )
}

#[tokio::test]
async fn who_does_not_reach_a_series_of_serials_begins_ends_and_accepts_none_of_them() {
    let scene = scene();
    let post = async |who: &str, route: &str, body: Value| {
        scene.post(who, &format!("/api/v1/serials/{route}"), body).await
    };
    let source = json!({ "system": "C0001", "module": "A01", "instance": "01" });
    let beyond = |route: &str| match route {
        "interface/check" => ["other", "project", "steps"],
        _ => ["other", "project", "calls"],
    };
    let refused = async |when: &str| {
        for (route, body) in acts(STEP, CALL) {
            for who in beyond(route) {
                let (status, told) = post(who, route, body.clone()).await;
                let said = (status, &told["code"], &told["standing"]);
                let wanted = (422, &json!("unknown-type"), &Value::Null);
                assert_eq!(said, wanted, "{when}: {route} of {who}: {told}");
            }
        }
    };
    // Neither of those that were not used yet, nor of what others have begun.
    refused("before").await;
    let (status, told) = post("steps", "system/begin", acts(STEP, CALL)[0].1.clone()).await;
    assert_eq!((status, &told["attempt"]), (201, &json!(1)), "{told}");
    refused("meanwhile").await;
    let (status, told) = post("steps", "system/succeed", acts(STEP, CALL)[1].1.clone()).await;
    assert_eq!((status, &told["state"]), (200, &json!("succeeded")), "{told}");
    let (status, told) = post("calls", "interface/check", acts(STEP, CALL)[3].1.clone()).await;
    assert_eq!((status, &told["outcome"]), (200, &json!("accepted")), "{told}");
    refused("after").await;
    // Nor does a caller beyond learn whether a step has a serial.
    let step = |step: &str| {
        let mut order = source.clone();
        let more = json!({ "unified_serial": UNIFIED, "step": step, "date": "2015-07-10" });
        order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        order
    };
    assert_eq!(post("all", "system", step("pay")).await.0, 201);
    for name in ["pay", "book"] {
        let (_, told) = post("calls", "system", step(name)).await;
        assert_eq!(told["code"], "unknown-type", "{name}: {told}");
    }
}

#[tokio::test]
async fn a_serial_of_a_time_that_is_to_come_is_neither_begun_nor_accepted() {
    let scene = scene();
    let now = SystemClock.now().to_zoned(TimeZone::get("Asia/Shanghai").unwrap());
    let call = |at: Zoned| format!("C0001A0101D0002{}0000000007", at.strftime("%Y%m%d%H%M%S"));
    let step = |at: Zoned| format!("C0001A0101{}000000000007", at.strftime("%Y%m%d"));
    let post = async |(route, body): (&str, Value)| {
        let (status, told) = scene.post("all", &format!("/api/v1/serials/{route}"), body).await;
        (status, told["field"].as_str().unwrap_or_default().to_owned())
    };
    let later = |span: Span| now.checked_add(span).unwrap();
    let refused = (422, "serial".to_owned());
    for span in [Span::new().minutes(5), Span::new().days(1), Span::new().years(1)] {
        let [.., check] = acts(STEP, &call(later(span)));
        assert_eq!(post(check).await, refused, "{span}");
    }
    for span in [Span::new().days(2), Span::new().years(1)] {
        let [begin, succeed, fail, _] = acts(&step(later(span)), CALL);
        assert_eq!(post(begin).await, refused, "{span}");
        // Whatever the zone was in which it was begun: the ledger knows that it was not begun.
        for act in [succeed, fail] {
            assert_eq!(post(act).await, (404, String::new()), "{span}");
        }
    }
    let [begin, .., check] = acts(&step(now.clone()), &call(now.clone()));
    assert_eq!((post(begin).await.0, post(check).await.0), (201, 200));
}
