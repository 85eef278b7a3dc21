//! Who did something, as one text: an identity, or a person through one that speaks for people,
//! written `service/person`. No name of an identity holds a `/`; what comes from elsewhere, an
//! import say, may, and is read the same way.

/// Stands between a service and the person.
const BETWEEN: char = '/';

/// A person through a service.
#[must_use]
pub fn through(service: &str, person: &str) -> String {
    format!("{service}{BETWEEN}{person}")
}

/// The person of an actor; of one that asked for itself its own name.
#[must_use]
pub fn person_of(actor: &str) -> &str {
    actor.split_once(BETWEEN).map_or(actor, |(_, person)| person)
}

/// The identity of an actor.
#[must_use]
pub fn identity_of(actor: &str) -> &str {
    actor.split_once(BETWEEN).map_or(actor, |(identity, _)| identity)
}

/// The service that a person asked through; none of one that asked for itself.
#[must_use]
pub fn service_of(actor: &str) -> Option<&str> {
    actor.split_once(BETWEEN).map(|(service, _)| service)
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
}
