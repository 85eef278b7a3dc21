//! Numbers in the place of void ones, over HTTP and by `numerator next --replaces`.

use crate::engine::allocator::{Issued, Request};
use crate::features::lifecycle::error::LifecycleError;
use crate::features::lifecycle::naming::{By, NumberName};
use crate::features::lifecycle::replacing::{VoidPlace, check, link, take_for_command};
use crate::ledger::LedgerError;
use crate::startup::Service;
use crate::web::App;
use crate::web::finish;
use crate::web::journal_wait::TryOf;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

/// Takes the number that a caller requests in the place of a void one. A client that leaves
/// cancels nothing: between the number and its link the request goes on.
pub(crate) async fn issue_replacing(
    app: &App,
    caller: &Caller,
    request: Request,
    number: &str,
) -> Result<Issued, Problem> {
    let name = NumberName::of("replaces", number)?;
    let (app, caller) = (app.clone(), caller.clone());
    finish(async move {
        let place = find_place(&app, &caller, &request, name).await?;
        let request = place.request(request);
        let allocator = app.service.allocator.clone();
        if let Some(issued) = place.answered(&allocator, &request, caller.by).await? {
            caller.served_by.note(issued.entry.path);
            return Ok::<_, Problem>(issued);
        }
        let issued = app.issue(&caller, request).await?;
        let (by, taken) = (By::of(&caller), issued.clone());
        let linking =
            app.note(&caller, |ledger| async move { link(&ledger, &place, &by, &taken).await });
        // A refusal for want of a place leaves the link open, like a ledger that does not answer.
        linking
            .await
            .map_err(|problem| problem.maybe_taken().naming(issued.entry.number.clone()))?;
        Ok(issued)
    })
    .await
}

/// The void number that is meant: where several numbers have the text, that of the request's
/// project, and then that of its document.
async fn find_place(
    app: &App,
    caller: &Caller,
    request: &Request,
    name: NumberName,
) -> Result<VoidPlace, Problem> {
    let project = request.inputs.project.clone();
    let document_id = request.document_id.clone();
    let narrower = [
        name.clone(),
        NumberName { project: project.clone(), ..name.clone() },
        NumberName { project, document_id, ..name },
    ];
    let by = By::of(caller).through(app.service.context.membership.node());
    let catalog = app.service.allocator.catalog();
    let finding = app.read(caller, |ledger| async move {
        let [any, of_project, of_document] = &narrower;
        let is_several = |found: &Result<_, LifecycleError>| match found {
            Err(LifecycleError::Several { .. }) => true,
            // Not all ranges were searched.
            Err(LifecycleError::Ledger(error)) => matches!(error, LedgerError::Unsearched(_)),
            _ => false,
        };
        let mut found = check(&ledger, &catalog, (any, &by), TryOf::First).await;
        for name in [of_project, of_document] {
            if is_several(&found) {
                found = check(&ledger, &catalog, (name, &by), TryOf::First).await;
            }
        }
        found
    });
    let found = finding.await;
    found.map_err(|problem| match problem.wrong_field() {
        Some("number") => problem.of_field("replaces"),
        _ => problem,
    })
}

/// The same for a command: for the document of the void number unless another one is named.
///
/// # Errors
/// The problem that HTTP would answer.
pub(super) async fn issue_by_command(
    service: &Service,
    request: Request,
    number: &str,
) -> Result<Issued, Problem> {
    let name = NumberName::of("replaces", number)?;
    let node = service.context.membership.node();
    let by = By::command(request.user_id.clone()).through(node);
    let catalog = service.allocator.catalog();
    let place = check(&service.ledger, &catalog, (&name, &by), TryOf::First).await?;
    let document_id = request.document_id.clone().or_else(|| place.document_id.clone());
    let request = Request { document_id, ..request };
    take_for_command(service, request, place, by).await
}
