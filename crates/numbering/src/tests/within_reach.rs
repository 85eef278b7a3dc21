//! Projects that a caller does not reach.

use std::sync::Arc;

use super::super::*;
use super::references::{draft, letters, rows, sound, with};

/// Goal: the answer to a request shows nothing of projects that its caller does not reach, nor
/// whether there are any. Method: the same requests with their rows and without them.
#[test]
fn a_project_out_of_reach_is_as_if_its_row_were_not_there() {
    let site = |definition: &mut SeriesDefinition| {
        let site = VariableDefinition { reference: Some("projects".into()), ..Default::default() };
        definition.variables.insert("SITE".into(), site);
    };
    let (mut own, mut none) = (rows(), rows());
    own.retain(|row| row.table != "projects" || row.code == "LCBP3-C2");
    none.retain(|row| row.table != "projects");
    let of = |project: Option<&str>, project_id: Option<&str>, context: &[(&str, &str)]| {
        let mut request = sound();
        request.project = project.map(Into::into);
        request.project_id = project_id.map(Into::into);
        request.context.extend(context.iter().map(|(n, v)| (n.to_string(), v.to_string())));
        request
    };
    let requests = [
        sound(),
        of(None, None, &[("ORIGINATOR", "ผรม.2")]),
        of(None, None, &[("ORIGINATOR", "สคฉ.3")]),
        of(Some("LCBP3-C2"), None, &[("ORIGINATOR", "ผรม.2")]),
        of(Some("LCBP3-C2"), None, &[("ORIGINATOR", "สคฉ.3")]),
        of(Some("LCBP3"), None, &[("ORIGINATOR", "ผรม.2")]),
        of(Some("OLD"), None, &[("ORIGINATOR", "ผรม.2")]),
        of(Some("NOSUCH"), None, &[("ORIGINATOR", "ผรม.2")]),
        of(None, Some("1"), &[("ORIGINATOR", "ผรม.2")]),
        of(None, Some("2"), &[("ORIGINATOR", "ผรม.2")]),
        of(None, Some("3"), &[]),
        of(None, Some("9"), &[]),
        of(Some("LCBP3-C2"), None, &[("SITE", "LCBP3")]),
        of(Some("LCBP3-C2"), None, &[("site_id", "1")]),
        of(Some("LCBP3-C2"), None, &[("site_id", "3")]),
        of(Some("LCBP3-C2"), None, &[("site_id", "2")]),
    ];
    for (within, without) in [(&["LCBP3-C2"][..], own), (&["NOSUCH"], none)] {
        let (whole, bare) = (with(rows(), site), with(without, site));
        let within: Arc<[String]> = within.iter().map(|&code| code.to_owned()).collect();
        for request in &requests {
            let request = Inputs { projects_within: Some(within.clone()), ..request.clone() };
            assert_eq!(draft(&whole, &request), draft(&bare, &request), "{request:?}");
            let choice = |series: &Series| choose([series], &request, testing::NOW);
            assert_eq!(choice(&whole), choice(&bare), "{request:?}");
        }
    }
    // Of several projects it is the one within reach.
    let reached: Arc<[String]> = Arc::from(["LCBP3-C2".to_owned()]);
    let request = of(None, None, &[("ORIGINATOR", "ผรม.2")]);
    assert_eq!(draft(&letters(), &request).unwrap_err().slug(), "project-ambiguous");
    let request = Inputs { projects_within: Some(reached), ..request };
    let resolved = draft(&letters(), &request).unwrap().resolved.unwrap();
    assert_eq!(resolved.project.as_deref(), Some("LCBP3-C2"));
}
