//! The claims of a JWT as its issuer wrote them: each name once, at every depth.
//!
//! Of two claims of one name each reader picks the one that it prefers (RFC 7519, 4). A user who
//! may write one of them could become another identity here than the issuer meant.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::claims::Claims;

/// Claims, and whether any name occurs twice.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) claims: Claims,
    pub(super) is_repeated: bool,
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Tree { value, is_repeated } = Tree::deserialize(deserializer)?;
        match value {
            Value::Object(claims) => Ok(Written { claims, is_repeated }),
            _ => Err(Error::custom("claims are an object")),
        }
    }
}

/// A value, and whether a name occurs twice in any object of it.
struct Tree {
    value: Value,
    is_repeated: bool,
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

fn leaf<E>(value: impl Into<Value>) -> Result<Tree, E> {
    Ok(Tree { value: value.into(), is_repeated: false })
}

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        leaf(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        leaf(value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        leaf(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        leaf(value)
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        leaf(value)
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        leaf(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let (mut values, mut is_repeated) = (Vec::new(), false);
        while let Some(next) = list.next_element::<Tree>()? {
            is_repeated |= next.is_repeated;
            values.push(next.value);
        }
        Ok(Tree { value: Value::Array(values), is_repeated })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Tree, A::Error> {
        let (mut values, mut is_repeated) = (Map::new(), false);
        while let Some((name, next)) = object.next_entry::<String, Tree>()? {
            is_repeated |= next.is_repeated;
            is_repeated |= values.insert(name, next.value).is_some();
        }
        Ok(Tree { value: Value::Object(values), is_repeated })
    }
}
