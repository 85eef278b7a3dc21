//! Rule expressions through the command line: into series files, to numbers, and back. What an
//! expression means is tested in `numbering`.

use crate::deployment::Deployment;

#[test]
fn a_rule_expression_becomes_a_series_that_can_be_said_as_one_again() {
    let deployment = Deployment::embedded();
    let expression = serde_json::json!([
        { "key": "const", "label": "常量", "value": "QT" },
        { "key": "time", "label": "时间", "value": "yyyyMM" },
        { "key": "variable", "label": "部门", "value": "单位" },
        { "key": "serial", "label": "流水号", "value": "1(6)" }
    ]);
    let file = deployment.path("expression.json");
    std::fs::write(&file, expression.to_string()).unwrap();
    let file = file.display().to_string();
    let of = ["--code", "QT", "--type", "QT", "--timezone", "Asia/Shanghai"];
    let series = deployment.ok(&[&["series", "from-expression", &file], &of[..]].concat());
    let series_file = deployment.path("qt.toml");
    std::fs::write(&series_file, series).unwrap();
    deployment.apply(&[series_file]);
    let number = deployment.ok(&["next", "QT", "--date", "2024-01-15", "--set", "单位=财务部"]);
    assert_eq!(number, "QT202401财务部000001\n");
    let said = deployment.ok(&["series", "to-expression", "QT"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&said).unwrap(), expression);
    // What counts without being shown is outside the elements.
    let file = deployment.path("hiding.json");
    let hiding = serde_json::json!({
        "elements": [{ "key": "const", "value": "YC" }, { "key": "serial", "value": "1(4)" }],
        "hidden_dimensions": ["BRANCH"],
        "variables": { "BRANCH": { "required": true } },
    });
    std::fs::write(&file, hiding.to_string()).unwrap();
    let file = file.display().to_string();
    let series = ["series", "from-expression", &file, "--code", "YC", "--type", "YC"];
    let series =
        deployment.ok(&series).replace("template =", "unique_within = [\"BRANCH\"]\ntemplate =");
    let series_file = deployment.path("yc.toml");
    std::fs::write(&series_file, series).unwrap();
    deployment.apply(&[series_file]);
    for branch in ["BRANCH=BKK", "BRANCH=CNX"] {
        assert_eq!(deployment.ok(&["next", "YC", "--set", branch]), "YC0001\n", "{branch}");
    }
    let said = deployment.ok(&["series", "to-expression", "YC"]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["hidden_dimensions"], hiding["hidden_dimensions"]);
    let refused = deployment.run(&["series", "from-expression", "/dev/null", "--code", "X"]);
    assert_eq!(refused.status.code(), Some(2), "a type is needed");
}
