//! Whether a caller may do what a route does, asked before any handler runs. The table of routes
//! says what that is; how far a right reaches is in `auth`.

use axum::http::Method;

use super::problem::{Problem, Slug};
use super::route::Route;
use crate::auth::{Act, Identity, LetIn, Role};
use crate::ledger::ShownToken;
use crate::web::middleware::Caller;

/// The act of a request; refused if the identity has no right to it. A method that the route does
/// not have is refused after the gate.
pub(crate) fn check(
    identity: &Identity,
    method: &Method,
    route: &Route,
) -> Result<Option<Act>, Problem> {
    let act = route.operation(method).and_then(|operation| operation.act);
    match act {
        Some(act) if identity.may(act).is_none() => Err(not_permitted(identity, act)),
        act => Ok(act),
    }
}

impl Caller {
    /// The ledger's token by which the caller is admitted, if it is by one: the ledger checks it
    /// again in the transaction that changes tokens, and in one that requests or decides a change
    /// of a counter. Series and tables rely on what the process knows.
    pub(crate) fn shown(&self) -> Option<ShownToken> {
        match self.identity.let_in {
            LetIn::Token { token_id, sha256 } => Some(ShownToken { token_id, sha256 }),
            LetIn::Elsewhere | LetIn::FormerSecret => None,
        }
    }
}

/// The refusal of an act that none of the identity's roles allows, or not within its limits.
fn not_permitted(identity: &Identity, act: Act) -> Problem {
    if act.manages() && identity.let_in == LetIn::FormerSecret {
        let detail = format!(
            "another secret has replaced this one, which takes and reads for a while and may not \
             {}; send the new one of {}",
            act.name(),
            identity.name
        );
        return Problem::new(Slug::NotPermitted, detail);
    }
    if identity.roles.may(act).is_some() {
        let detail = format!(
            "{} is narrowed to series or projects and may not {}; that takes one that is not",
            identity.name,
            act.name()
        );
        return Problem::new(Slug::NotPermitted, detail);
    }
    let roles: Vec<&str> = identity.roles.iter().map(Role::name).collect();
    let may = Role::ALL.into_iter().filter(|role| role.may(act).is_some());
    let detail = format!(
        "{} is {} and may not {}; that takes the role {}",
        identity.name,
        roles.join(" and "),
        act.name(),
        may.map(Role::name).collect::<Vec<_>>().join(" or ")
    );
    Problem::new(Slug::NotPermitted, detail)
}
