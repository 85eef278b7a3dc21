//! What `verify` sees beyond values that are missing or occur twice. The damage is done with plain
//! SQL, or by entries that no allocator would make.

use std::time::Duration;

use numerator::engine::reconciler::{Stores, VerifyReport, verify};
use numerator::ledger::{Acknowledgement, Closing, CounterSpec, Entry};
use numerator::redis::Keys;

use super::world::{World, entry, range, spec, stepped, with};

impl World {
    async fn report(&self) -> VerifyReport {
        let (ledger, clock) = (self.ledger.clone(), self.clock.clone());
        let stores = Stores { ledger, redis: None, keys: Keys::new("nbr"), clock };
        verify(&stores, Duration::ZERO).await.unwrap()
    }

    /// The report of `verify` on a ledger in which something is wrong.
    async fn complaint(&self) -> String {
        let report = self.report().await;
        assert!(!report.is_clean(), "verify saw nothing:\n{report}");
        report.to_string()
    }
}

fn acknowledgement(entry: &Entry) -> Acknowledgement {
    let allocation_id = entry.record.allocation_id;
    Acknowledgement { allocation_id, user_id: "me".into(), reason: "compared by hand".into() }
}

/// The entry with another text in the column `mask`, and the number that it renders.
fn masked(entry: Entry, mask: &str) -> Entry {
    let mut entry = with(entry, |record| record.mask = mask.into());
    let first = entry.taken[0].range.first;
    entry.number = numbering::PartialNumber::parse(mask).unwrap().fill(&[first]).unwrap();
    entry
}

pub(super) async fn a_number_that_its_mask_does_not_render_is_found(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    world.append(&[entry(open, id, 1), range(open, id, 2, 5), entry(open, id, 6)]).await;
    assert!(world.report().await.is_clean());
    world.sql("update journal set number = 'forged' where first_value = 2").await;
    let said = world.complaint().await;
    assert!(said.contains("does not read as its mask: forged of counter"), "{said}");
    world.sql("update journal set mask = '{' where first_value = 6").await;
    let said = world.complaint().await;
    assert_eq!(said.matches("does not read as its mask").count(), 2, "{said}");
}

pub(super) async fn a_row_without_a_counter_is_found(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    for key in ["a", "b", "c"] {
        let (id, ..) = world.seed(open, &spec(key)).await;
        world.append(&[range(open, id, 1, 3)]).await;
    }
    for key in ["b", "c"] {
        world
            .sql(if key == "b" {
                "delete from counter where key = 'b'"
            } else {
                "delete from counter where key = 'c'"
            })
            .await;
        let said = world.complaint().await;
        assert!(said.contains("no such counter: 2, from 1 on"), "{said}");
    }
    assert!(world.complaint().await.contains("no such counter: 3, from 1 on"));
}

pub(super) async fn a_rejected_record_of_no_counter_is_found(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    world.append(&[range(open, id, 1, 3)]).await;
    world.ledger.reject(&entry(open, id, 4), "it has a counter").await.unwrap();
    let said = world.complaint().await;
    assert!(said.contains("put aside: 1 issued records"), "{said}");
    let aside = world.ledger.put_aside(0, 10).await.unwrap().remove(0);
    let explained = acknowledgement(&aside.entry.unwrap());
    assert_eq!(world.ledger.audits().acknowledge(&explained).await.unwrap(), 1);
    let report = world.report().await;
    assert!(report.is_clean(), "its value is accounted for:\n{report}");
    let nobodys = with(entry(open, 999, 1), |record| record.counter_keys = vec!["gone".into()]);
    world.ledger.reject(&nobodys, "of nobody").await.unwrap();
    let said = world.complaint().await;
    assert!(said.contains("rejected of no counter"), "{said}");
    let explained = acknowledgement(&nobodys);
    assert_eq!(world.ledger.audits().acknowledge(&explained).await.unwrap(), 1);
    assert!(world.report().await.is_clean());
}

pub(super) async fn rows_deleted_before_their_epoch_was_settled_are_found(world: World) {
    let old = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(old, &spec("k")).await;
    // 1 was taken by a flight that was not handed out: so the epoch has to be searched.
    world.append(&[range(old, id, 2, 5), entry(old, id, 6), range(old, id, 7, 10)]).await;
    world.redis_epoch(Closing::Exact).await;
    world.sql("delete from journal where first_value > 5").await;
    let said = world.complaint().await;
    assert!(said.contains("5 values of epoch 1 are gone"), "{said}");
    assert!(!world.report().await.is_clean(), "and they stay gone");
}

pub(super) async fn equal_numbers_inside_ranges_are_found(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let wide = |key| CounterSpec { headroom: 1_000, ..spec(key) };
    let (a, ..) = world.seed(open, &wide("a")).await;
    let (b, ..) = world.seed(open, &wide("b")).await;
    let (c, ..) = world.seed(open, &wide("c")).await;
    let twos = masked(stepped(open, a, 2, 10, 2), "X-{0:3}");
    let threes = masked(stepped(open, b, 3, 9, 3), "X-{0:3}");
    let single = masked(entry(open, c, 8), "X-{0:3}");
    let elsewhere = with(masked(range(open, c, 1, 7), "X-{0:3}"), |record| {
        record.scope = "project=p".into();
    });
    world.append(std::slice::from_ref(&twos)).await;
    let report = world.report().await;
    assert!(report.is_clean(), "{report}");
    world.append(&[threes.clone(), elsewhere]).await;
    let said = world.complaint().await;
    // Neither range begins with the number that both hold.
    assert!(said.contains("duplicate: X-006 of allocation"), "{said}");
    assert_eq!(said.matches("duplicate:").count(), 1, "{said}");
    let ids = [&twos, &threes].map(|entry| entry.record.allocation_id.to_string());
    assert!(ids.iter().all(|id| said.contains(id)), "{said}");
    world.append(std::slice::from_ref(&single)).await;
    let said = world.complaint().await;
    assert!(said.contains("duplicate: X-008 of allocation"), "{said}");
    assert_eq!(said.matches("duplicate:").count(), 2, "{said}");
}

pub(super) async fn an_explained_collision_is_told_apart_from_the_next_one(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    world.append(&[range(open, id, 1, 3)]).await;
    let second = [entry(open, id, 2), entry(open, id, 3)];
    let counts = async || {
        let totals = world.ledger.register().totals().await.unwrap();
        assert_eq!(world.ledger.register().collisions_count().await.unwrap(), totals.collisions);
        assert_eq!(world.ledger.audits().sizes().await.unwrap(), totals);
        (totals.collisions, totals.acknowledged)
    };
    world.ledger.append(world.node, &second[..1]).await.unwrap();
    let said = world.complaint().await;
    assert!(said.contains(&second[0].record.allocation_id.to_string()), "{said}");
    assert_eq!(counts().await, (1, 0));
    let explained = acknowledgement(&second[0]);
    assert_eq!(world.ledger.audits().acknowledge(&explained).await.unwrap(), 1);
    assert_eq!(world.ledger.audits().acknowledge(&explained).await.unwrap(), 0, "it is already");
    let report = world.report().await;
    assert!(report.is_clean(), "{report}");
    assert_eq!(counts().await, (0, 1));
    let event = world.ledger.events().list(1).await.unwrap().remove(0);
    assert_eq!((&*event.kind, &event.detail["by"]), ("acknowledged", &"me".into()));
    assert_eq!(event.detail["reason"], "compared by hand");
    world.ledger.append(world.node, &second[1..]).await.unwrap();
    let said = world.complaint().await;
    assert_eq!(said.matches("duplicate:").count(), 1, "{said}");
    assert_eq!(counts().await, (1, 1));
}

/// What changes with every write to a counter, or even a lock of its row.
async fn traces(world: &World) -> String {
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    let traces = "select string_agg(xmin::text || ':' || xmax::text, ',' order by counter_id) \
         from counter";
    sqlx::query_scalar(traces).fetch_one(&pool).await.unwrap()
}

pub(super) async fn verify_writes_nothing_where_nothing_changed(world: World) {
    let old = world.redis_epoch(Closing::Exact).await;
    for key in ["a", "b"] {
        let (id, ..) = world.seed(old, &spec(key)).await;
        world.append(&[range(old, id, 2, 5)]).await;
    }
    let new = world.redis_epoch(Closing::Exact).await;
    world.seed(new, &spec("a")).await;
    assert!(world.report().await.is_clean(), "it settles what is left");
    if world.ledger.engine() == "sqlite" {
        let pool = sqlx::SqlitePool::connect(&world.url).await.unwrap();
        let mut conn = pool.acquire().await.unwrap();
        let mut versions = Vec::new();
        for _ in 0..2 {
            let version: i64 =
                sqlx::query_scalar("pragma data_version").fetch_one(&mut *conn).await.unwrap();
            versions.push(version);
            assert!(world.report().await.is_clean());
        }
        let last: i64 =
            sqlx::query_scalar("pragma data_version").fetch_one(&mut *conn).await.unwrap();
        assert_eq!(versions, [last, last]);
    } else {
        let before = traces(&world).await;
        assert!(world.report().await.is_clean());
        assert_eq!(traces(&world).await, before);
    }
}

pub(super) async fn sizes_of_long_tables_are_estimated(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    world.append(&[range(open, id, 1, 3)]).await;
    let sizes = world.ledger.audits().sizes().await.unwrap();
    assert_eq!((sizes.journal, sizes.gaps, sizes.estimated), (1, 0, false));
    world
        .sql(
            "with recursive n (v) as (select 11 union all select v + 1 from n where v < 20010) \
             insert into gap (counter_id, first_value, last_value, step, reason, epoch, \
             noted_at_us) select 1, v, v, 1, 'discarded', 1, 0 from n; analyze gap",
        )
        .await;
    let sizes = world.ledger.audits().sizes().await.unwrap();
    assert_eq!((sizes.journal, sizes.gaps, sizes.estimated), (1, 20_000, true));
}
