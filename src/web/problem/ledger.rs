//! Problems of calls that take no number: a ledger that does not answer, a definition that cannot
//! be used, a change of series that is refused.

use numbering::{RuleError, TemplateError};

use super::{Problem, Slug};
use crate::auth::GrantMistake;
use crate::ledger::{ChangeRefusal, LedgerError, SeriesRefusal, TokenRefusal};

/// For calls that take no number.
impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        let slug = match &error {
            // A process that the ledger forgot, or that others took for dead, is another one soon.
            LedgerError::Unreachable { .. }
            | LedgerError::Fault(_)
            | LedgerError::Unfit(_)
            | LedgerError::WentBack(_)
            | LedgerError::NodeGone(_) => Slug::DatabaseConnection,
            LedgerError::LockTimeout { .. } | LedgerError::Conflict(_) => Slug::LockTimeout,
            LedgerError::SeriesChanged => {
                return Problem::new(Slug::SeriesChanged, error.to_string()).retry_soon();
            }
            LedgerError::Unsearched(why) => return Problem::field("number", why.clone()),
            LedgerError::Series(refusal) => return Problem::from(refusal),
            LedgerError::Token(refusal) => return Problem::from(refusal),
            LedgerError::Change(refusal) => return Problem::from(refusal),
            LedgerError::GivenUp => return crate::web::admission::overdue(),
            _ => return Problem::internal_taking_nothing(&error),
        };
        tracing::warn!(%error, "the ledger did not answer a call");
        Problem::new(slug, "the ledger does not answer now").retry_soon()
    }
}

/// The token, its position and the remedy are in the detail.
impl From<TemplateError> for Problem {
    fn from(error: TemplateError) -> Self {
        Problem::field(error.field(), error.to_string())
    }
}

impl From<&SeriesRefusal> for Problem {
    fn from(refusal: &SeriesRefusal) -> Self {
        let (slug, field) = match refusal {
            SeriesRefusal::Unknown { .. } => (Slug::ConfigNotFound, None),
            SeriesRefusal::TooMany => (Slug::InvalidField, Some("code")),
            SeriesRefusal::ProjectFull { .. } => (Slug::InvalidField, Some("serves.projects")),
            SeriesRefusal::CodeTaken { .. } => (Slug::CodeTaken, Some("code")),
            SeriesRefusal::CodeChanged { .. } => (Slug::InvalidField, Some("code")),
            SeriesRefusal::Closing(_) => (Slug::InvalidField, Some("closed_before")),
            SeriesRefusal::VersionConflict { .. } => (Slug::VersionConflict, Some("If-Match")),
            SeriesRefusal::Rule(RuleError::Ambiguous { .. }) => {
                (Slug::SeriesAmbiguous, Some("serves"))
            }
            SeriesRefusal::Rule(RuleError::Zones { .. }) => (Slug::InvalidField, Some("timezone")),
            SeriesRefusal::Ambiguous(_) => (Slug::TemplateAmbiguous, Some("template")),
            SeriesRefusal::Hasty(_) => (Slug::TemplateAmbiguous, Some("ambiguity_accepted")),
            SeriesRefusal::ReadsKept { .. } => (Slug::TemplateAmbiguous, Some("template")),
            SeriesRefusal::MayReadForgotten { .. } => (Slug::PartitionHeld, None),
            SeriesRefusal::Rule(_) => (Slug::InvalidField, Some("serves")),
            SeriesRefusal::Policy { .. } => (Slug::SeriesInUse, Some("policy")),
            SeriesRefusal::Used { .. } | SeriesRefusal::KeepsNumbers { .. } => {
                (Slug::SeriesInUse, None)
            }
            SeriesRefusal::Held { .. } => (Slug::PartitionHeld, None),
            SeriesRefusal::BelowStart(below) => (Slug::CounterBelowStart, Some(&*below.field)),
            SeriesRefusal::Repeats { why, .. } => (Slug::SeriesInUse, Some(why.field())),
        };
        Problem { field: field.map(Into::into), ..Problem::new(slug, refusal.to_string()) }
    }
}

impl From<&TokenRefusal> for Problem {
    fn from(refusal: &TokenRefusal) -> Self {
        let slug = match refusal {
            TokenRefusal::Unknown { .. } => Slug::TokenNotFound,
            TokenRefusal::NameTaken { .. } => Slug::TokenNameTaken,
            TokenRefusal::Revoked { .. } => Slug::TokenRevoked,
            TokenRefusal::NotInForce => return Problem::refused_token(refusal.to_string()),
            TokenRefusal::TooMany => return Problem::field("name", refusal.to_string()),
        };
        Problem { field: Some("name".into()), ..Problem::new(slug, refusal.to_string()) }
    }
}

impl From<&ChangeRefusal> for Problem {
    fn from(refusal: &ChangeRefusal) -> Self {
        use ChangeRefusal as Why;
        let of = |slug| Problem::new(slug, refusal.to_string());
        let in_field = |slug, field: &str| Problem { field: Some(field.into()), ..of(slug) };
        match refusal {
            Why::Unknown(_) => of(Slug::ChangeNotFound),
            Why::Decided { .. } | Why::Expired(_) => of(Slug::ChangeAnswered),
            Why::Own(_) => of(Slug::OwnChange),
            Why::Below { .. } => in_field(Slug::BelowLeastAllowed, "next_value"),
            Why::TooEarly(_) => in_field(Slug::BelowLeastAllowed, "last_date"),
            Why::BesideStep { .. } => in_field(Slug::InvalidField, "next_value"),
            Why::NotEarlier(_) | Why::NoDate => in_field(Slug::InvalidField, "last_date"),
            Why::UnknownCounter(_) | Why::TooMany => in_field(Slug::InvalidField, "counter_id"),
            Why::InRedis(_) => of(Slug::LockTimeout).retry_soon(),
            Why::Held(_) => of(Slug::PartitionHeld).retry_soon(),
        }
    }
}

impl From<GrantMistake> for Problem {
    fn from(mistake: GrantMistake) -> Self {
        Problem::field(mistake.field, mistake.reason)
    }
}

impl Problem {
    /// The problem of a change of tokens that the ledger did not confirm.
    pub(crate) fn of_token_change(error: LedgerError) -> Self {
        let maybe_written = error.maybe_written();
        let problem = Problem::from(error);
        if !maybe_written {
            return problem;
        }
        let detail = "the ledger did not say whether the change is saved; list the tokens before \
                      you send it again. One that was created without an answer gets a secret by \
                      `rotate`";
        Problem { detail: detail.into(), ..problem }
    }

    /// The problem of a change request, or of an answer to one, that the ledger did not confirm.
    pub(crate) fn of_decision(error: LedgerError) -> Self {
        let maybe_written = error.maybe_written();
        let problem = Problem::from(error);
        if !maybe_written {
            return problem;
        }
        let detail = "the ledger did not say whether this stands; list the change requests before \
                      you send it again";
        Problem { detail: detail.into(), ..problem }
    }

    /// The problem of a change that the ledger did not confirm.
    pub(crate) fn of_change(error: LedgerError) -> Self {
        let maybe_written = error.maybe_written();
        let problem = Problem::from(error);
        if !maybe_written {
            return problem;
        }
        let detail = "the ledger did not say whether the change is saved; read the configuration \
                      before you send it again";
        Problem { detail: detail.into(), ..problem }
    }
}
