//! Files that name each other in a circle: to read one of them is to read them all. A declaration
//! (`mod child`) names no file; what a file gives on by `pub use` counts as named in the file that
//! defines it.

use std::collections::{BTreeMap, BTreeSet};

use crate::rooms::{add_paths, is_test, named_modules};
use crate::source::{Source, code};

/// The most files of a circle.
const CIRCLE_FILES_MAX: usize = 3;

/// Names of a path that are looked at: folders, a file, an item.
const DEPTH_MAX: usize = 7;

/// A part of a crate: the folder of its sources, and the folder inside in which circles are small.
type Area = (&'static str, &'static str);

/// Parts without large circles.
pub(crate) const AREAS: [Area; 3] =
    [("src/", "web"), ("src/", "engine"), ("crates/ledger/src/", "")];

/// Modules by their paths, each with its code.
type Modules<'c> = BTreeMap<Vec<&'c str>, &'c str>;

/// Circles of too many files in a part of the tree.
pub(crate) fn large_circles(sources: &[Source], (root, folder): Area) -> Vec<String> {
    let is_inside = |path: &str| {
        let inner = path.strip_prefix(root).filter(|_| !is_test(path));
        inner.is_some_and(|inner| inner.starts_with(folder))
    };
    let inside = sources.iter().filter(|source| is_inside(&source.path));
    let codes: Vec<(&str, String)> =
        inside.map(|source| (&*source.path, code_without_tests(&source.text))).collect();
    let mut modules = Modules::new();
    for (path, code) in &codes {
        let inner = path.strip_prefix(root).and_then(|inner| inner.strip_suffix(".rs"));
        let Some(inner) = inner else { continue };
        let mut names: Vec<&str> = inner.split('/').collect();
        names.pop_if(|last| ["mod", "lib"].contains(last));
        if folder.is_empty() || names.first() == Some(&folder) {
            modules.insert(names, code);
        }
    }
    let named: BTreeMap<_, _> = modules
        .iter()
        .map(|(module, code)| (module, named_files(&modules, module, code)))
        .collect();
    let circles = circles(&named).into_iter().filter(|circle| circle.len() > CIRCLE_FILES_MAX);
    let names = |circle: Vec<&Vec<&str>>| {
        let mut files: Vec<_> = circle.into_iter().map(|module| module.join("/")).collect();
        files.sort_unstable();
        format!("{root}{folder}: {} files name each other: {}", files.len(), files.join(", "))
    };
    circles.map(names).collect()
}

fn code_without_tests(text: &str) -> String {
    let mut code = code(text);
    code.truncate(code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len()));
    code
}

/// The files of the part that a file names, itself aside.
fn named_files<'m, 'c>(
    modules: &'m Modules<'c>,
    module: &[&'c str],
    code: &'c str,
) -> BTreeSet<&'m Vec<&'c str>> {
    let named = named_modules(code, module, DEPTH_MAX).into_iter();
    let files = named.filter_map(|(_, path)| defining(modules, path));
    files.filter(|file| *file != module).collect()
}

/// The file that defines what a path names.
fn defining<'m, 'c>(modules: &'m Modules<'c>, mut path: Vec<&'c str>) -> Option<&'m Vec<&'c str>> {
    // Each step leads to another file; a circle of `pub use` does not compile.
    for _ in 0..DEPTH_MAX {
        let known = (1..=path.len()).rev().map(|end| modules.get_key_value(&path[..end]));
        let (file, code) = known.flatten().next()?;
        let Some(item) = path.get(file.len()) else { return Some(file) };
        let given = given_on(file, code).into_iter().find(|given| given.last() == Some(item));
        let Some(mut given) = given else { return Some(file) };
        given.extend_from_slice(&path[file.len() + 1..]);
        path = given;
    }
    None
}

/// What a file gives on by `pub use`.
fn given_on<'c>(module: &[&'c str], code: &'c str) -> Vec<Vec<&'c str>> {
    let mut given = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let begins = code[..at].rfind(['\n', ';']).map_or(0, |before| before + 1);
        let visibility = code[begins..at].trim();
        if visibility != "pub" && !visibility.starts_with("pub(") {
            continue;
        }
        let tree = &code[at + "use ".len()..];
        let (tree, head) = match tree.strip_prefix("crate::") {
            Some(tree) => (tree, &[][..]),
            None => (tree.strip_prefix("self::").unwrap_or(tree), module),
        };
        add_paths(tree, head, DEPTH_MAX, &mut given);
    }
    given
}

/// The strongly connected parts of a graph (Tarjan), of two nodes or more.
fn circles<N: Copy + Ord>(graph: &BTreeMap<N, BTreeSet<N>>) -> Vec<Vec<N>> {
    let mut search =
        Search { graph, found_at: BTreeMap::new(), open: Vec::new(), parts: Vec::new() };
    for node in graph.keys() {
        if !search.found_at.contains_key(node) {
            search.visit(*node);
        }
    }
    search.parts.retain(|part| part.len() > 1);
    search.parts
}

/// A search in depth.
struct Search<'g, N> {
    graph: &'g BTreeMap<N, BTreeSet<N>>,
    /// In which order nodes were found.
    found_at: BTreeMap<N, usize>,
    /// Nodes that are in no part yet, in that order.
    open: Vec<N>,
    parts: Vec<Vec<N>>,
}

impl<N: Copy + Ord> Search<'_, N> {
    /// The first open node that a node leads to.
    fn visit(&mut self, node: N) -> usize {
        let (found_at, place) = (self.found_at.len(), self.open.len());
        self.found_at.insert(node, found_at);
        self.open.push(node);
        let mut first = found_at;
        for next in &self.graph[&node] {
            match self.found_at.get(next) {
                None => first = first.min(self.visit(*next)),
                Some(at) if self.open.contains(next) => first = first.min(*at),
                Some(_) => {}
            }
        }
        if first == found_at {
            self.parts.push(self.open.split_off(place));
        }
        first
    }
}

#[test]
fn a_circle_of_four_files_is_found_and_one_of_three_is_not() {
    let count = |texts: &[(&str, &str)]| {
        let sample = |(path, text): &(&str, &str)| Source::sample(&format!("src/web/{path}"), text);
        large_circles(&texts.iter().map(sample).collect::<Vec<_>>(), ("src/", "web")).len()
    };
    let three = [
        ("a.rs", "use super::b::{self, B};\nuse crate::auth::a;"),
        ("b.rs", "use crate::web::{c::C, d};"),
        ("c.rs", "use super::a::A; // super::d"),
        ("d.rs", "#[cfg(test)]\nmod tests {\n    use super::super::b;\n}"),
    ];
    assert_eq!(count(&three), 0);
    let mut four = three;
    four[2].1 = "fn f() { super::d::f() }";
    four[3].1 = "use crate::web::A;";
    assert_eq!(count(&four), 0);
    let given = |text| [&four[..], &[("mod.rs", text)]].concat();
    assert_eq!(count(&given("mod a;\npub(crate) use a::{A, Other};")), 1);
    assert_eq!(count(&given("mod a;\nuse a::A;")), 0);
}
