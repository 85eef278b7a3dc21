//! Rule expressions as other systems' programs send them: the array in the body of a configuration.

use reqwest::Method;
use serde_json::{Value, json};

use super::{change, configs, create, get, send, take, told, with};
use crate::deployment::Deployment;

/// A series whose numbers are defined by an expression.
fn body(expression: &Value) -> Value {
    json!({
        "code": "EXPRESSED", "name": "合同", "serves": { "types": ["EXPRESSED"] },
        "timezone": "Asia/Shanghai", "expression": expression, "reason": "test",
    })
}

fn elements(constant: &str) -> Value {
    json!([
        { "key": "const", "label": "常量", "value": constant },
        { "key": "serial", "label": "流水号", "value": "1(6)" },
    ])
}

#[tokio::test]
async fn configs_a_rule_expression_is_sent_as_the_array_that_it_is() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let id = create(&service, &body(&elements("EX"))).await;
    let (_, number) = take(&service, "EXPRESSED", "d1").await;
    assert_eq!(number["document_number"], "EX000001", "{number}");
    let (_, shown) = get(&configs(&service, &format!("/{id}"))).await;
    assert_eq!(shown["definition"]["template"], "EX{SEQ:6}", "{shown}");
    let (status, saved) = change(&service, id, 1, &body(&elements("EY"))).await;
    assert_eq!((status, &saved["version"]), (200, &json!(2)), "{saved}");
    assert_eq!(saved["preview"]["numbers"][0], "EY000002", "{saved}");

    let mut wrong = elements("EX");
    wrong[1]["value"] = json!("one");
    let refused = [
        (body(&wrong), "expression[1].value", "write start and digits such as 1(6)"),
        (body(&json!([])), "expression", "write an array of 1 to"),
        (with(body(&elements("EX")), "template", json!("{SEQ}")), "template", "one of the two"),
        (with(body(&elements("EX")), "serials", json!([{}])), "serials", "one of the two"),
    ];
    for (body, field, says) in refused {
        let answer = send(Method::POST, &configs(&service, ""), None, &body).await;
        let (status, problem) = told(answer).await;
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{says}: {problem}");
    }
    deployment.assert_clean();
}
