//! Calls of the routes that change something, or that no narrowed token may call: as far as they
//! can be tried.

use reqwest::Method;
use serde_json::{Value, json};

use super::asks::{Ask, NUMBERING, lists, route};

/// All of them, in the order in which they are asked.
pub(super) fn asks() -> Vec<Ask> {
    [changes_of_configs(), takes(), reservations(), lives(), serials(), for_nobody()].concat()
}

/// Changes of configurations, as far as they can be tried, and the removal of one that is not used.
fn changes_of_configs() -> Vec<Ask> {
    let definition = |code: &str, projects: Value| {
        json!({
            "code": code, "name": "New", "template": format!("{code}-{{PROJECT}}-{{SEQ:4}}"),
            "serves": { "types": [code], "projects": projects }, "reason": "new",
            "serials": [{ "counter": ["project"] }],
        })
    };
    let dry = "?dry_run=true";
    let mut asks: Vec<Ask> = [json!(["P1"]), json!(["P1", "P2"]), json!([])]
        .map(|projects| {
            let path = format!("{NUMBERING}/configs{dry}");
            Ask::post(route!("/configs"), &path, definition("NEW", projects))
        })
        .into();
    let reason = json!({ "reason": "tried" });
    for id in ["{one}", "{hidden}", "{spare}"] {
        let mut ask = |method: Method, route: &'static str, below: &str, body: Option<Value>| {
            let path = format!("{NUMBERING}/configs/{id}{below}");
            let if_match = Some(format!("\"{id}-1\""));
            asks.push(Ask { method, body, if_match, reads: false, ..Ask::get(route, &path) });
        };
        let (one, post) = (route!("/configs/{configId}"), Method::POST);
        ask(Method::PUT, one, dry, Some(definition("ONE", json!(["P1"]))));
        for (route, below, body) in [
            // An active one gets a new version if any series has been deactivated since: it is
            // proved against the remaining ones. That is documented (docs/security.md).
            (
                route!("/configs/{configId}/rollback"),
                "/rollback",
                json!({ "version": 1, "reason": "back" }),
            ),
            (route!("/configs/{configId}/activate"), "/activate", reason.clone()),
            (route!("/configs/{configId}/deactivate"), "/deactivate", reason.clone()),
        ] {
            if below == "/activate" && id != "{hidden}" {
                continue;
            }
            ask(post.clone(), route, &format!("{below}{dry}"), Some(body));
        }
        ask(Method::DELETE, one, "?reason=over", None);
    }
    asks
}

/// Numbers that are voided, corrected and replaced.
fn lives() -> Vec<Ask> {
    let mut asks = Vec::new();
    for number in ["OPEN-P1-0001", "HIDP2-0001", "BOTH-P4-0001-A", "SHARED-0002", "nothing"] {
        let body = json!({ "number": number, "reason": "typed by mistake" });
        let path = format!("{NUMBERING}/numbers/void");
        asks.push(Ask::post(route!("/numbers/void"), &path, body));
    }
    for (number, site) in [
        ("REFD-P1-0001", "P1"),
        ("REFD-P1-0001", "P2"),
        ("HIDP2-0001", "P1"),
        ("BOTH-P4-0001-A", "P1"),
    ] {
        let context = json!({ "SITE": site });
        let body = json!({ "number": number, "context": context, "reason": "noted too late" });
        let path = format!("{NUMBERING}/numbers/correct");
        asks.push(Ask::post(route!("/numbers/correct"), &path, body));
    }
    for (number, kind, project) in [
        ("HELD-P1-0900", "HELD", "P1"),
        ("OPEN-P1-0009", "OPEN", "P1"),
        ("HIDP2-0009", "HID", "P2"),
        ("nothing", "OPEN", "P1"),
    ] {
        let body = json!({
            "number": number, "type": kind, "project": project, "reason": "written by hand",
        });
        let path = format!("{NUMBERING}/numbers/register");
        asks.push(Ask::post(route!("/numbers/register"), &path, body));
    }
    for number in ["OPEN-P1-0001", "OPEN-P1-0005", "HIDP2-0001", "BOTH-P4-0001-A", "nothing"] {
        let body = json!({ "number": number, "document_id": "sheet" });
        let path = format!("{NUMBERING}/numbers/assign");
        asks.push(Ask::post(route!("/numbers/assign"), &path, body));
    }
    let take = "/api/v1/documents/{documentId}/generate-number";
    for number in ["HIDP2-0001", "BOTH-P4-0001-A", "nothing"] {
        let body = json!({ "type": "OPEN", "project": "P1", "replaces": number });
        asks.push(Ask::post(take, "/api/v1/documents/replacing/generate-number", body));
    }
    asks
}

/// Reservations: what a caller has, and what another caller has.
fn reservations() -> Vec<Ask> {
    let mut asks = lists(
        route!("/reservations"),
        &[
            "",
            "?series=HELD&limit=1",
            "?series=HID",
            "?document_id=hidden",
            "?status=reserved",
            "?limit=1&after={held}",
        ],
    );
    for (index, (kind, project)) in
        [("HELD", "P1"), ("HELD", "P2"), ("HID", "P2"), ("OPEN", "P1")].into_iter().enumerate()
    {
        let document = format!("{{who}}-reserved-{index}");
        let order = json!({ "type": kind, "project": project, "document_id": document });
        asks.push(Ask::post(route!("/reservations"), route!("/reservations"), order));
    }
    for id in ["{held}", "{given_up}", "{block}", "{reservation}"] {
        let at = |below: &str| format!("{NUMBERING}/reservations/{id}{below}");
        asks.push(Ask::get(route!("/reservations/{reservationId}"), &at("")));
        let confirm = route!("/reservations/{reservationId}/confirm");
        let cancel = route!("/reservations/{reservationId}/cancel");
        let hand_back = route!("/reservations/{reservationId}/hand-back");
        asks.push(Ask::post(hand_back, &at("/hand-back"), json!({ "used": [] })));
        let acts = [
            Ask::post(confirm, &at("/confirm"), json!({})),
            Ask::post(cancel, &at("/cancel"), json!({ "reason": "given up" })),
        ];
        match id {
            "{given_up}" => asks.extend(acts.into_iter().rev()),
            _ => asks.extend(acts),
        }
    }
    asks
}

/// Numbers that are taken, or only shown.
fn takes() -> Vec<Ask> {
    let at_site = |id: &str| {
        let context = json!({ "ORIGINATOR": "A", "site_id": id });
        json!({ "type": "REFD", "project": "P1", "context": context })
    };
    let orders = [
        json!({ "type": "OPEN", "project": "P1" }),
        json!({ "type": "OPEN", "project": "P2" }),
        json!({ "type": "OPEN" }),
        json!({ "type": "OPEN", "project_id": "2" }),
        json!({ "type": "ONE", "project": "P1" }),
        json!({ "type": "HID" }),
        json!({ "type": "HID", "project": "P1" }),
        json!({ "type": "HID", "project": "P2" }),
        json!({ "type": "HIDOFF", "project": "P1" }),
        json!({ "type": "HIDOFF", "project": "P2" }),
        json!({ "type": "HID", "context": { "X_id": "1" } }),
        json!({ "type_id": "1", "project": "P2" }),
        json!({ "type": "REFD", "context": { "ORIGINATOR": "A" } }),
        json!({ "type": "REFD", "context": { "ORIGINATOR": "B" } }),
        json!({ "type": "REFD", "context": { "originator_id": "1" } }),
        json!({ "type": "REFD", "project": "P1", "context": { "ORIGINATOR": "A" } }),
        json!({ "type": "REFD", "project": "P1", "context": { "ORIGINATOR": "B" } }),
        json!({ "type": "REFD", "project": "P2", "context": { "ORIGINATOR": "A" } }),
        json!({ "type": "REFD", "project": "P2", "context": { "ORIGINATOR": "A", "NOPE": "1" } }),
        json!({ "type": "REFD", "project_id": "1", "context": { "ORIGINATOR": "A" } }),
        json!({ "type": "REFD", "project_id": "2", "context": { "ORIGINATOR": "A" } }),
        json!({ "type": "REFD", "project_id": "2", "context": { "ORIGINATOR": "A", "NOPE": "1" } }),
        json!({ "type": "REFD", "project_id": "9", "context": { "ORIGINATOR": "A" } }),
        json!({ "type": "REFD", "project": "P1", "context": { "ORIGINATOR": "A", "SITE": "P2" } }),
        at_site("2"),
        at_site("9"),
    ];
    let shown = orders.iter().map(|order| {
        let ask = Ask::post(route!("/preview"), route!("/preview"), order.clone());
        Ask { reads: true, ..ask }
    });
    let take = "/api/v1/documents/{documentId}/generate-number";
    let taken = orders.iter().enumerate().map(|(index, order)| {
        let path = format!("/api/v1/documents/{{who}}-{index}/generate-number");
        Ask::post(take, &path, order.clone())
    });
    let mut documents = orders.clone();
    for (index, order) in documents.iter_mut().enumerate() {
        order["document_id"] = json!(format!("{{who}}-of-batch-{index}"));
    }
    let list = json!({ "documents": documents });
    let range = |kind: &str| json!({ "type": kind, "project": "P1", "count": 2, "expand": true });
    let batches = [list, range("OPEN"), range("HID")];
    let batches = batches.map(|order| Ask::post(route!("/batches"), route!("/batches"), order));
    shown.chain(taken).chain(batches).collect()
}

/// Exchange serials. A step that was begun is shown to every caller of its series.
fn serials() -> Vec<Ask> {
    let chain = "/api/v1/serials/unified/{serial}";
    let mut asks = vec![
        Ask::get(chain, "/api/v1/serials/unified/{unified}"),
        Ask::get(chain, "/api/v1/serials/unified/{unified}?limit=1"),
        Ask::get(chain, "/api/v1/serials/unified/{unified}?limit=1&after=0.event.0"),
        Ask::get(chain, "/api/v1/serials/unified/C0001A0101201507109999999999"),
    ];
    let of = |system: &str, more: Value| {
        let mut all = json!({
            "system": system, "module": "A01", "instance": "01", "date": "2015-07-10",
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let step = |system: &str, step: &str| {
        of(
            system,
            json!({
                "unified_serial": "{unified}", "step": step,
            }),
        )
    };
    let call = of(
        "C0001",
        json!({
            "unified_serial": "{unified}", "target": "D0002", "date": "2015-07-10T08:00:00Z",
        }),
    );
    let [one, other] = ["C0001A010120150710000000999998", "C0001A010120150710000000999999"];
    for (path, order) in [
        ("/api/v1/serials/unified", of("C0001", json!({}))),
        ("/api/v1/serials/system", step("C0001", "pay")),
        ("/api/v1/serials/system", step("C0001", "{who}")),
        ("/api/v1/serials/interface", call),
        ("/api/v1/serials/system/begin", json!({ "serial": one })),
        ("/api/v1/serials/system/succeed", json!({ "serial": one, "attempt": 1 })),
        ("/api/v1/serials/system/begin", json!({ "serial": other })),
        ("/api/v1/serials/system/fail", json!({ "serial": other, "attempt": 1, "reason": "x" })),
        (
            "/api/v1/serials/interface/check",
            json!({ "serial": "C0001A0101D0002201507102301100000999999", "window": "1h" }),
        ),
    ] {
        asks.push(Ask::post(path, path, order));
    }
    asks
}

/// What no narrowed caller may do.
fn for_nobody() -> Vec<Ask> {
    let why = "because it is hidden from who asks";
    let mut asks = lists(route!("/change-requests"), &["", "?pending=true&limit=1&after=9"]);
    asks.extend(lists(route!("/tokens"), &["", "?limit=1&after=a"]));
    let reset = json!({ "counter_id": 1, "next_value": 7, "reason": why });
    let back = json!({ "counter_id": 1, "last_date": "2026-01-02", "reason": why });
    let rows = json!({ "rows": [{ "id": "9", "code": "P9" }], "reason": why });
    for (route, below, body) in [
        (route!("/configs/{configId}/reset-counter"), "/configs/{hidden}/reset-counter", reset),
        (
            route!("/configs/{configId}/reset-chronology"),
            "/configs/{hidden}/reset-chronology",
            back,
        ),
        (route!("/change-requests/{changeId}/approve"), "/change-requests/1/approve", json!({})),
        (
            route!("/change-requests/{changeId}/reject"),
            "/change-requests/1/reject",
            json!({ "reason": why }),
        ),
        (route!("/reference/{table}"), "/reference/secret?dry_run=true", rows),
        (route!("/tokens"), "/tokens", json!({ "name": "another" })),
        (route!("/tokens/{name}/revoke"), "/tokens/all/revoke", json!({ "reason": why })),
        (route!("/tokens/{name}/rotate"), "/tokens/all/rotate", json!({})),
    ] {
        asks.push(Ask::post(route, &format!("{NUMBERING}{below}"), body));
    }
    asks
}
