//! A token to create and one to rotate, as a body or a command line says it.

use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::auth::COUNT_MAX;
use crate::auth::{Grant, GrantMistake, Secret, WrittenGrant, written_roles};
use crate::config::DurationText;
use crate::ledger::{NewToken, ShownToken, TOKEN_GRACE_MAX, TokenRights};
use crate::web::problem::Problem;

/// The roles, as the command line says them.
const ROLES_HELP: &str = "\
    What it may do: caller, project-admin, super-admin, auditor, operator; may be repeated. A \
    caller without it";
/// The right to ask on behalf of people, likewise.
const PEOPLE_HELP: &str =
    "It may ask on behalf of people, whom it names in the header On-Behalf-Of";
/// The grace of a rotation, likewise.
const GRACE_HELP: &str =
    "How long the present secret is still accepted, at most 1d; `0s` after a leak";

/// A token to create.
#[derive(Clone, Debug, Args, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Its name: the `user_id` of what it does.
    #[arg(help = "Name of the caller; the journal keeps it as `user_id`")]
    pub name: String,
    /// What it may do; without it `["caller"]`.
    #[arg(long = "role", value_name = "ROLE", help = ROLES_HELP)]
    pub roles: Option<Vec<String>>,
    /// Codes of the series to which it is narrowed; without it to none.
    #[arg(long, value_name = "CODE")]
    #[arg(help = "A series to which it is narrowed; may be repeated")]
    #[serde(default)]
    pub series: Vec<String>,
    /// Codes of the projects to which it is narrowed; without it to none.
    #[arg(long = "project", value_name = "CODE")]
    #[arg(help = "A project to which it is narrowed; may be repeated")]
    #[serde(default)]
    pub projects: Vec<String>,
    /// Its last day (UTC), such as `2027-12-31`; without it there is none.
    #[arg(long, value_name = "DATE", help = "Its last day (UTC), such as 2027-12-31")]
    pub expires: Option<String>,
    /// Most numbers of one call.
    #[arg(long, value_name = "N", help = "Most numbers that one call may ask for")]
    pub count_max: Option<u64>,
    /// Most requests of a minute.
    #[arg(long, value_name = "N")]
    #[arg(help = "Most requests of a minute that take or preview numbers")]
    pub requests_per_minute: Option<u64>,
    /// Whether it may ask on behalf of people.
    #[arg(long, help = PEOPLE_HELP)]
    #[serde(default)]
    pub speaks_for_people: bool,
}

impl TokenRequest {
    /// The rights that it asks for, none of them checked, without its end.
    pub(super) fn rights(&self) -> TokenRights {
        TokenRights {
            roles: written_roles(self.roles.as_deref()),
            series: self.series.clone(),
            projects: self.projects.clone(),
            count_max: self.count_max,
            requests_per_minute: self.requests_per_minute,
            speaks_for_people: self.speaks_for_people,
            expires_at_us: None,
        }
    }

    /// What it grants with these rights.
    ///
    /// # Errors
    /// The first field that cannot be used.
    pub(super) fn granted(&self, rights: &TokenRights) -> Result<Grant, GrantMistake> {
        WrittenGrant { name: &self.name, rights, expires: self.expires.as_deref() }.read(COUNT_MAX)
    }
}

/// How to give a token a new secret.
#[derive(Clone, Debug, Args, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotationRequest {
    /// How long the present secret is still accepted, such as `15m`; at most `1d`, an hour without
    /// it.
    #[arg(long, value_name = "DURATION", default_value = "1h", help = GRACE_HELP)]
    #[serde(default = "an_hour")]
    #[schema(value_type = String)]
    pub grace: DurationText,
    /// Its last day from now on; without it the one that it has.
    #[arg(long, value_name = "DATE", help = "Its last day (UTC) from now on")]
    pub expires: Option<String>,
}

fn an_hour() -> DurationText {
    DurationText(std::time::Duration::from_secs(3_600))
}

/// A token to create with this secret, by whom and, over HTTP, by which token.
///
/// # Errors
/// The field that says nothing of use.
pub(crate) fn new_token(
    order: TokenRequest,
    secret: &Secret,
    created_by: &str,
    shown: Option<ShownToken>,
) -> Result<NewToken, Problem> {
    let rights = order.rights();
    let granted = order.granted(&rights)?;
    let roles = granted.identity.roles.iter().map(|role| role.name().to_owned()).collect();
    let rights = TokenRights { roles, expires_at_us: granted.expires_at_us, ..rights };
    let (name, sha256) = (order.name, secret.sha256());
    Ok(NewToken { name, sha256, rights, created_by: created_by.to_owned(), shown })
}

/// Refuses a grace of more than a day.
pub(crate) fn check_grace(grace: DurationText) -> Result<std::time::Duration, Problem> {
    if grace.0 > TOKEN_GRACE_MAX {
        let most = DurationText(TOKEN_GRACE_MAX);
        return Err(Problem::field("grace", format!("must be at most {most}, not {grace}")));
    }
    Ok(grace.0)
}
