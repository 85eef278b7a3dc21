//! Identities: the authenticated callers.

use std::sync::Arc;

use numerator_runtime::actor::{JWT_NAME_PREFIX, identity_of};

use crate::auth::rate::RequestRate;
use crate::auth::scope::Scope;
use crate::auth::{Act, Role, Roles, Whose};
use crate::ledger::{CodesWithin, JournalRow, RowVisibility};

/// The identity of callers where no authentication is required.
pub const LOCAL_USER: &str = "local";

/// The journal keeps the name with every number.
pub const IDENTITY_NAME_CHARS_MAX: usize = 64;

/// The credential of an identity, as far as the ledger has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LetIn {
    /// None of the ledger's: a token of the settings, a JWT, or no authentication at all.
    #[default]
    Elsewhere,
    /// By the secret of one of its tokens.
    Token {
        /// The token.
        token_id: i64,
        /// SHA-256 of the secret.
        sha256: [u8; 32],
    },
    /// By a secret that another one has replaced, in its grace: it takes and reads.
    FormerSecret,
}

/// One that may ask: a service or a person, by the name of its token, or as its JWT names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name, the `user_id` of the journal.
    pub name: Arc<str>,
    /// Its roles.
    pub roles: Roles,
    /// To what it is restricted.
    pub scope: Scope,
    /// Most numbers that one call may ask for.
    pub count_max: u64,
    /// How often it may ask.
    pub request_rate: RequestRate,
    /// Whether it may ask on behalf of people.
    pub speaks_for_people: bool,
    /// Its credential.
    pub let_in: LetIn,
}

impl Identity {
    /// A caller of a loopback address where no authentication is required, or a command run with
    /// the settings of the ledger: may do everything.
    #[must_use]
    pub fn local(name: &str, count_max: u64) -> Self {
        let (roles, scope) = (Roles::all(), Scope::EVERYTHING);
        let (request_rate, speaks_for_people) = (RequestRate::Free, true);
        let (name, let_in) = (name.into(), LetIn::Elsewhere);
        Identity { name, roles, scope, count_max, request_rate, speaks_for_people, let_in }
    }

    /// The visibility that the right gives it; nothing where it does not have the right. A
    /// restricted identity manages no tokens (one that it made could reach further than itself),
    /// resets no counters, and changes no tables, which all series share. A secret that was
    /// replaced manages nothing: it may be the leaked one.
    #[must_use]
    pub fn may(&self, act: Act) -> Option<Whose> {
        use Act::{AnswerForChanges, ChangeReference, ManageTokens};
        let is_for_all = matches!(act, ManageTokens | AnswerForChanges | ChangeReference);
        let may = self.roles.may(act).filter(|_| !is_for_all || self.scope.is_everything());
        may.filter(|_| !act.manages() || self.let_in != LetIn::FormerSecret)
    }

    /// Whether it may see a number of that series and project which was issued to that actor.
    #[must_use]
    pub fn sees_number(&self, actor: &str, series: &str, project: Option<&str>) -> bool {
        // The person for whom it asked.
        let user = identity_of(actor);
        match self.may(Act::ReadNumbers) {
            None => false,
            Some(Whose::Own) => user == &*self.name,
            // What it took itself it may see again, wherever it may take numbers now.
            Some(Whose::Any) => {
                self.scope.has(series, project)
                    || (self.roles.has(Role::Caller) && user == &*self.name)
            }
        }
    }

    /// The same of a row of the journal.
    #[must_use]
    pub fn sees_row(&self, row: &JournalRow) -> bool {
        let record = &row.entry.record;
        self.sees_number(&record.user_id, &row.series, record.project.as_deref())
    }

    /// Whether it may see every number: then it may also learn what is elsewhere.
    #[must_use]
    pub fn sees_everything(&self) -> bool {
        self.scope.is_everything() && self.may(Act::ReadNumbers) == Some(Whose::Any)
    }

    /// The numbers that it may see, for the ledger, which leaves the others out of its searches.
    #[must_use]
    pub fn row_visibility(&self) -> RowVisibility {
        let own = || Some(Arc::clone(&self.name));
        match self.may(Act::ReadNumbers) {
            None => RowVisibility::Part { within: None, own: None },
            Some(Whose::Own) => RowVisibility::Part { within: None, own: own() },
            Some(Whose::Any) if self.scope.is_everything() => RowVisibility::Everything,
            Some(Whose::Any) => {
                let listed = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
                let (series, projects) = (self.scope.series(), self.scope.projects());
                let within = CodesWithin { series: listed(series), projects: listed(projects) };
                let own = own().filter(|_| self.roles.has(Role::Caller));
                RowVisibility::Part { within: Some(within), own }
            }
        }
    }
}

/// Whether a text can name an identity: it becomes the `user_id` of the journal.
#[must_use]
pub fn is_identity_name(name: &str) -> bool {
    (1..=IDENTITY_NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// The name of an identity from the name in a JWT; nothing where it cannot be one. No token can
/// ever have it: the numbers that a name took belong to it, so two callers must not share one. It
/// has no `/`, which separates it from the person for whom an identity asks.
#[must_use]
pub fn jwt_identity_name(named: &str) -> Option<String> {
    let is_written_so = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@|+:".contains(&byte);
    let is_name = !named.is_empty() && named.bytes().all(is_written_so);
    let name = format!("{JWT_NAME_PREFIX}{named}");
    (is_name && name.len() <= IDENTITY_NAME_CHARS_MAX).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_jwt_is_one_that_a_token_can_have() {
        let (long, longer) = ("x".repeat(60), "x".repeat(61));
        for named in ["ann", "ann@example.com", "auth0|123", "system:serviceaccount:a:b", &long] {
            let name = jwt_identity_name(named).expect(named);
            assert!(!is_identity_name(&name) && name.ends_with(named), "{name}");
        }
        for named in ["", "a b", "a/b", "a\nb", "ä", "a\"b", "=1", &longer] {
            assert_eq!(jwt_identity_name(named), None, "{named:?}");
        }
    }

    fn identity(roles: &[Role], projects: &[&str]) -> Identity {
        Identity {
            name: "ci".into(),
            roles: roles.iter().copied().collect(),
            scope: Scope::of(Vec::new(), projects.iter().map(|&p| p.to_owned()).collect()),
            count_max: 1,
            request_rate: RequestRate::Free,
            speaks_for_people: false,
            let_in: LetIn::Elsewhere,
        }
    }

    #[test]
    fn who_is_narrowed_manages_no_tokens_and_changes_no_tables() {
        let restricted = identity(&[Role::SuperAdmin], &["C1"]);
        for act in [Act::ManageTokens, Act::ChangeReference, Act::AnswerForChanges] {
            assert!(identity(&[Role::SuperAdmin], &[]).may(act).is_some());
            assert!(restricted.may(act).is_none());
        }
        assert!(restricted.may(Act::ChangeSeries).is_some());
    }

    /// One rule in two forms: as a query of the ledger, and as a check of a row.
    #[test]
    fn the_ledger_leaves_out_what_is_not_shown() {
        let scope = |series: &[&str], projects: &[&str]| {
            let list = |codes: &[&str]| codes.iter().map(|&code| code.to_owned()).collect();
            Scope::of(list(series), list(projects))
        };
        let reaches =
            [scope(&[], &[]), scope(&["S"], &[]), scope(&[], &["C1"]), scope(&["S"], &["C1"])];
        for roles in 0..1_u32 << Role::ALL.len() {
            let held = (0..).zip(Role::ALL).filter(|(bit, _)| roles >> bit & 1 == 1);
            let roles: Vec<Role> = held.map(|(_, role)| role).collect();
            for scope in &reaches {
                let who = Identity { scope: scope.clone(), ..identity(&roles, &[]) };
                let visibility = who.row_visibility();
                for actor in ["ci", "ci/ann", "other", "other/ci", "cio"] {
                    for (series, project) in
                        [("S", None), ("S", Some("C1")), ("S", Some("C2")), ("T", Some("C1"))]
                    {
                        let said = format!("{who:?} {actor} {series} {project:?}");
                        let sees = who.sees_number(actor, series, project);
                        assert_eq!(visibility.has(actor, series, project), sees, "{said}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_former_secret_takes_and_reads_and_manages_nothing() {
        let let_in = LetIn::FormerSecret;
        let former = Identity { let_in, ..Identity::local(LOCAL_USER, 1) };
        for act in Act::ALL {
            let manages =
                ["change", "manage", "reset", "void"].iter().any(|it| act.name().starts_with(it));
            assert_eq!(former.may(act).is_none(), manages, "{}", act.name());
        }
    }

    #[test]
    fn a_caller_sees_its_own_numbers_an_admin_those_of_its_projects_an_operator_none() {
        let caller = identity(&[Role::Caller], &[]);
        assert!(caller.sees_number("ci", "S", None));
        assert!(!caller.sees_number("other", "S", None));
        assert!(caller.sees_number("ci/ann", "S", None));
        assert!(!caller.sees_number("other/ci", "S", None));
        let admin = identity(&[Role::ProjectAdmin], &["C1"]);
        assert!(admin.sees_number("other", "S", Some("C1")));
        assert!(!admin.sees_number("other", "S", Some("C2")));
        assert!(!admin.sees_number("ci", "S", Some("C2")));
        let both = identity(&[Role::ProjectAdmin, Role::Caller], &["C1"]);
        assert!(both.sees_number("ci", "S", Some("C2")));
        assert!(!identity(&[Role::Operator], &[]).sees_number("ci", "S", None));
    }
}
