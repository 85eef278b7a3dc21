//! How long the numbering language takes for one number, from a compiled series: `cargo bench -p
//! numbering`. Everything here is on the path of every number, so it must stay below a microsecond.
#![allow(missing_docs, reason = "a benchmark says what it measures in its name")]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use numbering::{Inputs, Series, builtin_series, read_series};

/// A series with a request for it.
struct Case {
    code: &'static str,
    inputs: Inputs,
    /// The serial's value; wider than its token if the case is about that.
    value: u64,
}

/// Receipts with a serial that widens and a check over all of the number.
const RECEIPT: &str = r#"
[[series]]
code = "RECEIPT"
name = "Receipt"
template = "{BRANCH}-{DATE:yyyyMMdd}-{SEQ:4}-{CHECK:mod97-10}"
serves = { types = ["RECEIPT"] }
serials = [{ counter = ["BRANCH"], reset = "day", overflow = "widen" }]

[series.variables]
BRANCH = { required = true, alphabet = "A-Z0-9", width_max = 8 }
"#;

/// One series of each source: few parts and many, ASCII and not, a date and the present; and one
/// with a check.
fn cases() -> Vec<Case> {
    let inputs = |type_code: &str, project: &str, date: &str, context: &[(&str, &str)]| Inputs {
        type_code: type_code.into(),
        project: (!project.is_empty()).then(|| project.into()),
        date: (!date.is_empty()).then(|| date.into()),
        context: context
            .iter()
            .map(|(n, v)| ((*n).into(), (*v).into()))
            .collect::<BTreeMap<_, _>>(),
        ..Inputs::default()
    };
    let letter = [("ORIGINATOR", "คคง."), ("RECIPIENT", "สคฉ.3")];
    let rfa = [("DISCIPLINE", "TER"), ("RFA_TYPE", "RPT"), ("REV", "A")];
    let system = [("SYSTEM", "C0001"), ("MODULE", "A01"), ("INSTANCE", "01")];
    let branch = [("BRANCH", "BKK02")];
    let case = |code, inputs| Case { code, inputs, value: 42 };
    vec![
        case("SPO", inputs("SPO", "", "2024-01-22", &[])),
        case("SPO now", inputs("SPO", "", "", &[])),
        case("LETTER", inputs("LETTER", "LCBP3-C2", "2025-12-02", &letter)),
        case("RFA", inputs("RFA", "LCBP3-C2", "2025-12-02", &rfa)),
        case("HT", inputs("HT", "", "2024-01-15", &[("单位", "财务部")])),
        case("UNIFIED-SERIAL", inputs("UNIFIED-SERIAL", "", "2015-07-10", &system)),
        Case { value: 12_345, ..case("RECEIPT", inputs("RECEIPT", "", "2024-01-22", &branch)) },
    ]
}

fn series(code: &str) -> Series {
    let code = code.split(' ').next().unwrap_or(code);
    let own = read_series(RECEIPT).expect("sound");
    let definition = builtin_series().into_iter().chain(own).find(|series| series.code == code);
    Series::compile(definition.expect("there is one")).expect("sound")
}

fn render(criterion: &mut Criterion) {
    let now: Timestamp = "2025-12-02T03:04:05Z".parse().expect("a time");
    let mut group = criterion.benchmark_group("render one number");
    for Case { code, inputs, value } in cases() {
        let series = series(code);
        group.bench_function(BenchmarkId::from_parameter(code), |bencher| {
            bencher.iter(|| {
                let draft = series.draft(black_box(&inputs), black_box(now)).expect("a draft");
                draft.partial.fill(black_box(&[value])).expect("fits")
            });
        });
    }
    group.finish();
}

fn steps(criterion: &mut Criterion) {
    let now: Timestamp = "2025-12-02T03:04:05Z".parse().expect("a time");
    for Case { code, inputs, value } in cases() {
        let draft = series(code).draft(&inputs, now).expect("a draft");
        criterion.bench_with_input(
            BenchmarkId::new("fill a partial number", code),
            &draft,
            |bencher, draft| {
                bencher.iter(|| black_box(&draft.partial).fill(black_box(&[value])).expect("fits"));
            },
        );
        criterion.bench_with_input(
            BenchmarkId::new("name a counter", code),
            &draft,
            |bencher, draft| {
                bencher.iter(|| black_box(&draft.keys[0]).to_string());
            },
        );
    }
}

criterion_group!(benches, render, steps);
criterion_main!(benches);
