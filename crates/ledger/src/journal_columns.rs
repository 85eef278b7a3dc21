//! The columns of the table `journal`: one list. The inserts of both engines, what both read back
//! for seals, and the check of what a database has derive from it. What a row says towards its seal
//! is a form of its own, which no further column changes (`seal`). The names in the lists are the
//! schema's names of the columns. Owns no statement.

use crate::seal::{RowText, path_of};
use crate::{JournalTexts, SealedRow, StandsFor};

/// Calls a macro with a row's own columns, in the order of binding and reading. Each has its name,
/// its type on PostgreSQL, the cast of a value there, its type when read, and the value that a row
/// binds.
macro_rules! own_columns {
    ($with:ident) => {
        $with! {
            counter_id "bigint" "" (i64) |new_row| new_row.value_range.counter_id;
            first_value "bigint" "" (i64) |new_row| new_row.value_range.first;
            last_value "bigint" "" (Option<i64>) NewRow::further_last;
            step "bigint" "" (Option<i64>) NewRow::further_step;
            allocation_id "bytea" "" (&'r [u8]) |new_row| new_row.allocation_id;
            number "text" "" (Option<&'r str>) |row| row.head.as_ref().map(|head| head.number);
            scope "text" "" (Option<&'r str>) |row| row.head.as_ref().map(|head| head.scope);
            mask "text" "" (Option<&'r str>) NewRow::mask;
            outline "text" "" (Option<&'r str>) NewRow::compressed_mask;
            rest "text" "" (Option<&'r str>) |new_row| new_row.head.as_ref()?.rest.as_deref();
            context "text" "" (Option<&'r str>) NewRow::context;
            document_id "text" "" (Option<&'r str>) |new_row| new_row.head.as_ref()?.document_id;
            idempotency_key "text" "" (Option<&'r str>) |row| row.head.as_ref()?.idempotency_key;
            document_day "text" "::date" (Day) |new_row| new_row.document_date;
            digest "bytea" "" (Option<&'r [u8]>) |new_row| new_row.digest.as_deref();
            issued_at_us "bigint" "" (i64) |new_row| new_row.issued_at_us;
            retry_count "integer" "" (Option<i32>) NewRow::retries;
            path "text" "" (Option<&'r str>) NewRow::other_path;
        }
    };
}
pub(crate) use own_columns;

/// A column whose value no other row shares.
pub(crate) struct OwnColumn {
    pub(crate) name: &'static str,
    /// Its type on PostgreSQL as it is bound.
    pub(crate) bound_as: &'static str,
    /// What casts it there to the column's type, if anything.
    pub(crate) cast: &'static str,
}

macro_rules! listed {
    ($($name:ident $bound_as:literal $cast:literal ($read_as:ty) $said:expr;)*) => {
        /// The own columns of a row, in the order of binding.
        pub(crate) const OWN: &[OwnColumn] = &[
            $(OwnColumn { name: stringify!($name), bound_as: $bound_as, cast: $cast }),*
        ];

        /// Their names, each followed by a comma.
        pub(crate) const OWN_NAMES: &str = concat!($(stringify!($name), ", "),*);

        /// All columns that statements write, parted by blanks.
        pub(crate) const WRITTEN: &str = concat!(
            $(stringify!($name), " ",)*
            "batch_id kind_id user_name_id address_name_id"
        );

        /// The own values of a row, as they are read. The type of a day is the engine's.
        pub(crate) struct Stored<'r, Day> {
            $(pub(crate) $name: $read_as),*
        }
    };
}
own_columns!(listed);

/// The columns of a row that point to what it shares with others, in the order in which they are
/// read, before its own.
pub(crate) const SHARED: [&str; 4] = ["batch_id", "kind_id", "user_name_id", "address_name_id"];

/// What a row points to.
pub(crate) struct SharedIds {
    pub(crate) batch_id: Option<i64>,
    pub(crate) kind_id: Option<i32>,
    pub(crate) user_name_id: Option<i32>,
    pub(crate) address_name_id: Option<i32>,
}

/// The columns that are read, parted by commas: the shared ones first.
pub(crate) fn read_columns() -> String {
    let own = OWN.iter().map(|column| column.name);
    SHARED.into_iter().chain(own).collect::<Vec<_>>().join(", ")
}

impl<Day> Stored<'_, Day> {
    /// The row on its way to the seal of its batch, with the civil date of its document.
    pub(crate) fn sealed(
        &self,
        ids: &SharedIds,
        texts: &JournalTexts,
        document_date: Option<&str>,
    ) -> SealedRow {
        let kind = ids.kind_id.and_then(|id| texts.kinds.get(&id));
        let user = ids.user_name_id.and_then(|id| texts.names.get(&id));
        let address = ids.address_name_id.and_then(|id| texts.names.get(&id));
        let last = self.last_value.unwrap_or(self.first_value);
        // An address that is not there is none that was left out.
        let is_whole = ids.address_name_id.is_none() || address.is_some();
        let whole = kind.zip(user).zip(document_date).filter(|_| is_whole);
        let bytes = whole.map(|((kind, user), document_date)| {
            let row = RowText {
                counter_id: self.counter_id,
                first: self.first_value,
                last,
                step: self.step.unwrap_or(1),
                allocation_id: self.allocation_id,
                number: self.number,
                scope: self.scope,
                mask: self.mask,
                compressed_mask: self.outline,
                rest: self.rest,
                context: self.context,
                document_id: self.document_id,
                idempotency_key: self.idempotency_key,
                series_id: kind.series_id,
                version: kind.version,
                type_code: &kind.type_code,
                project: kind.project.as_deref(),
                document_date,
                user_id: user,
                ip_address: address.map(String::as_str),
                digest: self.digest,
                issued_at_us: self.issued_at_us,
                retry_count: self.retry_count.unwrap_or(0),
                path: path_of(self.path, self.number, self.context),
            };
            row.bytes()
        });
        let stands_for = StandsFor::of(self.number, self.context, last);
        let says_more = stands_for.is_some() && self.path.is_some();
        SealedRow {
            batch_id: ids.batch_id.unwrap_or_default(),
            counter_id: self.counter_id,
            first: self.first_value,
            bytes,
            stands_for,
            says_more,
        }
    }
}

/// Calls a macro with the columns of the view `journal_row` that make an entry.
macro_rules! entry_list {
    ($($with:tt)+) => {
        $($with)+! {
            counter_id first_value last_value step allocation_id number scope mask outline rest
            context document_id idempotency_key series_id version type_code project document_date
            user_id ip_address payload_digest issued_at_us retry_count path partition_id epoch
        }
    };
}
pub(crate) use entry_list;

macro_rules! bare {
    ($first:ident $($name:ident)*) => { concat!(stringify!($first) $(, ", ", stringify!($name))*) };
}
pub(crate) use bare;

macro_rules! of_view {
    ($($name:ident)*) => { concat!($("j.", stringify!($name), ", ",)* "c.serial, c.key") };
}
pub(crate) use of_view;

/// The columns of the view `journal_row` that make an entry. Statements name the columns that they
/// read and write: a column that a newer version adds stops no process of this one.
macro_rules! bare_entry_columns {
    () => {
        $crate::journal_columns::entry_list!($crate::journal_columns::bare)
    };
}
pub(crate) use bare_entry_columns;

/// The columns of an entry, of `journal_row` as `j` and its counter as `c`.
macro_rules! entry_columns {
    () => {
        $crate::journal_columns::entry_list!($crate::journal_columns::of_view)
    };
}
pub(crate) use entry_columns;
