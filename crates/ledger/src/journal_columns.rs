//! The columns of a row of the journal: one list. The inserts of both engines, what both read back
//! for seals, the check of what a database has, the form of seals, the rows that look-ups and
//! archives read, and the columns of archive files derive from it. Names are those of the schema.
//! Owns no statement.
//!
//! A further column of the table is one more entry at the end of the list, of the kind `later`.

/// Calls a macro with the columns of a row, in the order in which they are bound, read and sealed.
///
/// An entry is a column of the view `journal_row`: its documentation, its kind, its name, and its
/// type as a row is read. The kind is `sealed` for the columns of the first form of seals; `digest`
/// for the one of them that the view shows in hexadecimal; `later` for a column that was added
/// since, whose type is an `Option`. Rows in which it is null are sealed as they were before it was
/// added.
///
/// In braces is the column of the table `journal` from which the view takes it, if there is one:
/// its name, its type on PostgreSQL, the cast of a value there, its type when read, and the value
/// that a row binds. The view takes the others from what a row shares with other rows.
macro_rules! journal_columns {
    ([$($arg:tt)*] $($with:tt)+) => {
        $($with)+! { [$($arg)*]
            /// Its counter.
            sealed counter_id: i64 {
                counter_id "bigint" "" (i64) |new_row| new_row.value_range.counter_id
            }
            /// First value.
            sealed first_value: i64 {
                first_value "bigint" "" (i64) |new_row| new_row.value_range.first
            }
            /// Last value.
            sealed last_value: i64 { last_value "bigint" "" (Option<i64>) NewRow::further_last }
            /// Distance between two values.
            sealed step: i64 { step "bigint" "" (Option<i64>) NewRow::further_step }
            /// The allocation.
            sealed allocation_id: Vec<u8> {
                allocation_id "bytea" "" (&'r [u8]) |new_row| new_row.allocation_id
            }
            /// The number; of a row of a further serial none.
            sealed number: Option<String> {
                number "text" "" (Option<&'r str>) |row| row.head.as_ref().map(|head| head.number)
            }
            /// Its scope.
            sealed scope: Option<String> {
                scope "text" "" (Option<&'r str>) |row| row.head.as_ref().map(|head| head.scope)
            }
            /// Its partially rendered text,
            sealed mask: Option<String> { mask "text" "" (Option<&'r str>) NewRow::mask }
            /// or the compressed form of that.
            sealed outline: Option<String> {
                outline "text" "" (Option<&'r str>) NewRow::compressed_mask
            }
            /// Its further serials, JSON.
            sealed rest: Option<String> {
                rest "text" "" (Option<&'r str>) |new_row| new_row.head.as_ref()?.rest.as_deref()
            }
            /// The variables, JSON.
            sealed context: Option<String> { context "text" "" (Option<&'r str>) NewRow::context }
            /// The document.
            sealed document_id: Option<String> {
                document_id "text" "" (Option<&'r str>) |row| row.head.as_ref()?.document_id
            }
            /// The caller's key.
            sealed idempotency_key: Option<String> {
                idempotency_key "text" "" (Option<&'r str>)
                    |row| row.head.as_ref()?.record.idempotency_key.as_deref()
            }
            /// The series.
            sealed series_id: i64 {}
            /// Its version.
            sealed version: i32 {}
            /// The requested document type.
            sealed type_code: String {}
            /// The requested project.
            sealed project: Option<String> {}
            /// Civil date of the document.
            sealed document_date: String {
                document_day "text" "::date" (Day) |new_row| new_row.document_date
            }
            /// The user who requested it.
            sealed user_id: String {}
            /// The caller's address.
            sealed ip_address: Option<String> {}
            /// First half of a SHA-256 of the request.
            digest payload_digest: Option<Vec<u8>> {
                digest "bytea" "" (Option<&'r [u8]>) |new_row| new_row.digest.as_deref()
            }
            /// When the request was accepted.
            sealed issued_at_us: i64 { issued_at_us "bigint" "" (i64) |row| row.issued_at_us }
            /// How often it was tried again.
            sealed retry_count: i32 { retry_count "integer" "" (Option<i32>) NewRow::retries }
            /// The path that took it: `redis`, `database`, `imported`, `registered`.
            sealed path: String { path "text" "" (Option<&'r str>) NewRow::other_path }
        }
    };
}
pub(crate) use journal_columns;

/// Calls a macro with a row's own columns, those in braces in [`journal_columns`].
macro_rules! own_columns {
    ($($with:tt)+) => {
        $crate::journal_columns::journal_columns! {
            [$($with)+] $crate::journal_columns::only_own
        }
    };
}
pub(crate) use own_columns;

macro_rules! only_own {
    ([$($with:tt)+] $($(#[$about:meta])* $kind:ident $name:ident: $type:ty { $(
        $own:ident $bound_as:literal $cast:literal ($read_as:ty) $said:expr
    )? })*) => {
        $($with)+! { $($($own $bound_as $cast ($read_as) $said;)?)* }
    };
}
pub(crate) use only_own;

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

macro_rules! bare {
    ([] $($(#[$about:meta])* $kind:ident $name:ident: $type:ty { $($own:tt)* })*) => {
        concat!(
            $(stringify!($name), ", ",)*
            "batch_id, partition_id, epoch, node_id, journaled_at_us"
        )
    };
}
pub(crate) use bare;

macro_rules! of_view {
    ([] $($(#[$about:meta])* $kind:ident $name:ident: $type:ty { $($own:tt)* })*) => {
        concat!(
            $("j.", stringify!($name), ", ",)*
            "j.batch_id, j.partition_id, j.epoch, j.node_id, j.journaled_at_us, c.serial, c.key"
        )
    };
}
pub(crate) use of_view;

/// The columns of the view `journal_row`, with those of the row's batch. Statements name the
/// columns that they read and write: a column that a newer version adds stops no process of this
/// one.
macro_rules! bare_entry_columns {
    () => {
        $crate::journal_columns::journal_columns!([] $crate::journal_columns::bare)
    };
}
pub(crate) use bare_entry_columns;

/// The same of `journal_row` as `j`, with those of its counter as `c`: what
/// [`crate::ArchivedRow::read`] reads.
macro_rules! entry_columns {
    () => {
        $crate::journal_columns::journal_columns!([] $crate::journal_columns::of_view)
    };
}
pub(crate) use entry_columns;
