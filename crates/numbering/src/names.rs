//! Names that are looked up among thousands, and listed if a name is not among them. Sorted once,
//! so that neither a request that names one nor a refusal goes through all of them.

use std::ops::Deref;

use super::error::excerpt;

/// How many names a refusal lists.
pub(super) const LISTED_MAX: usize = 12;

/// Names as they were written.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    written: Vec<String>,
    /// The index of each different one, in their order.
    in_order: Vec<u32>,
}

impl From<Vec<String>> for Names {
    fn from(written: Vec<String>) -> Self {
        let count = u32::try_from(written.len()).expect("a list of names fits in memory");
        let mut in_order: Vec<u32> = (0..count).collect();
        let name = |index: &u32| &written[*index as usize];
        // Of equal ones the first stays.
        in_order.sort_by(|one, other| name(one).cmp(name(other)));
        in_order.dedup_by(|one, other| name(one) == name(other));
        Names { written, in_order }
    }
}

impl Deref for Names {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.written
    }
}

impl Names {
    fn name(&self, index: u32) -> &str {
        &self.written[index as usize]
    }

    /// Whether a name is one of them.
    pub(super) fn has(&self, name: &str) -> bool {
        self.in_order.binary_search_by(|index| self.name(*index).cmp(name)).is_ok()
    }

    /// The first one in their order that comes after another name, or of all.
    fn after(&self, name: Option<&str>) -> Option<&str> {
        let next = self.in_order.partition_point(|index| Some(self.name(*index)) <= name);
        self.in_order.get(next).map(|index| self.name(*index))
    }
}

/// The first few names of some lists, in their order and each once. If there are more, their number
/// is given, unless that would have to be counted.
pub(super) fn listed(kind: &str, lists: &[&Names]) -> String {
    let (mut shown, mut last) = (Vec::new(), None);
    let after = |last| lists.iter().filter_map(|names| names.after(last)).min();
    while shown.len() < LISTED_MAX
        && let Some(next) = after(last)
    {
        shown.push(excerpt(next));
        last = Some(next);
    }
    let shown = format!("{kind} {}", shown.join(", "));
    match lists {
        _ if after(last).is_none() => shown,
        [names] => format!("{shown}, … ({} in all)", names.in_order.len()),
        _ => format!("{shown}, …"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(written: &[&str]) -> Names {
        Names::from(written.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_are_found_and_stay_as_they_were_written() {
        let known = names(&["b", "a", "b", "é"]);
        assert!(["a", "b", "é"].iter().all(|name| known.has(name)));
        assert!(!known.has("c") && !known.has("") && !names(&[]).has("a"));
        assert_eq!(known.first().map(String::as_str), Some("b"));
    }

    #[test]
    fn a_refusal_lists_the_first_few_of_all_lists_each_once() {
        let (one, two) = (names(&["b", "a", "b"]), names(&["c", "a"]));
        assert_eq!(listed("type", &[&one, &two]), "type a, b, c");
        let many: Vec<String> = (10..50).map(|number| format!("T{number}")).collect();
        let many = Names::from(many);
        let told = listed("type", &[&many]);
        assert!(told.starts_with("type T10, T11, ") && told.ends_with("T21, … (40 in all)"));
        assert!(listed("type", &[&many, &one]).ends_with("T21, …"));
        let exactly: Vec<String> = (10..22).map(|number| number.to_string()).collect();
        assert!(listed("type", &[&Names::from(exactly)]).ends_with("20, 21"));
    }
}
