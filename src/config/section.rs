//! The declaration of a section of the settings: each setting once, with its default, its bounds
//! and its meaning. The content of a file, the checks, the examples of refusals and
//! `docs/settings.md` follow from it.
//!
//! Knows no setting.

use std::fmt::Display;
use std::ops::RangeInclusive;

use numbering::Form;

use super::bounds::{Checked, within};

/// The result of the declaration of a section.
pub(super) trait Section {
    /// Holds each setting to its own bounds. `section` is the section's name, such as `http`.
    fn check(&self, section: &str) -> Checked<()>;

    /// The forms of settings whose default does not show it.
    fn forms() -> Vec<Form>;

    /// Each setting, in the order of its declaration.
    #[cfg(test)]
    fn declared() -> Vec<super::page::Declared>;
}

/// Bounds of a setting: a range that its values are checked against, or words for the page only
/// where other code checks them.
pub(super) trait Bounds<T> {
    /// Accepts a value within the bounds.
    fn hold(&self, section: &str, field: &str, value: &T) -> Checked<()>;

    /// The bounds as the page shows them.
    #[cfg(test)]
    fn shown(&self) -> String;
}

impl<T: PartialOrd + Display> Bounds<T> for RangeInclusive<T> {
    fn hold(&self, section: &str, field: &str, value: &T) -> Checked<()> {
        within(|| format!("{section}.{field}"), value, self)
    }

    #[cfg(test)]
    fn shown(&self) -> String {
        format!("{} to {}", self.start(), self.end())
    }
}

impl<T: PartialOrd + Display> Bounds<Option<T>> for RangeInclusive<T> {
    fn hold(&self, section: &str, field: &str, value: &Option<T>) -> Checked<()> {
        value.as_ref().map_or(Ok(()), |value| Bounds::<T>::hold(self, section, field, value))
    }

    #[cfg(test)]
    fn shown(&self) -> String {
        Bounds::<T>::shown(self)
    }
}

impl<T> Bounds<T> for &'static str {
    fn hold(&self, _: &str, _: &str, _: &T) -> Checked<()> {
        Ok(())
    }

    #[cfg(test)]
    fn shown(&self) -> String {
        (*self).to_owned()
    }
}

/// Declares one section: a struct whose fields are the section's settings.
///
/// A setting is `name: Type = default, bounds;`. Its doc comment is its meaning on the page. Two
/// clauses may follow the bounds: `absent "…"`, what a missing value leads to, and
/// `like "what it is" "an example"`, where the default shows no value.
macro_rules! section {
    ($(#[doc = $about:literal])* $name:ident {
        $(
            $(#[doc = $meaning:literal])+
            $(#[serde($($serde:tt)*)])?
            $field:ident: $kind:ty = $default:expr, $bounds:expr
                $(, absent $absent:literal)? $(, like $is:literal $example:literal)?;
        )*
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Deserialize, Serialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[doc = $meaning])+ $(#[serde($($serde)*)])? pub(crate) $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }

        impl $crate::config::section::Section for $name {
            fn check(&self, section: &str) -> $crate::config::bounds::Checked<()> {
                use $crate::config::section::Bounds;
                $(Bounds::<$kind>::hold(&$bounds, section, stringify!($field), &self.$field)?;)*
                Ok(())
            }

            fn forms() -> Vec<numbering::Form> {
                vec![$($((concat!(stringify!($name), ".", stringify!($field)), $is, $example),)?)*]
            }

            #[cfg(test)]
            fn declared() -> Vec<$crate::config::page::Declared> {
                use $crate::config::page::{Declared, Kind};
                use $crate::config::section::Bounds;
                vec![$(Declared {
                    name: stringify!($field),
                    kind: <$kind as Kind>::KIND,
                    meaning: [$($meaning.trim()),+].join(" "),
                    bounds: Bounds::<$kind>::shown(&$bounds),
                    absent: concat!("" $(, $absent)?),
                    example: concat!("" $(, $example)?),
                },)*]
            }
        }
    };
}
