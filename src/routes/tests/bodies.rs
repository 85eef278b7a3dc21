//! Every body and every query that a route reads states its form.

use numbering::Notation;

use crate::features::{
    approvals, assignments, exchange, lifecycle, numbers, operations, reference, register,
    reservations, series, statement, tokens,
};
use crate::shape::{every_field_has_its_form, every_query_is_told};
use crate::web::body::BODY_FORMS;

/// Every field of every body states its form, and so does each in a query that is not text.
#[test]
fn every_field_of_a_body_says_how_it_is_written() {
    macro_rules! bodies {
        ($($of:ty),* $(,)?) => {
            [$(every_field_has_its_form::<$of>(BODY_FORMS, Notation::Json)),*]
        };
    }
    macro_rules! queries {
        ($($of:ty),* $(,)?) => { [$(every_query_is_told::<$of>(BODY_FORMS)),*] };
    }
    let fields = bodies![
        numbers::request::NumberRequest,
        numbers::request::DocumentRequest,
        numbers::request::BatchRequest,
        register::revisions::NewRevision,
        assignments::routes::AssignRequest,
        lifecycle::routes::VoidRequest,
        lifecycle::routes::CorrectRequest,
        numbers::request::ReservationRequest,
        numbers::request::RegisterRequest,
        reservations::routes::ConfirmRequest,
        reservations::routes::CancelRequest,
        reservations::routes::HandBackRequest,
        reservations::routes::UsedRequest,
        series::request::OrderBeside,
        crate::web::reason::ReasonRequest,
        series::request::RollbackRequest,
        approvals::routes::ResetRequest,
        approvals::routes::ChronologyRequest,
        approvals::routes::ApprovalRequest,
        reference::changes::ReferenceRequest,
        tokens::order::TokenRequest,
        tokens::order::RotationRequest,
        exchange::UnifiedRequest,
        exchange::SystemRequest,
        exchange::InterfaceRequest,
        exchange::CheckRequest,
        exchange::BeginRequest,
        exchange::SucceedRequest,
        exchange::FailRequest,
    ];
    assert!(fields.iter().all(|fields| *fields > 0) && fields.iter().sum::<usize>() > 90);
    let fields = queries![
        approvals::routes::ChangeQuery,
        series::changes::SaveQuery,
        series::changes::RemovalQuery,
        series::diff::DiffQuery,
        series::routes::ConfigQuery,
        series::routes::VersionQuery,
        register::counters::CounterQuery,
        register::documents::PageQuery,
        operations::event_query::EventQuery,
        reservations::listing::ReservationsQuery,
        reference::routes::TableQuery,
        reference::routes::RowQuery,
        reference::routes::MembershipQuery,
        reference::changes::TableChangeQuery,
        register::query::NumberQuery,
        exchange::ChainPage,
        statement::question::StatementQuery,
        tokens::routes::TokenQuery,
    ];
    assert!(fields.iter().all(|fields| *fields > 0));
}

/// Every body and every query that a handler reads is in the list above.
#[test]
fn every_body_and_query_is_looked_at() {
    let listed = include_str!("bodies.rs");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/features");
    let mut open = vec![folder];
    let mut seen = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            for kind in ["Json<", "QueryOf<"] {
                let kind = format!("): {kind}");
                let read = text.split(&*kind).skip(1);
                for name in read.filter_map(|rest| rest.split('>').next()) {
                    let name = if name == "ConfigRequest" { "OrderBeside" } else { name };
                    let (one, other) = (format!("::{name},"), format!("        {name},"));
                    assert!(listed.contains(&one) || listed.contains(&other), "{path:?}: {name}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 30, "only {seen} were seen");
}
