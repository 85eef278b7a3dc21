//! Numbers that more than one series could have written.

use super::{file, import, imported, problems};
use crate::deployment::Deployment;

#[test]
fn a_number_that_another_series_reads_but_for_what_it_does_not_show_is_ambiguous() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    // LETTER serves one type; the series of requests and memos seven, and writes the same text.
    let list = file(&deployment, "rfi.txt", "คคง.-สคฉ.3-0042-2568\n");
    let (code, report, _) = import(&deployment, &[&list, "--project", "LCBP3-C2", "--apply"]);
    assert_eq!(code, 1, "{report}");
    assert_eq!(problems(&report), [("line 1".to_owned(), "ambiguous".to_owned())], "{report}");
    let detail = report["problems"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("CORRESPONDENCE") && detail.contains("LETTER"), "{detail}");
    assert!(detail.contains("--series"), "{detail}");
    for (argument, code) in
        [(["--type", "RFI"], "CORRESPONDENCE"), (["--series", "LETTER"], "LETTER")]
    {
        let arguments = [&[&*list, "--project", "LCBP3-C2"], &argument[..]].concat();
        let report = imported(&deployment, &arguments);
        assert_eq!(report["counters"][0]["series"], code, "{report}");
    }
}

#[test]
fn a_number_of_one_project_or_of_any_is_ambiguous_without_its_project() {
    let deployment = Deployment::embedded();
    let series = |code: &str, serves: &str| {
        format!(
            "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"N-{{SEQ:4}}\"\n\
             serves = {{ {serves} }}\nunique_within = [\"project\"]\n\
             serials = [{{ counter = [\"project\"] }}]\n"
        )
    };
    let path = deployment.path("notes.toml");
    let text = series("NOTE", "types = [\"NOTE\"]")
        + &series("NOTE-P9", "types = [\"NOTE\"], projects = [\"P9\"]");
    std::fs::write(&path, text).unwrap();
    deployment.apply(&[path]);
    let list = file(&deployment, "notes.txt", "N-0007\n");
    let (_, report, _) = import(&deployment, &[&list, "--type", "NOTE"]);
    assert_eq!(problems(&report), [("line 1".to_owned(), "ambiguous".to_owned())], "{report}");
    for (project, code) in [("P1", "NOTE"), ("P9", "NOTE-P9")] {
        let report = imported(&deployment, &[&list, "--type", "NOTE", "--project", project]);
        assert_eq!(report["counters"][0]["series"], code, "{report}");
    }
}
