//! `/api/v1/document-numbering/tokens` and below: the tokens of callers, in the ledger. A secret is
//! only in the answer that creates it, and in no log, event or list.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::Secret;
use crate::features::series::saving::until_known;
use crate::features::tokens::answer::{NewTokenAnswer, TokenAnswer};
use crate::features::tokens::order::{RotationRequest, TokenRequest, check_grace, new_token};
use crate::ledger::{LedgerError, SharedLedger, StoredToken, TokenRevocation, TokenRotation};
use crate::web::App;
use crate::web::admission::json;
use crate::web::body::must_be_storable;
use crate::web::body::{Json, QueryOf};
use crate::web::middleware::Caller;
use crate::web::paging::limit;
use crate::web::paging::rows_of_page;
use crate::web::problem::Problem;
use crate::web::reason::ReasonRequest;
use crate::web::reason::check_reason;

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

/// An answer with a secret. Like every answer it forbids caches to keep it.
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
    get, path = "", tag = "tokens",
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
    let looking =
        app.read(&caller, |ledger| async move { ledger.tokens().list(&after, limit).await });
    let found = looking.await?;
    let last = found.last().filter(|_| found.len() == limit as usize);
    let next = last.map(|token| token.name.clone());
    let now_us = app.service.clock.now_us();
    let tokens = found.into_iter().map(|token| TokenAnswer::of(token, now_us)).collect();
    json(TokenList { tokens, next }).await
}

/// Creates a token; its secret is in this answer alone.
#[utoipa::path(
    post, path = "", tag = "tokens",
    request_body = TokenRequest,
    responses(
        (status = 201, body = NewTokenAnswer, headers(("Cache-Control" = String))),
    )
)]
pub(crate) async fn create_token(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(order): Json<TokenRequest>,
) -> Result<Response, Problem> {
    let secret = Secret::draw();
    let new = new_token(order, &secret, &caller.user_id, caller.shown())?;
    let creating = write(&app, &caller, |ledger| async move { ledger.tokens().create(&new).await });
    let created = creating.await?;
    Ok((StatusCode::CREATED, secret_answer(&app, &secret, created)).into_response())
}

/// Revokes a token.
#[utoipa::path(
    post, path = "", tag = "tokens",
    params(("name" = String, Path)),
    request_body = ReasonRequest,
    responses(
        (status = 200, body = TokenAnswer),
    )
)]
pub(crate) async fn revoke_token(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    Json(order): Json<ReasonRequest>,
) -> Result<axum::Json<TokenAnswer>, Problem> {
    let (name, reason) = (read_name(name)?, check_reason(&order.reason)?);
    let (revoked_by, shown) = (caller.user_id.to_string(), caller.shown());
    let revocation = TokenRevocation { name, revoked_by, reason, shown };
    let revoking =
        write(&app, &caller, |ledger| async move { ledger.tokens().revoke(&revocation).await });
    let revoked = revoking.await?;
    Ok(axum::Json(TokenAnswer::of(revoked, app.service.clock.now_us())))
}

/// Gives a token a new secret, which is in this answer alone; the present one is accepted for a
/// while.
#[utoipa::path(
    post, path = "", tag = "tokens",
    params(("name" = String, Path)),
    request_body = RotationRequest,
    responses(
        (status = 200, body = NewTokenAnswer, headers(("Cache-Control" = String))),
    )
)]
pub(crate) async fn rotate_token(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    Json(order): Json<RotationRequest>,
) -> Result<Response, Problem> {
    let (name, grace) = (read_name(name)?, check_grace(order.grace)?);
    let expires_at_us = order.expires.as_deref().map(crate::auth::end_of).transpose()?;
    let secret = Secret::draw();
    let (sha256, rotated_by) = (secret.sha256(), caller.user_id.to_string());
    let shown = caller.shown();
    let rotation = TokenRotation { name, sha256, grace, expires_at_us, rotated_by, shown };
    let rotating =
        write(&app, &caller, |ledger| async move { ledger.tokens().rotate(&rotation).await });
    let rotated = rotating.await?;
    Ok(secret_answer(&app, &secret, rotated).into_response())
}
