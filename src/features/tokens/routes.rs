//! `/api/v1/document-numbering/tokens` and below: the tokens of callers, in the ledger. A secret is
//! only in the answer that creates it, and in no log, event or list.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::COUNT_MAX;
use crate::auth::{Secret, WrittenGrant};
use crate::config::DurationText;
use crate::features::series::saving::until_known;
use crate::ledger::{
    LedgerError, NewToken, SharedLedger, ShownToken, StoredToken, TOKEN_GRACE_MAX, TokenRevocation,
    TokenRights, TokenRotation,
};
use crate::web::App;
use crate::web::admission::json;
use crate::web::body::must_be_storable;
use crate::web::body::{Json, QueryOf};
use crate::web::instant::instant;
use crate::web::middleware::Caller;
use crate::web::paging::limit;
use crate::web::paging::rows_of_page;
use crate::web::problem::Problem;
use crate::web::reason::ReasonOrder;
use crate::web::reason::check_reason;

/// A token to create.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenOrder {
    /// Its name: the `user_id` of what it does.
    name: String,
    /// What it may do; without it `["caller"]`.
    roles: Option<Vec<String>>,
    /// Codes of the series to which it is narrowed; without it to none.
    #[serde(default)]
    series: Vec<String>,
    /// Codes of the projects to which it is narrowed; without it to none.
    #[serde(default)]
    projects: Vec<String>,
    /// Its last day (UTC), such as `2027-12-31`; without it there is none.
    expires: Option<String>,
    /// Most numbers of one call.
    count_max: Option<u64>,
    /// Most requests of a minute.
    requests_per_minute: Option<u64>,
    /// Whether it may ask on behalf of people.
    #[serde(default)]
    speaks_for_people: bool,
}

/// How to give a token a new secret.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotationOrder {
    /// How long the present secret is still let in, such as `15m`; at most `1d`, an hour without
    /// it.
    #[serde(default = "an_hour")]
    #[schema(value_type = String)]
    grace: DurationText,
    /// Its last day from now on; without it the one that it has.
    expires: Option<String>,
}

fn an_hour() -> DurationText {
    DurationText(std::time::Duration::from_secs(3_600))
}

/// Which tokens to list.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TokenQuery {
    /// The `next` of the page before.
    after: Option<String>,
    /// At most so many tokens, 1 to 1,000; 100 without it.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

/// Tokens by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenList {
    tokens: Vec<TokenAnswer>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A token, without its secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TokenAnswer {
    /// Its name.
    pub name: String,
    /// `in-force`, `expired` or `revoked`.
    pub state: &'static str,
    /// What it may do.
    pub roles: Vec<String>,
    /// Codes of the series to which it is narrowed; empty: to none.
    pub series: Vec<String>,
    /// Codes of the projects to which it is narrowed; empty: to none.
    pub projects: Vec<String>,
    /// Most numbers of one call, where it is bounded.
    pub count_max: Option<u64>,
    /// Most requests of a minute, where they are bounded.
    pub requests_per_minute: Option<u64>,
    /// Whether it may ask on behalf of people.
    pub speaks_for_people: bool,
    /// From then on it is let in no more.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Until then the secret of before its last rotation is let in.
    #[schema(format = DateTime)]
    pub former_until: Option<String>,
    /// Who created it.
    pub created_by: String,
    /// When.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Who revoked it.
    pub revoked_by: Option<String>,
    /// When.
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
    /// When it was used last, to a minute or so.
    #[schema(format = DateTime)]
    pub last_used_at: Option<String>,
}

/// A token with its secret, which is shown here and never again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NewTokenAnswer {
    /// What to send as `Authorization: Bearer …`.
    pub token: String,
    /// Everything else about it.
    #[serde(flatten)]
    pub about: TokenAnswer,
}

impl TokenAnswer {
    /// The answer for a token as it stands at a moment.
    #[must_use]
    pub fn of(token: StoredToken, now_us: i64) -> Self {
        let TokenRights { roles, series, projects, count_max, expires_at_us, .. } = token.rights;
        let TokenRights { requests_per_minute, speaks_for_people, .. } = token.rights;
        let is_over = |at: Option<i64>| at.is_some_and(|at| at <= now_us);
        TokenAnswer {
            name: token.name,
            state: match token.revoked_at_us {
                Some(_) => "revoked",
                None if is_over(expires_at_us) => "expired",
                None => "in-force",
            },
            roles,
            series,
            projects,
            count_max,
            requests_per_minute,
            speaks_for_people,
            expires_at: expires_at_us.map(instant),
            former_until: token.former_until_us.filter(|at| *at > now_us).map(instant),
            created_by: token.created_by,
            created_at: instant(token.created_at_us),
            revoked_by: token.revoked_by,
            revoked_at: token.revoked_at_us.map(instant),
            last_used_at: token.last_used_at_us.map(instant),
        }
    }
}

/// A token to create with this secret, by what is written and, where somebody asks over HTTP, by
/// which token.
///
/// # Errors
/// The field that says nothing of use.
pub(crate) fn new_token(
    written: WrittenGrant<'_>,
    secret: &Secret,
    created_by: &str,
    shown: Option<ShownToken>,
) -> Result<NewToken, Problem> {
    let granted = written.read(COUNT_MAX)?;
    let rights = TokenRights {
        roles: granted.identity.roles.iter().map(|role| role.name().to_owned()).collect(),
        series: written.series.to_vec(),
        projects: written.projects.to_vec(),
        count_max: written.count_max,
        requests_per_minute: written.requests_per_minute,
        speaks_for_people: written.speaks_for_people,
        expires_at_us: granted.expires_at_us,
    };
    let (name, sha256) = (written.name.to_owned(), secret.sha256());
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

/// An answer with a secret. Like every answer it says that nothing on its way may keep it.
fn secret_answer(app: &App, secret: &Secret, token: StoredToken) -> axum::Json<NewTokenAnswer> {
    let about = TokenAnswer::of(token, app.service.clock.now_us());
    axum::Json(NewTokenAnswer { token: secret.show().to_owned(), about })
}

/// Completes a change. This process applies it before the caller is answered, and so do the others,
/// as far as they confirm it in time.
async fn write<W>(
    app: &App,
    caller: &Caller,
    work: impl FnOnce(SharedLedger) -> W,
) -> Result<StoredToken, Problem>
where
    W: Future<Output = Result<StoredToken, LedgerError>> + Send + 'static,
{
    let (own, tokens) = (app.clone(), app.service.tokens.clone());
    let writing = |work: W| async move {
        let token = work.await.map_err(Problem::of_token_change)?;
        if let Some(tokens) = tokens
            && let Err(error) = tokens.refresh(None).await
        {
            tracing::warn!(%error, "a change of tokens is saved, and not followed here yet");
        }
        until_known(&own).await;
        Ok::<_, Problem>(token)
    };
    app.note(caller, |ledger| writing(work(ledger))).await
}

fn read_name(name: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    let Path(name) = name.map_err(|_| Problem::field("name", "must be the name of a token"))?;
    must_be_storable(&[("name", &Some(name.clone()))])?;
    Ok(name)
}

/// Lists the tokens of the ledger, those that are revoked among them.
#[utoipa::path(
    get,
    path = "",
    tag = "tokens",
    params(TokenQuery),
    responses(
        (status = 200, body = TokenList),
    )
)]
pub(crate) async fn list_tokens(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(TokenQuery { after, limit }): QueryOf<TokenQuery>,
) -> Result<Response, Problem> {
    must_be_storable(&[("after", &after)])?;
    let limit = rows_of_page(limit)?;
    let after = after.unwrap_or_default();
    let looking = app.read(&caller, |ledger| async move { ledger.tokens(&after, limit).await });
    let found = looking.await?;
    let last = found.last().filter(|_| found.len() == limit as usize);
    let next = last.map(|token| token.name.clone());
    let now_us = app.service.clock.now_us();
    let tokens = found.into_iter().map(|token| TokenAnswer::of(token, now_us)).collect();
    json(TokenList { tokens, next }).await
}

/// Creates a token; its secret is in this answer alone.
#[utoipa::path(
    post,
    path = "",
    tag = "tokens",
    request_body = TokenOrder,
    responses(
        (status = 201, body = NewTokenAnswer, headers(("Cache-Control" = String))),
    )
)]
pub(crate) async fn create_token(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(order): Json<TokenOrder>,
) -> Result<Response, Problem> {
    let written = WrittenGrant {
        name: &order.name,
        roles: order.roles.as_deref(),
        series: &order.series,
        projects: &order.projects,
        expires: order.expires.as_deref(),
        count_max: order.count_max,
        requests_per_minute: order.requests_per_minute,
        speaks_for_people: order.speaks_for_people,
    };
    let secret = Secret::draw();
    let new = new_token(written, &secret, &caller.user_id, caller.shown())?;
    let creating = write(&app, &caller, |ledger| async move { ledger.create_token(&new).await });
    let created = creating.await?;
    Ok((StatusCode::CREATED, secret_answer(&app, &secret, created)).into_response())
}

/// Has a token let in no more.
#[utoipa::path(
    post,
    path = "",
    tag = "tokens",
    params(("name" = String, Path)),
    request_body = ReasonOrder,
    responses(
        (status = 200, body = TokenAnswer),
    )
)]
pub(crate) async fn revoke_token(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    Json(order): Json<ReasonOrder>,
) -> Result<axum::Json<TokenAnswer>, Problem> {
    let (name, reason) = (read_name(name)?, check_reason(&order.reason)?);
    let (revoked_by, shown) = (caller.user_id.to_string(), caller.shown());
    let revocation = TokenRevocation { name, revoked_by, reason, shown };
    let revoking =
        write(&app, &caller, |ledger| async move { ledger.revoke_token(&revocation).await });
    let revoked = revoking.await?;
    Ok(axum::Json(TokenAnswer::of(revoked, app.service.clock.now_us())))
}

/// Gives a token a new secret, which is in this answer alone; the present one is let in for a
/// while.
#[utoipa::path(
    post,
    path = "",
    tag = "tokens",
    params(("name" = String, Path)),
    request_body = RotationOrder,
    responses(
        (status = 200, body = NewTokenAnswer, headers(("Cache-Control" = String))),
    )
)]
pub(crate) async fn rotate_token(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    Json(order): Json<RotationOrder>,
) -> Result<Response, Problem> {
    let (name, grace) = (read_name(name)?, check_grace(order.grace)?);
    let expires_at_us = order.expires.as_deref().map(crate::auth::end_of).transpose()?;
    let secret = Secret::draw();
    let (sha256, rotated_by) = (secret.sha256(), caller.user_id.to_string());
    let shown = caller.shown();
    let rotation = TokenRotation { name, sha256, grace, expires_at_us, rotated_by, shown };
    let rotating =
        write(&app, &caller, |ledger| async move { ledger.rotate_token(&rotation).await });
    let rotated = rotating.await?;
    Ok(secret_answer(&app, &secret, rotated).into_response())
}
