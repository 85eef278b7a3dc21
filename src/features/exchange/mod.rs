//! Exchange serials: generation, checks of interface serials, steps of system serials, the chain of
//! a unified serial. One file per resource.
//!
//! Numbers come from the allocator like all others. Whether a call or a step may run is decided
//! only by the ledger, on the serial's own row.

mod chain;
mod checks;
mod generate;
mod scope;
mod steps;

#[cfg(test)]
pub(crate) use chain::ChainPage;
pub(crate) use chain::{__path_show_chain, show_chain};
#[cfg(test)]
pub(crate) use checks::CheckRequest;
pub(crate) use checks::{__path_check_interface_serial, check_interface_serial};
pub(crate) use generate::{
    __path_generate_interface_serial, __path_generate_system_serial,
    __path_generate_unified_serial, generate_interface_serial, generate_system_serial,
    generate_unified_serial,
};
#[cfg(test)]
pub(crate) use generate::{InterfaceRequest, SystemRequest, UnifiedRequest};
pub(crate) use steps::{
    __path_begin_step, __path_fail_step, __path_succeed_step, begin_step, fail_step, succeed_step,
};
#[cfg(test)]
pub(crate) use steps::{BeginRequest, FailRequest, SucceedRequest};

use numbering::{ExchangeKind, ExchangeSerial};
use scope::{must_be_in_scope, read_own};

use crate::ledger::{PartitionState, Principal};
use crate::web::App;
use crate::web::middleware::Caller;
use crate::web::problem::{Problem, Slug};

/// Reads a serial of a body or path.
fn read(field: &str, kind: ExchangeKind, text: &str) -> Result<ExchangeSerial, Problem> {
    ExchangeSerial::parse(kind, text).map_err(|error| Problem::of_exchange(field, &error))
}

/// Checks the unified serial that a call carries, if any.
fn read_unified(text: Option<&str>) -> Result<(), Problem> {
    text.map_or(Ok(()), |text| read("unified_serial", ExchangeKind::Unified, text).map(|_| ()))
}

/// The caller, in the ledger's form.
fn principal(caller: &Caller, key: Option<String>) -> Principal {
    Principal { user_id: caller.user_id.to_string(), ip_address: caller.address(), key }
}

/// Refuses while the ledger is known to have gone back (F9): it may have forgotten which serials
/// were seen and which steps have run, and would let them run again.
fn must_remember(app: &App) -> Result<(), Problem> {
    let membership = &app.service.context.membership;
    let news = membership.news();
    let held = |state: PartitionState| state == PartitionState::Held;
    if membership.ledger_went_back() || news.borrow().iter().any(|row| held(row.state)) {
        let detail = "the ledger went back in time and may have forgotten serials that it saw; an \
                      operator has to release it";
        return Err(Problem::new(Slug::PartitionHeld, detail).retry_soon());
    }
    Ok(())
}
