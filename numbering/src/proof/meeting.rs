//! Which requests of one uniqueness scope two series may both be asked (R2.9). Where there are
//! none, it does no harm that the two can show one text.
//!
//! Looks at lists and ranks, not at requests. A code without a row may become that of any, and a
//! request may be sent in codes or in ids. So in doubt a series may be asked.

use std::collections::BTreeSet;

use super::super::Series;
use super::super::draft::ABSENT;
use super::super::ties::{Names, ORIGINATOR, PROJECT, Region, Rule, SUB_TYPE, TYPE, left_over};
use super::offers::{Value, dimension, is_known_alike, offers, table, variable, winners};
use super::witness::{ANY_PROJECT, ANY_TYPE};

/// Most combinations of values that are looked at for two series.
const COMBINATIONS_MAX: usize = 1_024;

/// How many places of a request the choice of a series looks at.
pub(super) const PLACES: usize = 4;

/// What a request may name, as far as the choice of a series looks at it.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) type_code: String,
    pub(super) project: Option<String>,
    /// Originator and sub type by the names of their variables, where they matter.
    pub(super) context: Vec<(String, String)>,
}

/// What two series may be asked in one scope.
#[derive(Debug)]
pub(super) enum Meetings {
    /// No two requests of one scope reach both, whatever becomes of the tables.
    Never,
    /// Some may: these, for example, if any example is at hand.
    Perhaps(Vec<(Asking, Asking)>),
}

/// Looks for requests of one scope that the rules may give to the one and to the other series.
pub(super) fn meetings(a: &Series, b: &Series, beside: [&[&Series]; 2]) -> Meetings {
    let mut examples = Vec::new();
    let mut met = false;
    for (left_a, left_b) in lefts(a, b, beside, shared(a, b)) {
        met = true;
        examples.extend(askings(a, &left_a).into_iter().flat_map(|for_a| {
            let others = askings(b, &left_b).into_iter();
            others.map(move |for_b| (for_a.clone(), for_b))
        }));
    }
    let (by_type, by_project) = (is_shared(a, b, TYPE), is_shared(a, b, PROJECT));
    examples.retain(|(for_a, for_b)| {
        // Two codes may be one row's.
        let is_one = |is_shared: bool, place: usize| is_shared && table(a, place).is_none();
        (!is_one(by_type, TYPE) || for_a.type_code == for_b.type_code)
            && (!is_one(by_project, PROJECT) || for_a.project == for_b.project)
    });
    examples.truncate(COMBINATIONS_MAX);
    if met { Meetings::Perhaps(examples) } else { Meetings::Never }
}

/// Whether the rules may give requests of one scope to both that have one value at each of the
/// places named by `alike`, too.
pub(super) fn may_meet_in(
    a: &Series,
    b: &Series,
    beside: [&[&Series]; 2],
    alike: &[usize],
) -> bool {
    let mut places = shared(a, b);
    alike.iter().for_each(|place| places[*place] = true);
    !lefts(a, b, beside, places).is_empty()
}

/// What no other series `beside` surely takes of the requests for both that have one value at each
/// of the places `alike`.
fn lefts<'s>(
    a: &'s Series,
    b: &'s Series,
    beside: [&[&'s Series]; 2],
    alike: [bool; PLACES],
) -> Vec<(Region<Value<'s>>, Region<Value<'s>>)> {
    let (over_a, over_b) = (winners(a, beside[0]), winners(b, beside[1]));
    let (offers_a, offers_b) = (offers(a), offers(b));
    let mut lefts = Vec::new();
    for (x, y) in offers_a.iter().flat_map(|x| offers_b.iter().map(move |y| (x, y))) {
        let joints = joints([a, b], [x, y], alike);
        for joints in combinations(&joints) {
            let of_a = |late| left(x, joints.map(|joint| joint.names(0, late)), &over_a);
            let of_b = |late| left(y, joints.map(|joint| joint.names(1, late)), &over_b);
            let either = [false, true].into_iter();
            lefts.extend(either.map(|late| of_a(late).zip(of_b(!late))).find_map(|both| both));
        }
    }
    lefts
}

/// Whether lists alone keep two series apart: no value of one scope is for both.
pub(super) fn are_apart(a: &Series, b: &Series) -> bool {
    let (offers_a, offers_b) = (offers(a), offers(b));
    let alike = shared(a, b);
    let mut pairs = offers_a.iter().flat_map(|x| offers_b.iter().map(move |y| (x, y)));
    pairs.all(|(x, y)| joints([a, b], [x, y], alike).iter().any(Vec::is_empty))
}

/// The places that two series have in their scope and read alike.
fn shared(a: &Series, b: &Series) -> [bool; PLACES] {
    std::array::from_fn(|place| is_shared(a, b, place))
}

/// Whether both series have a place in their scope and read it alike: then it is one value.
pub(super) fn is_shared(a: &Series, b: &Series, place: usize) -> bool {
    let in_scope = |series: &Series| {
        dimension(series, place).is_some_and(|dimension| series.scope.contains(&dimension))
    };
    in_scope(a) && in_scope(b) && is_known_alike(a, b, place)
}

/// What two rules take at a place, each by every name that it surely has at the time, its own
/// first: the later of two requests finds the names by which both were taken.
struct Joint<'s> {
    early: [Vec<Names<Value<'s>>>; 2],
    late: [Vec<Names<Value<'s>>>; 2],
}

impl<'s> Joint<'s> {
    /// What may have nothing to do with each other.
    fn apart(names: [Names<Value<'s>>; 2]) -> Self {
        let names = names.map(|names| vec![names]);
        Joint { early: names.clone(), late: names }
    }

    /// One value; `None`: a rule takes any. `tells`: whether a request of each surely names it.
    fn one(names: [Option<Value<'s>>; 2], tells: [bool; 2]) -> Self {
        let set = |name: Value<'s>| Some(BTreeSet::from([name]));
        let of = |names: &mut dyn Iterator<Item = Value<'s>>| {
            let surely: Vec<_> = names.map(set).collect();
            if surely.is_empty() { vec![None] } else { surely }
        };
        let early = [0, 1].map(|side| {
            // What has a row has it for ever.
            let other = names[1 - side].filter(|name| !matches!(name, Value::New(_)));
            of(&mut names[side].into_iter().chain(other.filter(|_| tells[side])))
        });
        let late = [0, 1].map(|side| {
            let other = names[1 - side].filter(|_| tells[side]);
            of(&mut names[side].into_iter().chain(other))
        });
        Joint { early, late }
    }

    fn names(&self, side: usize, late: bool) -> &[Names<Value<'s>>] {
        if late { &self.late[side] } else { &self.early[side] }
    }
}

/// What two rules take at each place, where it is one value for both at the places `alike`. As far
/// as there are too many combinations, values are not looked at one by one.
fn joints<'s>(
    series: [&Series; 2],
    rules: [&Rule<'s, Value<'s>>; 2],
    alike: [bool; PLACES],
) -> [Vec<Joint<'s>>; PLACES] {
    let names = |place: usize| rules.map(|rule| &rule.names[place]);
    let mut joints: [Vec<Joint<'s>>; PLACES] = std::array::from_fn(|place| match alike[place] {
        true => joint(series, place, names(place)),
        false => vec![Joint::apart(names(place).map(Clone::clone))],
    });
    for place in [SUB_TYPE, ORIGINATOR, PROJECT, TYPE] {
        if joints.iter().map(Vec::len).product::<usize>() > COMBINATIONS_MAX {
            joints[place] = vec![Joint::apart(names(place).map(Clone::clone))];
        }
    }
    joints
}

/// What two rules take at a place that is one value for both: each that both may take by itself.
fn joint<'s>(
    series: [&Series; 2],
    place: usize,
    [of_a, of_b]: [&Names<Value<'s>>; 2],
) -> Vec<Joint<'s>> {
    let one = |x: Option<Value<'s>>, y: Option<Value<'s>>| {
        let names = [x, y];
        let tells = [0, 1].map(|side| {
            names[side].is_some()
                || names[1 - side].is_some_and(|y| names_it(series[side], place, y))
        });
        Joint::one(names, tells)
    };
    match (of_a, of_b) {
        (None, None) => vec![Joint::apart([None, None])],
        (Some(names), None) => names.iter().map(|x| one(Some(*x), None)).collect(),
        (None, Some(names)) => names.iter().map(|y| one(None, Some(*y))).collect(),
        (Some(of_a), Some(of_b)) => {
            let pairs = of_a.iter().flat_map(|x| of_b.iter().map(move |y| (*x, *y)));
            let pairs = pairs.filter(|(x, y)| x.may_be(*y));
            pairs.map(|(x, y)| one(Some(x), Some(y))).collect()
        }
    }
}

/// Whether a number with a value at a place is surely of a request that names it.
fn names_it(series: &Series, place: usize, value: Value<'_>) -> bool {
    let is_absent = matches!(value, Value::Code(ABSENT) | Value::New(ABSENT));
    match place {
        PROJECT | TYPE => true,
        // What is not sent may be a default, or nothing.
        _ => !is_absent && variable(series, place).is_some_and(|v| v.default.is_none()),
    }
}

/// One of each place, in every combination.
fn combinations<'j, 's>(
    joints: &'j [Vec<Joint<'s>>; PLACES],
) -> impl Iterator<Item = [&'j Joint<'s>; PLACES]> {
    let [one, two, three, four] = joints;
    one.iter().flat_map(move |one| {
        two.iter().flat_map(move |two| {
            let rest = three.iter().flat_map(|three| four.iter().map(move |four| (three, four)));
            rest.map(move |(three, four)| [one, two, three, four])
        })
    })
}

/// What no winner takes of a rule's requests with these values, by whichever of their names.
fn left<'s>(
    rule: &Rule<'s, Value<'s>>,
    names: [&[Names<Value<'s>>]; PLACES],
    winners: &[Rule<'s, Value<'s>>],
) -> Option<Region<Value<'s>>> {
    let better = winners.iter().filter(|other| {
        // A type that is listed may be undetermined for those that do not list it.
        let of_any_type = other.names[TYPE].is_none();
        // Where two are equally specific the request is refused.
        other.rank >= rule.rank && (rule.names[TYPE].is_none() || !of_any_type)
    });
    let better: Vec<_> = better.collect();
    let mut regions = vec![Region::default()];
    for (place, names) in names.into_iter().enumerate() {
        let with = |region: &Region<Value<'s>>, name: &Names<Value<'s>>| {
            let mut region = region.clone();
            region[place].clone_from(name);
            region
        };
        let named = regions.iter().flat_map(|region| names.iter().map(|name| with(region, name)));
        regions = named.collect();
    }
    let all: Option<Vec<_>> =
        regions.into_iter().map(|region| left_over(region, &better)).collect();
    all?.into_iter().next()
}

/// Requests of a region, some of each type and project.
fn askings(series: &Series, region: &Region<Value<'_>>) -> Vec<Asking> {
    let serves = &series.definition.serves;
    let code = |place: usize, value: Value<'_>| match value {
        Value::Code(code) | Value::New(code) => code.to_owned(),
        Value::Row(id) => {
            let row = table(series, place).and_then(|table| series.reference.by_id(table, id));
            row.map_or(id, |row| row.code.as_str()).to_owned()
        }
    };
    let codes = |place: usize| -> Option<Vec<String>> {
        Some(region[place].as_ref()?.iter().map(|value| code(place, *value)).collect())
    };
    let types = codes(TYPE).unwrap_or_else(|| {
        let any = series.served.any_type.then(|| ANY_TYPE.to_owned());
        serves.types.iter().cloned().chain(any).collect()
    });
    let listed = codes(PROJECT).or_else(|| Some(serves.projects.clone()));
    let listed = listed.filter(|projects| !projects.is_empty());
    let projects: Vec<Option<String>> = match listed {
        Some(projects) => projects.into_iter().map(Some).collect(),
        None if series.project_needed => vec![Some(ANY_PROJECT.to_owned())],
        None => vec![None, Some(ANY_PROJECT.to_owned())],
    };
    let named = |place: usize, listed: &[String]| -> Vec<Option<(String, String)>> {
        let Some(variable) = variable(series, place) else { return vec![None] };
        // Codes that no table has yet are among no ids.
        let values = codes(place).unwrap_or_else(|| listed.to_vec()).into_iter();
        let values: Vec<_> = values.map(|value| Some((variable.name.clone(), value))).collect();
        if values.is_empty() { vec![None] } else { values }
    };
    let originators = named(ORIGINATOR, &serves.originators);
    let sub_types = named(SUB_TYPE, &serves.sub_types);
    let pairs = types.iter().flat_map(|name| projects.iter().map(move |project| (name, project)));
    let contexts = originators.iter().flat_map(|one| sub_types.iter().map(move |two| (one, two)));
    let contexts: Vec<Vec<(String, String)>> =
        contexts.map(|(one, two)| one.iter().chain(two).cloned().collect()).collect();
    let asking = |((type_code, project), context): ((&String, &Option<String>), _)| {
        let (type_code, project) = (type_code.clone(), project.clone());
        Asking { type_code, project, context }
    };
    let all = pairs.flat_map(|pair| contexts.iter().map(move |context| (pair, context.clone())));
    all.map(asking).take(COMBINATIONS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::testing::{definition, reference};
    use super::super::super::{ReferenceData, References, SeriesDefinition, VariableDefinition};
    use super::*;

    /// A series of all types that it lists.
    fn serves(code: &str, types: &[&str], edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
        let mut definition = definition();
        definition.code = code.into();
        definition.serves.types = types.iter().map(ToString::to_string).collect();
        edit(&mut definition);
        Series::compile(definition).expect("compiles")
    }

    /// The same, on a table of types that has the codes `A` and, as one row, `B` and `C`.
    fn tabled(code: &str, types: &[&str], edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
        let series = serves(code, types, |definition| {
            definition.references =
                References { type_code: Some("types".into()), ..References::default() };
            edit(definition);
        });
        let mut renamed = reference("types", "2", "C", true);
        renamed.former_codes = vec!["B".into()];
        let rows = [reference("types", "1", "A", true), renamed];
        series.with_reference(Arc::new(ReferenceData::new(rows, [])))
    }

    fn in_type(definition: &mut SeriesDefinition) {
        definition.unique_within = vec!["type".into()];
    }

    fn meet(a: &Series, b: &Series, others: &[&Series]) -> bool {
        let active: Vec<&Series> = [a, b].into_iter().chain(others.iter().copied()).collect();
        matches!(meetings(a, b, [&active; 2]), Meetings::Perhaps(_))
    }

    #[test]
    fn what_is_beaten_or_tied_everywhere_is_never_asked() {
        let (a, b) = (serves("a", &["T"], |_| ()), serves("b", &["U"], |_| ()));
        let is_default = |definition: &mut SeriesDefinition| definition.serves.default = true;
        assert!(meet(&a, &b, &[]));
        assert!(!meet(&a, &b, &[&serves("c", &["T"], |_| ())]), "no request can choose");
        assert!(meet(&a, &b, &[&serves("c", &["T"], is_default)]), "a default yields");
        assert!(!meet(&serves("a", &["T"], is_default), &b, &[&serves("c", &["T"], |_| ())]));
        assert!(meet(&a, &b, &[&serves("c", &["T"], |c| c.serves.projects = vec!["P".into()])]));
        assert!(meet(&serves("a", &["T", "V"], |_| ()), &b, &[&serves("c", &["T"], |_| ())]));
    }

    #[test]
    fn types_of_one_scope_meet_where_they_may_be_one_row() {
        // Only one of them is for all projects: they do not tie everywhere.
        let in_project = |definition: &mut SeriesDefinition| {
            in_type(definition);
            definition.serves.projects = vec!["P".into()];
        };
        for (x, y, expected) in [
            ("A", "B", false),
            ("B", "C", true),
            // A code that no row has may become that of any.
            ("A", "D", true),
            ("D", "E", true),
        ] {
            let (narrow, wide) = (tabled("a", &[x], in_project), tabled("b", &[y], in_type));
            assert_eq!(meet(&narrow, &wide, &[]), expected, "{x} {y}");
            // One row has both names: either is taken by whoever takes it.
            assert!(!meet(&tabled("a", &[x], in_type), &wide, &[]), "{x} {y}");
        }
        let plain = |code, name| serves(code, &[name], in_type);
        assert!(!meet(&plain("a", "D"), &plain("b", "E"), &[]));
    }

    #[test]
    fn a_name_that_a_row_gets_later_wins_over_no_request_before() {
        let of = |code: &str, name: &str, projects: bool, originators: bool| {
            tabled(code, &[name], |definition| {
                in_type(definition);
                let variable = VariableDefinition::default();
                definition.variables.insert("ORIGINATOR".into(), variable);
                definition.serves.projects.extend(projects.then(|| "P".into()));
                definition.serves.originators.extend(originators.then(|| "O".into()));
            })
        };
        // `c` wins over `a` for whatever row has the code E, and `b` wins over `c`.
        let c = of("c", "E", false, true);
        let b = of("b", "E", true, true);
        let a = |name| {
            let mut definition = of("a", name, false, false).definition().clone();
            definition.serves.originators = vec!["O".into()];
            definition.serves.default = true;
            Series::compile(definition).expect("compiles").with_reference(b.reference.clone())
        };
        assert!(meet(&a("D"), &b, &[&c]), "the row of D has no other code at first");
        assert!(!meet(&of("a", "E", false, true), &b, &[&c]));
    }

    #[test]
    fn another_series_takes_the_type_of_a_code_that_no_row_has_yet() {
        let (a, b) = (tabled("a", &["D"], |_| ()), tabled("b", &["A"], |_| ()));
        assert!(meet(&a, &b, &[]));
        assert!(!meet(&a, &b, &[&tabled("c", &["D"], |_| ())]));
        assert!(meet(&a, &b, &[&tabled("c", &["E"], |_| ())]));
        assert!(meet(&a, &b, &[&tabled("c", &["B"], |_| ())]), "it may be another row");
    }

    #[test]
    fn one_default_of_any_type_takes_what_another_takes_beyond_its_list() {
        let any = |code, types: &[&str], table: &str| {
            tabled(code, types, |definition| {
                definition.serves.default = true;
                definition.references.type_code = Some(table.into());
            })
        };
        let (a, b) = (any("a", &["A"], "types"), serves("b", &["T"], |_| ()));
        assert!(meet(&a, &b, &[&any("c", &["B"], "types")]), "a lists A alone");
        assert!(!meet(&a, &b, &[&any("c", &["A"], "types")]), "both list A");
        assert!(meet(&a, &b, &[&any("c", &["A"], "kinds")]), "of another table");
    }

    #[test]
    fn a_default_of_any_type_may_not_take_a_type_that_another_lists() {
        let within = |definition: &mut SeriesDefinition| {
            definition.unique_within = vec!["project".into()];
            definition.serves.default = true;
        };
        let a = tabled("a", &["A"], within);
        let b = serves("b", &["T"], |definition| {
            within(definition);
            definition.serves.projects = vec!["P".into()];
        });
        let c = tabled("c", &["B"], |definition| {
            within(definition);
            definition.serves.projects = vec!["P".into()];
        });
        // Somebody may list A as undetermined, which a does not mind and c does.
        assert!(meet(&a, &b, &[&c]));
    }

    #[test]
    fn an_originator_of_one_scope_is_one_for_both() {
        let of = |code: &str, originators: &[&str], default: Option<&str>| {
            serves(code, &["T"], |definition| {
                definition.unique_within = vec!["ORIGINATOR".into()];
                let listed = originators.iter().map(ToString::to_string);
                definition.serves.originators = listed.collect();
                let default = default.map(str::to_owned);
                let declared = VariableDefinition { default, ..VariableDefinition::default() };
                definition.variables.insert("ORIGINATOR".into(), declared);
            })
        };
        let (a, any) = (of("a", &["O"], None), of("b", &[], None));
        assert!(are_apart(&a, &of("b", &["P"], None)));
        assert!(!meet(&a, &any, &[]), "what is of O is for the one that names it");
        assert!(meet(&a, &of("b", &[], Some("O")), &[]), "nobody named it");
        assert!(meet(&of("a", &["0"], None), &any, &[]), "what is not sent is 0");
        let named_both = of("b", &["O", "P"], None);
        assert!(!are_apart(&a, &named_both) && !meet(&a, &named_both, &[]), "a tie");
    }

    #[test]
    fn a_code_that_is_sent_is_taken_by_whoever_names_its_row() {
        let (a, b) = (serves("a", &["B"], |_| ()), serves("b", &["T"], |_| ()));
        assert!(!meet(&a, &b, &[&tabled("c", &["C"], |_| ())]));
        assert!(meet(&a, &b, &[&tabled("c", &["A"], |_| ())]));
    }

    #[test]
    fn what_the_sub_type_may_be_says_nothing_of_types_and_projects() {
        let of = |code: &str| {
            serves(code, &["T"], |definition| {
                definition.serves.projects = vec!["P".into()];
                let digits = Some("0-9".into());
                let declared = VariableDefinition { alphabet: digits, ..Default::default() };
                definition.variables.insert("SUB_TYPE".into(), declared);
            })
        };
        let b = serves("b", &["U"], |_| ());
        assert!(!are_apart(&of("a"), &b) && meet(&of("a"), &b, &[]));
    }

    #[test]
    fn an_originator_that_the_variable_refuses_is_never_asked() {
        let of = |code: &str, types: &[&str], originator: &str, table: Option<&str>| {
            serves(code, types, |definition| {
                definition.serves.originators = vec![originator.into()];
                let declared = VariableDefinition {
                    alphabet: Some("a-z".into()),
                    reference: table.map(str::to_owned),
                    ..VariableDefinition::default()
                };
                definition.variables.insert("ORIGINATOR".into(), declared);
            })
        };
        let b = serves("b", &["U"], |_| ());
        assert!(meet(&of("a", &["T"], "abc", None), &b, &[]));
        assert!(!meet(&of("a", &["T"], "123", None), &b, &[]));
        // Its row may come to have another code.
        assert!(meet(&of("a", &["T"], "123", Some("organizations")), &b, &[]));
    }
}
