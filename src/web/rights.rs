//! What each route does, as far as rights go: the one list that the gate asks before any handler
//! runs. Whose rights reach how far is in `access`.

use axum::http::Method;

use super::problem::{Problem, Slug};
use crate::auth::{Act, Identity, LetIn, Role};
use crate::ledger::ShownToken;
use crate::web::middleware::Caller;

/// Every route that is not open, with what its methods do; those that take numbers first.
const ROUTES: [(&str, &[(Method, Act)]); 37] = [
    ("/api/v1/documents/{documentId}/generate-number", &[(Method::POST, Act::TakeNumbers)]),
    ("/api/v1/document-numbering/batches", &[(Method::POST, Act::TakeNumbers)]),
    ("/api/v1/document-numbering/preview", &[(Method::POST, Act::Preview)]),
    ("/api/v1/documents/{documentId}/numbers", &[(Method::GET, Act::ReadNumbers)]),
    ("/api/v1/documents/{documentId}/revisions", &[(Method::POST, Act::TakeNumbers)]),
    ("/api/v1/document-numbering/numbers", &[(Method::GET, Act::ReadNumbers)]),
    ("/api/v1/document-numbering/numbers/{number}", &[(Method::GET, Act::ReadNumbers)]),
    ("/api/v1/document-numbering/counters", &[(Method::GET, Act::ReadRegisters)]),
    ("/api/v1/document-numbering/statements", &[(Method::GET, Act::ReadRegisters)]),
    ("/api/v1/document-numbering/events", &[(Method::GET, Act::ReadEvents)]),
    (
        "/api/v1/document-numbering/configs",
        &[(Method::GET, Act::ReadSeries), (Method::POST, Act::ChangeSeries)],
    ),
    (
        "/api/v1/document-numbering/configs/{configId}",
        &[
            (Method::GET, Act::ReadSeries),
            (Method::PUT, Act::ChangeSeries),
            (Method::DELETE, Act::ChangeSeries),
        ],
    ),
    (
        "/api/v1/document-numbering/configs/{configId}/activate",
        &[(Method::POST, Act::ChangeSeries)],
    ),
    (
        "/api/v1/document-numbering/configs/{configId}/deactivate",
        &[(Method::POST, Act::ChangeSeries)],
    ),
    ("/api/v1/document-numbering/configs/{configId}/versions", &[(Method::GET, Act::ReadSeries)]),
    (
        "/api/v1/document-numbering/configs/{configId}/versions/{version}",
        &[(Method::GET, Act::ReadSeries)],
    ),
    (
        "/api/v1/document-numbering/configs/{configId}/versions/{version}/diff",
        &[(Method::GET, Act::ReadSeries)],
    ),
    (
        "/api/v1/document-numbering/configs/{configId}/rollback",
        &[(Method::POST, Act::ChangeSeries)],
    ),
    ("/api/v1/document-numbering/reference", &[(Method::GET, Act::ReadReference)]),
    (
        "/api/v1/document-numbering/reference/{table}",
        &[(Method::GET, Act::ReadReference), (Method::POST, Act::ChangeReference)],
    ),
    (
        "/api/v1/document-numbering/reference/{table}/memberships",
        &[(Method::GET, Act::ReadReference)],
    ),
    (
        "/api/v1/document-numbering/tokens",
        &[(Method::GET, Act::ManageTokens), (Method::POST, Act::ManageTokens)],
    ),
    ("/api/v1/document-numbering/tokens/{name}/revoke", &[(Method::POST, Act::ManageTokens)]),
    ("/api/v1/document-numbering/tokens/{name}/rotate", &[(Method::POST, Act::ManageTokens)]),
    (
        "/api/v1/document-numbering/configs/{configId}/reset-counter",
        &[(Method::POST, Act::AnswerForChanges)],
    ),
    (
        "/api/v1/document-numbering/configs/{configId}/reset-chronology",
        &[(Method::POST, Act::AnswerForChanges)],
    ),
    ("/api/v1/document-numbering/change-requests", &[(Method::GET, Act::ReadEvents)]),
    (
        "/api/v1/document-numbering/change-requests/{changeId}/approve",
        &[(Method::POST, Act::AnswerForChanges)],
    ),
    (
        "/api/v1/document-numbering/change-requests/{changeId}/reject",
        &[(Method::POST, Act::AnswerForChanges)],
    ),
    ("/api/v1/serials/unified", &[(Method::POST, Act::TakeNumbers)]),
    ("/api/v1/serials/unified/{serial}", &[(Method::GET, Act::ReadNumbers)]),
    ("/api/v1/serials/system", &[(Method::POST, Act::TakeNumbers)]),
    ("/api/v1/serials/system/begin", &[(Method::POST, Act::TakeNumbers)]),
    ("/api/v1/serials/system/succeed", &[(Method::POST, Act::TakeNumbers)]),
    ("/api/v1/serials/system/fail", &[(Method::POST, Act::TakeNumbers)]),
    ("/api/v1/serials/interface", &[(Method::POST, Act::TakeNumbers)]),
    ("/api/v1/serials/interface/check", &[(Method::POST, Act::TakeNumbers)]),
];

/// What a method of a route does; nothing where it has none, or is open.
pub(crate) fn act(method: &Method, route: &str) -> Option<Act> {
    let (_, methods) = ROUTES.iter().find(|(known, _)| *known == route)?;
    methods.iter().find(|(known, _)| known == method).map(|(_, act)| *act)
}

/// What a request does; refused where the identity may not. A method that the route does not have
/// is refused behind the gate.
pub(crate) fn check(
    identity: &Identity,
    method: &Method,
    route: &str,
) -> Result<Option<Act>, Problem> {
    let Some((_, methods)) = ROUTES.iter().find(|(known, _)| *known == route) else {
        return Err(Problem::internal_taking_nothing(&format_args!("no right names {route}")));
    };
    let method = if method == Method::HEAD { &Method::GET } else { method };
    match methods.iter().find(|(known, _)| known == method) {
        Some((_, act)) if identity.may(*act).is_none() => Err(not_permitted(identity, *act)),
        found => Ok(found.map(|(_, act)| *act)),
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
