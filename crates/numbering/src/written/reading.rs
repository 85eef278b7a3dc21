//! How a written value is taken apart: as `serde_json` would take it, with the way to what does not
//! fit.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use super::super::error::excerpt;
use super::{Flaw, LIST, Misfit, Step, TABLE};

/// What a JSON library asks for, in its words.
const RAW: &str = "$serde_json::private::RawValue";

/// A choice of words.
fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match &words[..] {
        [only] => only.clone(),
        _ => format!("one of {}", words.join(", ")),
    }
}

/// A value in words.
fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{:?}", excerpt(text)),
        Value::Array(_) => LIST.into(),
        Value::Object(_) => TABLE.into(),
    }
}

impl std::error::Error for Misfit {}

impl Error for Misfit {
    fn custom<T: fmt::Display>(said: T) -> Self {
        Misfit::of(Flaw::Said(said.to_string()))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match unexpected {
            Unexpected::Str(text) => format!("{:?}", excerpt(text)),
            Unexpected::Bool(is) => is.to_string(),
            Unexpected::Unsigned(number) => number.to_string(),
            Unexpected::Signed(number) => number.to_string(),
            Unexpected::Float(number) => number.to_string(),
            Unexpected::Seq => LIST.into(),
            Unexpected::Map => TABLE.into(),
            _ => "null".into(),
        };
        let wanted = match expected.to_string() {
            list if list == "a sequence" => LIST.into(),
            map if map == "a map" || map.starts_with("struct ") => TABLE.into(),
            other => other,
        };
        Misfit::of(Flaw::Kind { found, wanted })
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let found = format!("{:?}", excerpt(variant));
        Misfit::of(Flaw::Kind { found, wanted: one_of(expected) })
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Misfit::of(Flaw::Unknown { field: field.into(), known })
    }

    fn missing_field(field: &'static str) -> Self {
        Misfit::of(Flaw::Missing { of: "", field })
    }
}

/// A value to read.
pub(super) struct At<'a>(pub(super) &'a Value);

impl<'de> Deserializer<'de> for At<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(is) => visitor.visit_bool(*is),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items { items, next: 0 }),
            Value::Object(map) => visitor.visit_map(Entries::of(map, None)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        if name == RAW {
            return self.0.deserialize_newtype_struct(name, visitor).map_err(Misfit::custom);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let Value::Object(map) = self.0 else {
            return Err(Misfit::of(Flaw::Kind { found: found(self.0), wanted: TABLE.into() }));
        };
        visitor.visit_map(Entries::of(map, Some(name))).map_err(|misfit| match misfit.flaw {
            Flaw::Missing { of: "", field } => {
                Misfit { flaw: Flaw::Missing { of: name, field }, ..misfit }
            }
            _ => misfit,
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::String(word) => {
                let word: StrDeserializer<'_, Misfit> = word.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            other => Err(Misfit::of(Flaw::Kind { found: found(other), wanted: one_of(words) })),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The items of a list.
struct Items<'a> {
    items: &'a [Value],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Misfit;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Misfit> {
        let index = self.next;
        let Some(item) = self.items.get(index) else { return Ok(None) };
        self.next += 1;
        seed.deserialize(At(item)).map(Some).map_err(|misfit| misfit.below(Step::Item(index)))
    }
}

/// The entries of an object, or the fields of a struct of this name.
struct Entries<'a> {
    entries: serde_json::map::Iter<'a>,
    of: Option<&'static str>,
    next: Option<(&'a str, &'a Value)>,
}

impl<'a> Entries<'a> {
    fn of(map: &'a Map<String, Value>, of: Option<&'static str>) -> Self {
        Entries { entries: map.iter(), of, next: None }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Misfit;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Misfit> {
        self.next = self.entries.next().map(|(name, value)| (name.as_str(), value));
        let Some((name, _)) = self.next else { return Ok(None) };
        let name: StrDeserializer<'_, Misfit> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Misfit> {
        let (name, value) = self.next.take().expect("a value comes behind its name");
        seed.deserialize(At(value)).map_err(|misfit| {
            misfit.below(match self.of {
                Some(of) => Step::Field(of, name.to_owned()),
                None => Step::Key(name.to_owned()),
            })
        })
    }
}
