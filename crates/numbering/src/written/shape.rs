//! All fields of what is read: each type is asked what it asks for. So a new field is examined by
//! the tests that walk through all fields, and fails them until its form is defined.

use std::cell::RefCell;
use std::iter::once;

use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Value, json};

use super::{Form, Misfit, Notation, form_of, read_written};

/// Deeper than anything that people write.
const DEPTH_MAX: usize = 12;

/// Words of Rust and of its libraries, which are unknown to people who write settings.
const OF_PROGRAMS: [&str; 14] = [
    "invalid type",
    "invalid value",
    "invalid digit",
    "expected",
    "struct ",
    "missing field",
    "variant",
    "u8",
    "u16",
    "u32",
    "u64",
    "usize",
    "i64",
    "sequence",
];

/// A step to a field.
#[derive(Clone, Copy, Debug)]
enum Way {
    Field(&'static str, &'static str),
    Key,
    Item,
}

/// What a type asks for at some place.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Struct(&'static str, &'static [&'static str]),
    List,
    Map,
    Value,
}

/// Leads a type to a place, and records what it asks for there.
struct Probe<'p> {
    way: &'p [Way],
    asked: &'p RefCell<Asked>,
}

impl<'p> Probe<'p> {
    fn note(&self, asked: Asked) -> Error {
        *self.asked.borrow_mut() = asked;
        Error::custom("asked")
    }

    fn next(&self) -> Option<(Way, Probe<'p>)> {
        let (first, way) = self.way.split_first()?;
        Some((*first, Probe { way, asked: self.asked }))
    }
}

impl IntoDeserializer<'_> for Probe<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(self.note(Asked::Value))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.next() {
            Some((Way::Field(_, field), probe)) => {
                visitor.visit_map(MapDeserializer::new(once((field, probe))))
            }
            _ => Err(self.note(Asked::Struct(name, fields))),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.next() {
            Some((_, probe)) => visitor.visit_map(MapDeserializer::new(once(("x", probe)))),
            None => Err(self.note(Asked::Map)),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.next() {
            Some((_, probe)) => visitor.visit_seq(SeqDeserializer::new(once(probe))),
            None => Err(self.note(Asked::List)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct tuple tuple_struct enum identifier ignored_any
    }
}

/// The ways to all fields.
fn fields_of<T: DeserializeOwned>() -> Vec<Vec<Way>> {
    let (mut found, mut open) = (Vec::new(), vec![Vec::new()]);
    while let Some(way) = open.pop() {
        assert!(way.len() < DEPTH_MAX, "{way:?} has no end");
        let asked = RefCell::new(Asked::Value);
        assert!(T::deserialize(Probe { way: &way, asked: &asked }).is_err(), "{way:?}");
        let longer = |step| way.iter().copied().chain([step]).collect::<Vec<_>>();
        match asked.into_inner() {
            Asked::Struct(of, names) => {
                let ways = names.iter().map(|name| longer(Way::Field(of, name)));
                let ways: Vec<_> = ways.collect();
                found.extend(ways.iter().cloned());
                open.extend(ways);
            }
            Asked::List => open.push(longer(Way::Item)),
            Asked::Map => open.push(longer(Way::Key)),
            Asked::Value => {}
        }
    }
    found
}

/// The names on the way, with dots between them; `x` for a name that people choose.
fn path_of(way: &[Way]) -> String {
    let names = way.iter().filter_map(|step| match step {
        Way::Field(_, name) => Some(*name),
        Way::Key => Some("x"),
        Way::Item => None,
    });
    names.collect::<Vec<_>>().join(".")
}

/// A whole that has this at the end of the way, and nothing else.
fn whole(way: &[Way], end: Value) -> Value {
    way.iter().rev().fold(end, |inner, step| match step {
        Way::Field(_, name) => json!({ *name: inner }),
        Way::Key => json!({ "x": inner }),
        Way::Item => json!([inner]),
    })
}

/// The error for a value at the end of the way, without what is missing next to it.
fn misfit<T: DeserializeOwned>(way: &[Way], value: &Value) -> Option<Misfit> {
    let read = read_written::<T>(&whole(way, value.clone()));
    read.err().filter(|misfit| !misfit.is_missing())
}

/// Panics unless each field has a form, whose example is read, and a value of another kind is
/// reported by its field and in no words of programs. Returns how many fields there are.
#[track_caller]
pub(crate) fn every_field_is_told<T: DeserializeOwned>(
    example_of: impl Fn(&str, &str, &str) -> Option<String>,
    say: impl Fn(&Misfit) -> String,
) -> usize {
    let fields = fields_of::<T>();
    for way in &fields {
        let Some(Way::Field(of, name)) = way.last().copied() else { continue };
        let example = example_of(of, name, &path_of(way));
        let example = example.unwrap_or_else(|| panic!("{of}.{name} has no form"));
        // A section is shown by its head.
        if !example.starts_with("[[") && !example.ends_with("below it") {
            let example: toml::Table = format!("it = {example}").parse().expect(name);
            let example = super::json_of_toml(toml::Value::Table(example))["it"].take();
            let refused = misfit::<T>(way, &example);
            assert!(refused.is_none(), "{of}.{name} = {example}: {refused:?}");
        }
        let wrong =
            [json!("?"), json!(-1), json!(1.5), json!(true), json!([{}]), json!({ "?": [] })];
        let told: Vec<String> = wrong
            .iter()
            .filter_map(|wrong| misfit::<T>(way, wrong))
            .map(|misfit| say(&misfit))
            .collect();
        for told in &told {
            assert!(told.contains(name), "{of}.{name}: {told}");
            for word in OF_PROGRAMS {
                assert!(!told.contains(word), "{of}.{name}: {word} of programs in: {told}");
            }
        }
        // A field that may be anything is what it is.
        assert!(!told.is_empty() || name == "result", "{of}.{name} is whatever is written");
    }
    fields.len()
}

/// The same if forms say all.
#[track_caller]
pub(crate) fn every_field_has_its_form<T: DeserializeOwned>(
    forms: &[Form],
    notation: Notation,
) -> usize {
    every_field_is_told::<T>(
        |of, name, _| form_of(forms, of, name).map(|(.., example)| example.to_owned()),
        |misfit| misfit.say(forms, notation),
    )
}

/// Panics unless each field of a query that is not text has a message for a text that is not one.
#[track_caller]
#[allow(dead_code, reason = "only one of the crates that look at fields reads queries")]
pub(crate) fn every_query_is_told<T: DeserializeOwned>(forms: &[Form]) -> usize {
    let fields = fields_of::<T>();
    for way in &fields {
        let Some(misfit) = misfit::<T>(way, &json!("?")) else { continue };
        let (name, told) = (misfit.path(), misfit.say(forms, Notation::Query));
        assert!(told.contains(&name) && told.contains("must be"), "{told}");
        let of_programs = OF_PROGRAMS.into_iter().find(|word| told.contains(word));
        assert_eq!(of_programs, None, "{told}");
    }
    fields.len()
}
