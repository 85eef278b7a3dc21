//! What a token gives, as people write it: in the settings, in commands, in requests. Read in one
//! place, so that it means the same everywhere.

use std::fmt;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use numbering::{Lines, check_printable};

use crate::auth::rate::RequestRate;
use crate::auth::scope::Scope;
use crate::auth::{IDENTITY_NAME_CHARS_MAX, Identity, LetIn, Role, Roles, is_identity_name};
use crate::ledger::TokenRights;

/// Series, and projects, to which one token is restricted.
const SCOPE_MAX: usize = 1_000;
/// The highest limit of a token, in requests a minute.
const REQUESTS_MOST: u64 = 60_000_000;
/// Longest code of a series or project.
const CODE_CHARS_MAX: usize = 255;

/// What a token is to give, as it is written.
#[derive(Clone, Copy, Debug)]
pub struct WrittenGrant<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its rights, none of them checked.
    pub rights: &'a TokenRights,
    /// Its last day, in UTC; without one it ends as its rights do.
    pub expires: Option<&'a str>,
}

/// What a token gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The identity that holds the token.
    pub identity: Arc<Identity>,
    /// The token is no longer accepted from then on, in microseconds since 1970; nothing: it never
    /// expires.
    pub expires_at_us: Option<i64>,
}

/// What is wrong with what is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantMistake {
    /// The field.
    pub field: &'static str,
    /// What is wrong, and the remedy.
    pub reason: String,
}

impl fmt::Display for GrantMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.reason)
    }
}

fn mistake<T>(field: &'static str, reason: String) -> Result<T, GrantMistake> {
    Err(GrantMistake { field, reason })
}

impl WrittenGrant<'_> {
    /// Reads the written token. `count_most`: the most numbers of one range that it may allow.
    ///
    /// # Errors
    /// The first field that cannot be used.
    pub fn read(self, count_most: u64) -> Result<Grant, GrantMistake> {
        let name = self.name;
        if !is_identity_name(name) {
            let wanted = format!("write 1 to {IDENTITY_NAME_CHARS_MAX} of A-Z a-z 0-9 . _ -");
            return mistake("name", format!("{name:?} is not a name; {wanted}"));
        }
        self.read_of_named(count_most)
    }

    /// The same for a name that was read already.
    ///
    /// # Errors
    /// The first field that cannot be used.
    pub fn read_of_named(self, count_most: u64) -> Result<Grant, GrantMistake> {
        let WrittenGrant { name, rights, expires } = self;
        let count_max = rights.count_max.unwrap_or(count_most);
        if !(1..=count_most).contains(&count_max) {
            let reason = format!("{count_max} is out of bounds; write 1 to {count_most}");
            return mistake("count_max", reason);
        }
        let request_rate = match rights.requests_per_minute {
            None => RequestRate::Free,
            Some(quota) if (1..=REQUESTS_MOST).contains(&quota) => RequestRate::PerMinute(quota),
            Some(quota) => {
                let reason = format!("{quota} is out of bounds; write 1 to {REQUESTS_MOST}");
                return mistake("requests_per_minute", reason);
            }
        };
        let roles = read_roles(&rights.roles)?;
        for (field, list) in [("series", &rights.series), ("projects", &rights.projects)] {
            let is_code = |code: &String| {
                (1..=CODE_CHARS_MAX).contains(&code.chars().count())
                    && check_printable(code, Lines::One).is_ok()
            };
            if list.len() > SCOPE_MAX || !list.iter().all(is_code) {
                let reason = format!(
                    "must be at most {SCOPE_MAX} codes of 1 to {CODE_CHARS_MAX} characters, all \
                     of them printable"
                );
                return mistake(field, reason);
            }
        }
        if roles.has(Role::ProjectAdmin) && rights.projects.is_empty() {
            let reason = "are none, and a project-admin is one of its projects; list them, or make \
                          it a super-admin";
            return mistake("projects", reason.into());
        }
        let expires_at_us = expires.map(end_of).transpose()?.or(rights.expires_at_us);
        let scope = Scope::of(rights.series.clone(), rights.projects.clone());
        let (name, speaks_for_people) = (name.into(), rights.speaks_for_people);
        let let_in = LetIn::Elsewhere;
        let identity =
            Identity { name, roles, scope, count_max, request_rate, speaks_for_people, let_in };
        let identity = Arc::new(identity);
        Ok(Grant { identity, expires_at_us })
    }
}

/// The words for the roles of a token; without any, a caller's.
#[must_use]
pub fn written_roles(words: Option<&[String]>) -> Vec<String> {
    words.map_or_else(|| vec![Role::Caller.name().to_owned()], <[String]>::to_vec)
}

fn read_roles(words: &[String]) -> Result<Roles, GrantMistake> {
    let known = || Role::ALL.map(Role::name).join(", ");
    if words.is_empty() {
        let reason = format!("are none, and so it may do nothing; list some of {}", known());
        return mistake("roles", reason);
    }
    let read = |word: &String| match Role::named(word) {
        Some(role) => Ok(role),
        None => mistake("roles", format!("{word:?} is no role; write some of {}", known())),
    };
    words.iter().map(read).collect()
}

/// The end of a day in UTC.
///
/// # Errors
/// What is no day.
pub fn end_of(day: &str) -> Result<i64, GrantMistake> {
    let next = day.parse::<Date>().ok().filter(|date| date.to_string() == day);
    let next = next.and_then(|date| date.tomorrow().ok()?.to_zoned(TimeZone::UTC).ok());
    match next {
        Some(end) => Ok(end.timestamp().as_microsecond()),
        None => mistake("expires", format!("{day:?} is no last day; write one, as 2027-12-31")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller() -> TokenRights {
        TokenRights { roles: written_roles(None), ..TokenRights::default() }
    }

    #[test]
    fn who_says_nothing_gets_a_caller_that_reaches_everything() {
        let rights = caller();
        let nothing = WrittenGrant { name: "ci", rights: &rights, expires: None };
        let Grant { identity, expires_at_us } = nothing.read(9).expect("a grant");
        assert!(identity.roles.iter().eq([Role::Caller]) && identity.scope.is_everything());
        assert_eq!((&*identity.name, identity.count_max, expires_at_us), ("ci", 9, None));
        let last = WrittenGrant { expires: Some("1970-01-01"), ..nothing };
        assert_eq!(last.read(9).expect("a grant").expires_at_us, Some(86_400_000_000));
    }

    #[test]
    fn each_mistake_names_its_field_and_the_remedy() {
        let words = |words: &[&str]| words.iter().map(|&word| word.into()).collect::<Vec<String>>();
        let long = words(&[&"x".repeat(CODE_CHARS_MAX + 1)]);
        let (control, unseen) = (words(&["A\u{0}"]), words(&["B", "A\u{202e}"]));
        let refuses = |name, rights, expires, field, says| {
            let written = WrittenGrant { name, rights: &rights, expires };
            let mistake = written.read(9).expect_err(field);
            assert_eq!(mistake.field, field);
            assert!(mistake.reason.contains(says), "{mistake}");
        };
        refuses("a b", caller(), None, "name", "1 to 64");
        refuses("ci", caller(), Some("2027-1-1"), "expires", "2027-12-31");
        for (rights, field, says) in [
            (TokenRights { roles: words(&[]), ..caller() }, "roles", "super-admin"),
            (TokenRights { roles: words(&["boss"]), ..caller() }, "roles", "\"boss\""),
            (TokenRights { roles: words(&["project-admin"]), ..caller() }, "projects", "list them"),
            (TokenRights { series: long.clone(), ..caller() }, "series", "255"),
            (TokenRights { projects: long, ..caller() }, "projects", "255"),
            (TokenRights { series: control, ..caller() }, "series", "printable"),
            (TokenRights { projects: unseen, ..caller() }, "projects", "printable"),
            (TokenRights { count_max: Some(10), ..caller() }, "count_max", "1 to 9"),
            (TokenRights { count_max: Some(0), ..caller() }, "count_max", "1 to 9"),
            (TokenRights { requests_per_minute: Some(0), ..caller() }, "requests_per_minute", "1"),
        ] {
            refuses("ci", rights, None, field, says);
        }
    }
}
