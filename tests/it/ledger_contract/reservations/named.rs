//! Reservations by the text of their number, as far as a caller sees them.

use numerator::ledger::{
    CodesWithin, NamedEnd, NamedReservation, ReservedFilter, RowVisibility, TakeRequest,
};

use crate::ledger_contract::imports::{series, spec_of};
use crate::ledger_contract::world::{World, order_of, record};

ledger_contract! {
    reservations {
        a_limit_counts_only_reservations_that_the_caller_sees
    }
}

/// How many scopes have the text; more than are read with one statement.
const SCOPES: usize = 105;

fn own(user: &str) -> RowVisibility {
    RowVisibility::Part { within: None, own: Some(user.into()) }
}

fn of_project(project: &str) -> RowVisibility {
    let within = CodesWithin { series: None, projects: Some(vec![project.to_owned()]) };
    RowVisibility::Part { within: Some(within), own: None }
}

/// At most one with the text that all have.
fn one(shown: RowVisibility) -> ReservedFilter {
    let number = "same-001".to_owned();
    ReservedFilter { number, shown, limit: 1, ..ReservedFilter::default() }
}

/// The documents of the live ones.
async fn live(world: &World, filter: ReservedFilter) -> Vec<String> {
    let found = world.ledger.reservations().named(&filter).await.unwrap();
    let document = |named: NamedReservation| named.reservation.entry.record.document_id.clone();
    found.into_iter().filter_map(document).collect()
}

/// The documents of those that have ended.
async fn ended(world: &World, filter: ReservedFilter) -> Vec<String> {
    let found = world.ledger.reservations().ended_named(&filter).await.unwrap();
    found.into_iter().filter_map(|named: NamedEnd| named.ended.document_id).collect()
}

pub(in crate::ledger_contract) async fn a_limit_counts_only_reservations_that_the_caller_sees(
    world: World,
) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let (first, last) = ("d0".to_owned(), format!("d{}", SCOPES - 1));
    let mut held = Vec::new();
    for place in 0..SCOPES {
        let mut record = record(&format!("d{place}"));
        record.series_id = series.series_id;
        (record.scope, record.mask) = (format!("scope-{place}"), "same-{0:3}".into());
        (record.user_id, record.project) = (format!("u{place}"), Some(format!("C{place}")));
        record.counter_keys = vec![format!("k{place}")];
        let specs = vec![spec_of(&series, &format!("k{place}"))];
        held.push(world.reserve(at, TakeRequest { specs, ..order_of(record) }).await);
    }
    for (user, project, document) in [("u0", "C0", &first), ("u104", "C104", &last)] {
        assert_eq!(live(&world, one(own(user))).await, std::slice::from_ref(document));
        assert_eq!(live(&world, one(of_project(project))).await, std::slice::from_ref(document));
        let everything = one(RowVisibility::Everything);
        let of = ReservedFilter { project: Some(project.into()), ..everything.clone() };
        assert_eq!(live(&world, of).await, std::slice::from_ref(document));
        let of = ReservedFilter { document_id: Some(document.clone()), ..everything.clone() };
        assert_eq!(live(&world, of).await, std::slice::from_ref(document));
        let elsewhere = ReservedFilter { series_id: Some(-1), ..everything };
        assert_eq!(live(&world, elsewhere).await, [""; 0]);
    }
    for reservation in &held {
        world.cancel(reservation).await;
    }
    world.sweep().await;
    assert_eq!(ended(&world, one(own("u0"))).await, [first]);
    assert_eq!(ended(&world, one(of_project("C0"))).await, [""; 0], "no row says its project");
    assert_eq!(ended(&world, one(RowVisibility::Everything)).await.len(), 1);
    let elsewhere = ReservedFilter { series_id: Some(-1), ..one(RowVisibility::Everything) };
    assert_eq!(ended(&world, elsewhere).await, [""; 0]);
}
