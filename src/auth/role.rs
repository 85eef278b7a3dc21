//! The table of rights: which role may do what. `docs/security.md` shows the same table, and a test
//! compares them.

use std::fmt;

/// The purpose of an identity. An identity may have several roles, and may do what any of them may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes and previews numbers, and reads its own.
    Caller,
    /// Changes the series of its projects, and reads what was issued in them.
    ProjectAdmin,
    /// Changes every series, and reads everything.
    SuperAdmin,
    /// Reads everything, changes nothing.
    Auditor,
    /// Reads what the service noted of itself; no numbers.
    Operator,
    /// Voids and corrects issued numbers, registers those given by hand, and reads them; takes
    /// none.
    Registrar,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 6] = [
        Role::Caller,
        Role::ProjectAdmin,
        Role::SuperAdmin,
        Role::Auditor,
        Role::Operator,
        Role::Registrar,
    ];

    /// The word for it in settings, commands and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Role::Caller => "caller",
            Role::ProjectAdmin => "project-admin",
            Role::SuperAdmin => "super-admin",
            Role::Auditor => "auditor",
            Role::Operator => "operator",
            Role::Registrar => "registrar",
        }
    }

    /// The role of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    /// The visibility that the right has in this role; nothing where the role does not have it.
    #[must_use]
    pub const fn may(self, act: Act) -> Option<Whose> {
        use Act::{
            AnswerForChanges, AssignNumbers, ChangeReference, ChangeSeries, ManageTokens, Preview,
            ReadEvents, ReadNumbers, ReadReference, ReadRegisters, ReadSeries, TakeNumbers,
            VoidNumbers,
        };
        match (self, act) {
            (Role::Caller, TakeNumbers | ReadNumbers | AssignNumbers) => Some(Whose::Own),
            (Role::Caller, Preview | ReadSeries) => Some(Whose::Any),
            (
                Role::ProjectAdmin,
                Preview | ReadNumbers | ReadSeries | ReadRegisters | ReadReference | ChangeSeries,
            ) => Some(Whose::Any),
            (
                Role::SuperAdmin,
                Preview | ReadNumbers | ReadSeries | ReadRegisters | ReadReference | ReadEvents
                | ChangeSeries | ChangeReference | ManageTokens | AnswerForChanges,
            ) => Some(Whose::Any),
            (
                Role::Auditor,
                Preview | ReadNumbers | ReadSeries | ReadRegisters | ReadReference | ReadEvents,
            ) => Some(Whose::Any),
            (Role::Operator, ReadEvents) => Some(Whose::Any),
            (
                Role::Registrar,
                ReadNumbers | ReadSeries | ReadRegisters | VoidNumbers | AssignNumbers,
            ) => Some(Whose::Any),
            _ => None,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a request does, as far as rights go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Takes numbers and serials, and labels them.
    TakeNumbers,
    /// Shows what a number would look like.
    Preview,
    /// Reads numbers, and what they were issued for.
    ReadNumbers,
    /// Reads series and their versions.
    ReadSeries,
    /// Reads counters and statements, which are of all callers.
    ReadRegisters,
    /// Reads tables of ids and codes, and memberships.
    ReadReference,
    /// Reads the events of the ledger.
    ReadEvents,
    /// Creates, changes, activates and removes series.
    ChangeSeries,
    /// Changes tables of ids and codes, and memberships, which all series share.
    ChangeReference,
    /// Makes and revokes tokens.
    ManageTokens,
    /// Asks for changes that two people answer for, and approves those of others.
    AnswerForChanges,
    /// Voids issued numbers, corrects what they do not show, and registers those given by hand.
    VoidNumbers,
    /// Assigns numbers of ranges to documents.
    AssignNumbers,
}

impl Act {
    /// Every act.
    pub const ALL: [Act; 13] = [
        Act::TakeNumbers,
        Act::Preview,
        Act::ReadNumbers,
        Act::ReadSeries,
        Act::ReadRegisters,
        Act::ReadReference,
        Act::ReadEvents,
        Act::ChangeSeries,
        Act::ChangeReference,
        Act::ManageTokens,
        Act::AnswerForChanges,
        Act::VoidNumbers,
        Act::AssignNumbers,
    ];

    /// Whether it counts against the rate limit: what takes numbers, or tries to, and what notes
    /// something of them.
    #[must_use]
    pub const fn is_limited(self) -> bool {
        matches!(self, Act::TakeNumbers | Act::Preview | Act::VoidNumbers | Act::AssignNumbers)
    }

    /// Whether it changes what others live with: series, tables, tokens, counters, and the numbers
    /// of all callers.
    #[must_use]
    pub const fn manages(self) -> bool {
        use Act::{AnswerForChanges, ChangeReference, ChangeSeries, ManageTokens, VoidNumbers};
        matches!(
            self,
            ChangeSeries | ChangeReference | ManageTokens | AnswerForChanges | VoidNumbers
        )
    }

    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Act::TakeNumbers => "take numbers",
            Act::Preview => "preview numbers",
            Act::ReadNumbers => "read numbers",
            Act::ReadSeries => "read series",
            Act::ReadRegisters => "read counters and statements",
            Act::ReadReference => "read reference data",
            Act::ReadEvents => "read events",
            Act::ChangeSeries => "change series",
            Act::ChangeReference => "change reference data",
            Act::ManageTokens => "manage tokens",
            Act::AnswerForChanges => "reset counters",
            Act::VoidNumbers => "void, correct and register numbers",
            Act::AssignNumbers => "assign numbers of ranges",
        }
    }
}

/// Whose numbers a right is for; where the identity is restricted to series or projects, never more
/// than those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// Those that it took itself.
    Own,
    /// Those of every identity.
    Any,
}

/// A set of roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// Every role: of a caller of a loopback address where no authentication is required.
    #[must_use]
    pub fn all() -> Self {
        Role::ALL.into_iter().collect()
    }

    /// Whether the role is among them.
    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }

    /// The roles, in the order of [`Role::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.has(*role))
    }

    /// The widest visibility that the right has in these roles; nothing where none of them has it.
    #[must_use]
    pub fn may(self, act: Act) -> Option<Whose> {
        self.iter().filter_map(|role| role.may(act)).max()
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<T: IntoIterator<Item = Role>>(roles: T) -> Self {
        Roles(roles.into_iter().fold(0, |set, role| set | 1 << role as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_is_found_by_its_name_and_no_other_text_is_one() {
        for role in Role::ALL {
            assert_eq!(Role::named(role.name()), Some(role));
        }
        for wrong in ["", "admin", "Caller", "super_admin"] {
            assert_eq!(Role::named(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn several_roles_may_what_any_of_them_may_and_the_wider_right_counts() {
        let both: Roles = [Role::Caller, Role::Auditor].into_iter().collect();
        assert_eq!(both.may(Act::ReadNumbers), Some(Whose::Any));
        assert_eq!(both.may(Act::TakeNumbers), Some(Whose::Own));
        assert_eq!(both.may(Act::ChangeSeries), None);
        assert_eq!(Roles::default().may(Act::Preview), None);
        assert!(Act::ALL.into_iter().all(|act| Roles::all().may(act).is_some()));
    }

    /// The reviewed table: a right that is added or lost here is seen.
    #[test]
    fn the_table_of_rights_is_as_the_page_on_security_shows_it() {
        let page = include_str!("../../docs/security.md");
        let heads: Vec<&str> = Role::ALL.map(Role::name).to_vec();
        let head = format!("| | {} |", heads.join(" | "));
        assert!(page.contains(&head), "the page has no line {head}");
        for act in Act::ALL {
            let cell = |role: Role| match role.may(act) {
                None => "–",
                Some(Whose::Own) => "own",
                Some(Whose::Any) => "yes",
            };
            let line = format!("| {} | {} |", act.name(), Role::ALL.map(cell).join(" | "));
            assert!(page.contains(&line), "the page has no line {line}");
        }
    }
}
