//! The JSON of numbers and ranges, and the texts of a range.

use std::sync::Arc;

use numbering::TakenRange;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::features::numbers::texts::Texts;
use crate::ledger::At;

/// So many numbers of a series with two serials.
fn issued(count: u64) -> Issued {
    let range = |first, step| Range { first, last: first + (count - 1) * step, step };
    let record = Record {
        allocation_id: Uuid::nil(),
        series_id: 3,
        version: 2,
        type_code: "BOX".into(),
        project: Some("P1".into()),
        scope: String::new(),
        mask: "BOX-{0:3}/{1:2}".into(),
        document_id: Some("D1".into()),
        document_date: "2024-01-22".into(),
        context: [("REV".to_owned(), "A".to_owned())].into(),
        serials: vec!["SEQ".into(), "LINE".into()],
        counter_keys: vec!["project=P1;day=2024-01-22".into(), "type=BOX".into()],
        user_id: "ci".into(),
        ip_address: None,
        idempotency_key: None,
        payload_digest: String::new(),
        issued_at_us: 1_705_892_645_600_000,
    };
    let entry = Entry {
        record: Arc::new(record),
        taken: vec![
            TakenRange { counter_id: 1, range: range(7, 1) },
            TakenRange { counter_id: 2, range: range(10, 5) },
        ],
        number: "BOX-007/10".into(),
        at: At { partition: 0, epoch: 1 },
        retry_count: 0,
        path: IssuePath::Redis,
    };
    let last_number = (count > 1).then(|| "BOX-009/20".into());
    Issued {
        entry,
        series: "BOX".into(),
        last_number,
        replayed: false,
        new_counters: Vec::new(),
        reserved_until_us: None,
    }
}

#[test]
fn a_number_is_told_with_its_counters_and_serials() {
    let issued = issued(1);
    let answer = serde_json::to_value(NumberAnswer::of(&issued)).expect("JSON");
    assert_eq!(
        answer,
        json!({
            "document_number": "BOX-007/10",
            "document_id": "D1",
            "type": "BOX",
            "project": "P1", "series": "BOX",
            "config_id": 3,
            "config_version": 2,
            "counter_key": {"project": "P1", "day": "2024-01-22"},
            "counter_keys": [{"project": "P1", "day": "2024-01-22"}, {"type": "BOX"}],
            "serials": [
                {"name": "SEQ", "first": "7", "last": "7", "step": "1"},
                {"name": "LINE", "first": "10", "last": "10", "step": "5"},
            ],
            "issued_at": "2024-01-22T03:04:05.600000Z",
            "path": "redis",
            "replayed": false,
        })
    );
}

#[test]
fn a_range_is_told_by_both_its_ends() {
    let (one, three) = (issued(1), issued(3));
    let answer = serde_json::to_value(RangeAnswer::of(&three)).expect("JSON");
    for (field, value) in [
        ("first", json!("7")),
        ("last", json!("9")),
        ("step", json!("1")),
        ("count", json!(3)),
        ("first_number", json!("BOX-007/10")),
        ("last_number", json!("BOX-009/20")),
        ("replayed", json!(false)),
    ] {
        assert_eq!(answer[field], value, "{field}");
    }
    assert_eq!(answer["serials"][1]["last"], "20");
    let one = RangeAnswer::of(&one);
    assert_eq!((one.count, one.last_number), (1, "BOX-007/10"));
}

#[test]
fn the_texts_of_a_range_move_all_serials_together() {
    let texts =
        Texts::of(&issued(3)).expect("a partially rendered number").collect::<Result<Vec<_>, _>>();
    assert_eq!(texts.expect("texts"), ["BOX-007/10", "BOX-008/15", "BOX-009/20"]);
}

#[test]
fn a_counter_key_that_is_none_is_shown_whole() {
    let key = serde_json::to_value(CounterKeyAnswer("no equals sign")).expect("JSON");
    assert_eq!(key, json!({"key": "no equals sign"}));
}
