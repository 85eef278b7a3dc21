//! The principal of a call: the caller itself, or a person whom it names in headers. Read before
//! the body, in one place for every route, so that no handler can omit it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use numbering::{Lines, check_printable};
use numerator_runtime::actor::through;
use percent_encoding::percent_decode;
use unicode_normalization::UnicodeNormalization as _;

use super::problem::{Problem, Slug};
use crate::auth::Identity;
use crate::auth::limits::Counted;
use crate::auth::rate::RequestRate;

/// Names the person: percent-encoded UTF-8.
const ON_BEHALF_OF: HeaderName = HeaderName::from_static("on-behalf-of");
/// The person's address.
const ON_BEHALF_OF_IP: HeaderName = HeaderName::from_static("on-behalf-of-ip");

/// Longest name of a person, in characters.
const PERSON_CHARS_MAX: usize = 128;
/// More bytes than any form of a name has: four per character, and four characters per composed
/// one.
const PERSON_BYTES_MAX: usize = 4 * 4 * PERSON_CHARS_MAX;

/// The caller, as recorded in the journal.
#[derive(Clone, Debug)]
pub(crate) struct Principal {
    /// The identity, or the person through it.
    pub(crate) user_id: Arc<str>,
    /// From where.
    pub(crate) address: Option<Arc<str>>,
}

impl Principal {
    /// Takes the person whom the identity names, if it does; returns only the name. The identity's
    /// own address is not the person's.
    ///
    /// # Errors
    /// An identity that may not call on behalf of people; invalid names or addresses.
    pub(crate) fn name_person(
        &mut self,
        identity: &Identity,
        headers: &HeaderMap,
    ) -> Result<Option<String>, Problem> {
        let (person, address) = (only(headers, &ON_BEHALF_OF)?, only(headers, &ON_BEHALF_OF_IP)?);
        if person.is_none() && address.is_none() {
            return Ok(None);
        }
        if !identity.speaks_for_people {
            let detail = format!(
                "{} may not ask on behalf of people; leave the header On-Behalf-Of out, or send a \
                 token that speaks for people",
                identity.name
            );
            return Err(Problem::new(Slug::NotPermitted, detail));
        }
        let Some(person) = person else {
            let why = "is missing, and On-Behalf-Of-IP is sent: name the person, too";
            return Err(Problem::field("On-Behalf-Of", why));
        };
        let person = read_person(person).ok_or_else(|| {
            let why = format!(
                "must be 1 to {PERSON_CHARS_MAX} characters of percent-encoded UTF-8, all of them \
                 printable"
            );
            Problem::field("On-Behalf-Of", why)
        })?;
        let address = address.map(|sent| {
            let read = sent.to_str().ok().and_then(|text| text.parse::<IpAddr>().ok());
            let why = "must be an address, such as 192.0.2.7 or 2001:db8::1";
            read.ok_or_else(|| Problem::field("On-Behalf-Of-IP", why))
        });
        self.address = address.transpose()?.map(|it| it.to_canonical().to_string().into());
        self.user_id = through(&identity.name, &person).into();
        Ok(Some(person))
    }

    /// The accounts of a request: the person and the address, and the calling service.
    pub(crate) fn counted<'a>(
        &'a self,
        identity: &'a Identity,
        person: Option<&'a str>,
    ) -> Vec<Counted<'a>> {
        let mut counted = Vec::new();
        let user = match (person, identity.request_rate) {
            // Of this service only: no other service or caller of that name is counted for it.
            (Some(_), _) => Some(&*self.user_id),
            (None, RequestRate::Person) => Some(&*identity.name),
            (None, _) => None,
        };
        if let Some(user) = user {
            counted.push(Counted::User(user));
            counted.extend(self.address.as_deref().map(Counted::Address));
        }
        if let RequestRate::PerMinute(quota) = identity.request_rate {
            counted.push(Counted::Service(&identity.name, quota));
        }
        counted
    }
}

/// The one header of that name.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, Problem> {
    let mut sent = headers.get_all(name).iter();
    let first = sent.next();
    if sent.next().is_some() {
        return Err(Problem::field(name.as_str(), "must be sent once"));
    }
    Ok(first)
}

/// The name of a person, in normal form C.
fn read_person(sent: &HeaderValue) -> Option<String> {
    let person = percent_decode(sent.as_bytes()).decode_utf8().ok()?;
    if person.len() > PERSON_BYTES_MAX {
        return None;
    }
    let person: String = person.nfc().collect();
    // Other blanks are refused with all invisible characters.
    let person = person.trim_matches(' ');
    let is_name = (1..=PERSON_CHARS_MAX).contains(&person.chars().count())
        && check_printable(person, Lines::One).is_ok();
    is_name.then(|| person.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::language::Locale;
    use super::*;
    use crate::auth::LOCAL_USER;

    fn principal() -> Principal {
        Principal { user_id: "erp".into(), address: Some("192.0.2.1".into()) }
    }

    fn identity(speaks_for_people: bool) -> Identity {
        let local = Identity::local(LOCAL_USER, 1);
        Identity { name: "erp".into(), speaks_for_people, ..local }
    }

    fn headers(sent: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("a value");
            headers.append(HeaderName::from_static(name), value);
        }
        headers
    }

    #[test]
    fn a_service_that_may_names_a_person_and_the_persons_address() {
        let mut principal = principal();
        let sent = headers(&[
            ("on-behalf-of", "%E0%B8%AA%E0%B8%A1 a/b"),
            ("on-behalf-of-ip", "::ffff:203.0.113.9"),
        ]);
        let person = principal.name_person(&identity(true), &sent).expect("named");
        assert_eq!(person.as_deref(), Some("สม a/b"));
        assert_eq!(
            (&*principal.user_id, principal.address.as_deref()),
            ("erp/สม a/b", Some("203.0.113.9"))
        );
        let counted = principal.counted(&identity(true), person.as_deref()).len();
        assert_eq!(counted, 2);
    }

    #[test]
    fn a_persons_address_that_nobody_names_is_not_the_services() {
        let mut principal = principal();
        principal
            .name_person(&identity(true), &headers(&[("on-behalf-of", "ann")]))
            .expect("named");
        assert_eq!((&*principal.user_id, principal.address), ("erp/ann", None));
    }

    #[test]
    fn who_may_not_speak_for_people_and_what_is_no_person_is_refused() {
        let long = "x".repeat(PERSON_CHARS_MAX + 1);
        let ann = ("on-behalf-of", "ann");
        for (may, sent, slug, field) in [
            (false, vec![ann], "not-permitted", None),
            (false, vec![("on-behalf-of-ip", "192.0.2.1")], "not-permitted", None),
            (true, vec![("on-behalf-of-ip", "192.0.2.1")], "invalid-field", Some("On-Behalf-Of")),
            (true, vec![ann, ann], "invalid-field", Some("on-behalf-of")),
            (true, vec![("on-behalf-of", "%0A")], "invalid-field", Some("On-Behalf-Of")),
            (true, vec![("on-behalf-of", "%FF")], "invalid-field", Some("On-Behalf-Of")),
            (true, vec![("on-behalf-of", "a%E2%80%AEb")], "invalid-field", Some("On-Behalf-Of")),
            (true, vec![("on-behalf-of", "ann%E2%80%8B")], "invalid-field", Some("On-Behalf-Of")),
            (true, vec![("on-behalf-of", " ")], "invalid-field", Some("On-Behalf-Of")),
            (true, vec![("on-behalf-of", &*long)], "invalid-field", Some("On-Behalf-Of")),
            (
                true,
                vec![ann, ("on-behalf-of-ip", "here")],
                "invalid-field",
                Some("On-Behalf-Of-IP"),
            ),
        ] {
            let mut principal = principal();
            let refused = principal.name_person(&identity(may), &headers(&sent)).expect_err(slug);
            let body = refused.body("r", Locale::English);
            assert_eq!((body.code, body.field.as_deref()), (slug, field), "{sent:?}");
            assert_eq!(&*principal.user_id, "erp");
        }
    }

    #[test]
    fn a_service_is_counted_by_its_own_limit_and_a_person_by_those_of_people() {
        let request_rate = |request_rate| Identity { request_rate, ..identity(false) };
        let of = |pace_is| principal().counted(&request_rate(pace_is), None).len();
        assert_eq!(
            (of(RequestRate::Free), of(RequestRate::PerMinute(5)), of(RequestRate::Person)),
            (0, 1, 2)
        );
        let (mut principal, limited) = (principal(), request_rate(RequestRate::PerMinute(5)));
        principal.user_id = "erp/ann".into();
        let counted = principal.counted(&limited, Some("ann"));
        assert_eq!(counted[0], Counted::User("erp/ann"), "the person of that service");
        assert_eq!(counted[2], Counted::Service("erp", 5));
    }
}
