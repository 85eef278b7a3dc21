//! Actors: who did something, as one text. An actor is an identity, or `service/person`: a person
//! through an identity that speaks for people. No name of an identity holds a `/`; a text from
//! elsewhere (an import) may, and is read in the same way.

use icu_properties::props::{BinaryProperty as _, DefaultIgnorableCodePoint};
use unicode_normalization::UnicodeNormalization as _;

/// Separates the service from the person.
const BETWEEN: char = '/';

/// Prefix of the names of identities that come from a JWT; no token's name holds a colon.
pub const JWT_NAME_PREFIX: &str = "jwt:";

/// A person through a service.
#[must_use]
pub fn through(service: &str, person: &str) -> String {
    format!("{service}{BETWEEN}{person}")
}

/// The person of an actor; for an actor that asked for itself, its own name.
#[must_use]
pub fn person_of(actor: &str) -> &str {
    actor.split_once(BETWEEN).map_or(actor, |(_, person)| person)
}

/// The identity of an actor.
#[must_use]
pub fn identity_of(actor: &str) -> &str {
    actor.split_once(BETWEEN).map_or(actor, |(identity, _)| identity)
}

/// The service that a person asked through; `None` for an actor that asked for itself.
#[must_use]
pub fn service_of(actor: &str) -> Option<&str> {
    actor.split_once(BETWEEN).map(|(service, _)| service)
}

/// The names of an actor in the form compared where two people must answer for one thing: identity
/// and person, each [`folded`], without issuer and services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedActor {
    /// Of the identity.
    pub identity: String,
    /// Of the person; for an actor that asked for itself, the identity's.
    pub person: String,
}

impl FoldedActor {
    /// The names of an actor.
    #[must_use]
    pub fn of(actor: &str) -> Self {
        FoldedActor { identity: bare(identity_of(actor)), person: bare(person_of(actor)) }
    }

    /// Whether the two share a name: one identity may speak for many people, and one person may ask
    /// through many identities, or own one that speaks for others.
    #[must_use]
    pub fn is_of_one_with(&self, other: &FoldedActor) -> bool {
        let has = |name: &String| *name == other.identity || *name == other.person;
        has(&self.identity) || has(&self.person)
    }
}

/// A folded name without its origin: an issuer's prefix, the services before it.
fn bare(name: &str) -> String {
    let folded = folded(name);
    let mut parts = folded.rsplit(BETWEEN).map(str::trim);
    let mut last = parts.find(|part| !part.is_empty()).unwrap_or_default();
    while let Some(rest) = last.strip_prefix(JWT_NAME_PREFIX) {
        last = rest.trim_start();
    }
    last.to_owned()
}

/// A name without the differences that two spellings of it may have: compatibility forms (NFKC),
/// case, invisible characters, and the width of blanks. Letters of two scripts that look alike
/// remain different.
#[must_use]
pub fn folded(name: &str) -> String {
    // Upper case first, then lower case: `ß` becomes `ss`, `ς` becomes `σ`.
    let case = |it: char| it.to_uppercase().flat_map(char::to_lowercase);
    let text: String = name.nfkc().filter(|it| is_seen(*it)).flat_map(case).nfkc().collect();
    // The Turkish capital `İ` leaves its dot.
    let text = text.replace("i\u{307}", "i");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a character is visible: not a default-ignorable one, a control, an annotation mark or
/// the empty Braille pattern.
fn is_seen(character: char) -> bool {
    let is_other = matches!(character, '\u{fff9}'..='\u{fffb}' | '\u{2800}')
        || (character.is_control() && !character.is_whitespace());
    !is_other && !DefaultIgnorableCodePoint::for_char(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_is_read_as_it_was_written() {
        for person in ["ann", "a/b", "คุณ สมชาย", "ann@example.com"] {
            let actor = through("orders", person);
            assert_eq!((identity_of(&actor), person_of(&actor)), ("orders", person));
            assert_eq!(service_of(&actor), Some("orders"));
        }
        assert_eq!((identity_of("ci"), person_of("ci"), service_of("ci")), ("ci", "ci", None));
    }

    #[test]
    fn every_writing_of_a_name_is_one_name_and_other_names_are_others() {
        for one in [
            "Ann@Example.com",
            "ANN@EXAMPLE.COM",
            "ann@example.com\u{200b}",
            "a\u{ad}n\u{2060}n@example.com",
            "\u{202e}ann@example.com",
            "ann@example.com\u{e0041}",
            "\u{feff} ann@example.com \u{2028}",
            "ａｎｎ＠ｅｘａｍｐｌｅ．ｃｏｍ",
            "𝐚𝐧𝐧@example.com",
            "jwt:ann@example.com",
            "JWT:jwt:Ann@example.com",
            "erp/ann@example.com",
            "erp/jwt:ann@example.com",
            "erp/crm／Ann@example.com/",
        ] {
            assert_eq!(FoldedActor::of(one).person, "ann@example.com", "{one:?}");
        }
        for (one, other) in [
            ("Straße", "STRASSE"),
            ("ΣΟΦΟΣ", "σοφος"),
            ("İnci", "inci"),
            ("Jose\u{301}", "JOS\u{c9}"),
            ("e\u{200d}\u{301}", "\u{e9}"),
            ("Ann  Lee", "ann\u{a0}lee"),
            ("ﬁona", "FIONA"),
        ] {
            assert_eq!(folded(one), folded(other), "{one} {other}");
        }
        let others = [("ann", "anna"), ("สมชาย", "สมหญิง"), ("ann lee", "annlee"), ("\u{e9}", "e")];
        for (one, other) in others {
            assert_ne!(folded(one), folded(other), "{one} {other}");
        }
    }

    #[test]
    fn two_actors_are_of_one_where_any_of_their_names_is_the_same() {
        let is_one = |one: &str, other: &str| {
            let [one, other] = [one, other].map(FoldedActor::of);
            assert_eq!(one.is_of_one_with(&other), other.is_of_one_with(&one));
            one.is_of_one_with(&other)
        };
        for (one, other) in [
            ("anna", "anna"),
            ("erp/anna", "erp/bert"),
            ("erp/anna", "crm/Anna"),
            ("erp/anna", "ANNA"),
            ("erp/anna", "jwt:anna"),
            ("erp/anna", "anna/bert"),
        ] {
            assert!(is_one(one, other), "{one} {other}");
        }
        for (one, other) in [("anna", "bert"), ("erp/anna", "crm/bert"), ("jwt:anna", "erp/bert")] {
            assert!(!is_one(one, other), "{one} {other}");
        }
    }
}
