//! The content of a row of the journal, and its bytes in the seal of its batch. The form is part of
//! the record and is described in `docs/record.md`: a change of it breaks every earlier seal.

use crate::journal_columns::{SharedIds, Stored, journal_columns, own_columns};
use crate::new_row::NewRow;
use crate::{JournalTexts, SealedRow, StandsFor};

/// The path of a segment, which represents archived rows, in `journal_row`.
pub(crate) const ARCHIVED: &str = "archived";

/// Room for a row of usual size.
const BYTES_USUAL: usize = 320;

/// A type of the columns of a row that owns its values.
pub(crate) trait ColumnType {
    /// The same value, borrowed.
    type Borrowed<'r>: SealedValue
    where
        Self: 'r;

    /// Borrows it.
    fn borrowed(&self) -> Self::Borrowed<'_>;
}

/// A value as it is sealed: an integer in 8 bytes, the highest first; text and bytes after their
/// length in 4; an optional value after a 0, or a 1 and then the value.
pub(crate) trait SealedValue: Copy + std::fmt::Debug {
    /// Adds its bytes.
    fn write(self, to: &mut Vec<u8>);

    /// Whether it is a text with the character NUL.
    fn has_nul(self) -> bool {
        false
    }
}

/// Implements [`ColumnType`] for types whose borrowed form the expression makes.
macro_rules! column_types {
    ($($type:ty, $borrowed:ty, $borrow:expr;)*) => {
        $(impl ColumnType for $type {
            type Borrowed<'r> = $borrowed;

            fn borrowed(&self) -> Self::Borrowed<'_> {
                let borrow: fn(&Self) -> Self::Borrowed<'_> = $borrow;
                borrow(self)
            }
        })*
    };
}
column_types! {
    i64, i64, |value| *value;
    i32, i32, |value| *value;
    String, &'r str, |text| text;
    Vec<u8>, &'r [u8], |bytes| bytes;
    Option<String>, Option<&'r str>, |text| text.as_deref();
    Option<Vec<u8>>, Option<&'r [u8]>, |bytes| bytes.as_deref();
}

impl SealedValue for i64 {
    fn write(self, to: &mut Vec<u8>) {
        to.extend(self.to_be_bytes());
    }
}

impl SealedValue for i32 {
    fn write(self, to: &mut Vec<u8>) {
        i64::from(self).write(to);
    }
}

impl SealedValue for &[u8] {
    fn write(self, to: &mut Vec<u8>) {
        let length = u32::try_from(self.len()).expect("a row has no text of 4 GiB");
        to.extend(length.to_be_bytes());
        to.extend(self);
    }
}

impl SealedValue for &str {
    fn write(self, to: &mut Vec<u8>) {
        self.as_bytes().write(to);
    }

    fn has_nul(self) -> bool {
        self.contains('\0')
    }
}

impl<T: SealedValue> SealedValue for Option<T> {
    fn write(self, to: &mut Vec<u8>) {
        to.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.write(to);
        }
    }

    fn has_nul(self) -> bool {
        self.is_some_and(T::has_nul)
    }
}

/// Adds a column of a row. One that was added since the first form follows the row where it is not
/// null: the byte 255, with which no counter's id and so no row begins, its name and its value.
macro_rules! write_column {
    (later $name:ident $row:ident $to:ident) => {
        if let Some(value) = $row.$name {
            $to.push(255);
            stringify!($name).write($to);
            value.write($to);
        }
    };
    ($kind:ident $name:ident $row:ident $to:ident) => {
        $row.$name.write($to)
    };
}

/// A column of the view, from the own values of a row and what it shares with others.
macro_rules! whole_value {
    (last_value { $($own:tt)* } $row:ident $shared:ident) => {
        $row.last_value.unwrap_or($row.first_value)
    };
    (step { $($own:tt)* } $row:ident $shared:ident) => {
        $row.step.unwrap_or(1)
    };
    (document_date { $($own:tt)* } $row:ident $shared:ident) => {
        $shared.document_date
    };
    (payload_digest { $($own:tt)* } $row:ident $shared:ident) => {
        $row.digest
    };
    (retry_count { $($own:tt)* } $row:ident $shared:ident) => {
        $row.retry_count.unwrap_or(0)
    };
    (path { $($own:tt)* } $row:ident $shared:ident) => {
        path_of($row.path, $row.number, $row.context)
    };
    ($name:ident {} $row:ident $shared:ident) => {
        $shared.$name
    };
    ($name:ident { $($own:tt)+ } $row:ident $shared:ident) => {
        $row.$name
    };
}

macro_rules! row_text {
    ([] $($(#[$about:meta])* $kind:ident $name:ident: $type:ty { $($own:tt)* })*) => {
        /// The content of a row of the journal, as `journal_row` shows it, without its batch's
        /// part.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct RowText<'r> {
            $(pub(crate) $name: <$type as ColumnType>::Borrowed<'r>,)*
        }

        impl<'r> RowText<'r> {
            fn whole<Day>(row: &Stored<'r, Day>, shared: &RowShared<'r>) -> Self {
                RowText { $($name: whole_value!($name { $($own)* } row shared),)* }
            }

            /// Adds its bytes: those of its columns in their order.
            pub(crate) fn write(&self, to: &mut Vec<u8>) {
                let row = self;
                $(write_column!($kind $name row to);)*
            }

            /// A column whose text has the character NUL, if any does.
            pub(crate) fn with_nul(&self) -> Option<&'static str> {
                let has_nul = [$((stringify!($name), self.$name.has_nul())),*];
                has_nul.into_iter().find(|(_, has_nul)| *has_nul).map(|(name, _)| name)
            }
        }
    };
}
journal_columns!([] row_text);

/// The values that a row shares with others of its batch, kind and names, and its date as text.
struct RowShared<'r> {
    series_id: i64,
    version: i32,
    type_code: &'r str,
    project: Option<&'r str>,
    document_date: &'r str,
    user_id: &'r str,
    ip_address: Option<&'r str>,
}

impl<'r> RowText<'r> {
    /// The content of a row that is to be written.
    pub(crate) fn of(new_row: &'r NewRow<'_>) -> Self {
        let shared = RowShared {
            series_id: new_row.series_id,
            version: new_row.version,
            type_code: new_row.type_code,
            project: new_row.project,
            document_date: new_row.document_date,
            user_id: new_row.user_id,
            ip_address: new_row.ip_address,
        };
        RowText::whole(&Stored::of(new_row), &shared)
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES_USUAL);
        self.write(&mut bytes);
        bytes
    }
}

/// The word that `journal_row` shows as a row's path: that of the column, or of segments.
fn path_of<'r>(path: Option<&'r str>, number: Option<&str>, context: Option<&str>) -> &'r str {
    if number.is_none() && context.is_some() { ARCHIVED } else { path.unwrap_or("redis") }
}

macro_rules! stored_of {
    ($($name:ident $bound_as:literal $cast:literal ($read_as:ty) $said:expr;)*) => {
        impl<'l> Stored<'l, &'l str> {
            /// The own values of a row that is to be written.
            fn of(new_row: &'l NewRow<'l>) -> Self {
                fn said<'l, T>(new_row: &'l NewRow<'l>, said: impl Fn(&'l NewRow<'l>) -> T) -> T {
                    said(new_row)
                }
                Stored { $($name: said(new_row, $said)),* }
            }
        }
    };
}
own_columns!(stored_of);

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
        // An address that is not there is none that was left out.
        let is_whole = ids.address_name_id.is_none() || address.is_some();
        let whole = kind.zip(user).zip(document_date).filter(|_| is_whole);
        let bytes = whole.map(|((kind, user), document_date)| {
            let shared = RowShared {
                series_id: kind.series_id,
                version: kind.version,
                type_code: &kind.type_code,
                project: kind.project.as_deref(),
                document_date,
                user_id: user,
                ip_address: address.map(String::as_str),
            };
            RowText::whole(self, &shared).bytes()
        });
        let last = self.last_value.unwrap_or(self.first_value);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use numbering::{Range, TakenRange};
    use uuid::Uuid;

    use super::*;
    use crate::{At, Entry, IssuePath, Record};

    /// Bytes in the form that `docs/record.md` describes, written by hand.
    #[derive(Default)]
    struct Form(Vec<u8>);

    impl Form {
        fn integers(mut self, integers: &[i64]) -> Self {
            self.0.extend(integers.iter().flat_map(|integer| integer.to_be_bytes()));
            self
        }

        fn bytes(mut self, bytes: &[u8]) -> Self {
            self.0.extend([0, 0, 0, u8::try_from(bytes.len()).expect("short")]);
            self.0.extend(bytes);
            self
        }

        fn optional(mut self, texts: &[Option<&str>]) -> Self {
            for text in texts {
                self.0.push(u8::from(text.is_some()));
                if let Some(text) = text {
                    self = self.bytes(text.as_bytes());
                }
            }
            self
        }
    }

    fn one(counter_id: i64, value: u64) -> TakenRange {
        TakenRange { counter_id, range: Range { first: value, last: value, step: 1 } }
    }

    #[test]
    fn a_row_is_sealed_in_the_form_that_the_record_describes() {
        let record = Record {
            allocation_id: Uuid::from_u128(7),
            series_id: 3,
            version: 2,
            type_code: "SPO".into(),
            scope: "all".into(),
            mask: "SPO-20240122-{0:3}".into(),
            document_date: "2024-01-22".into(),
            counter_keys: vec!["type=SPO".into()],
            user_id: "user".into(),
            ip_address: Some("::1".into()),
            idempotency_key: Some("key".into()),
            payload_digest: "00ff".into(),
            issued_at_us: 5,
            ..Record::default()
        };
        let range = Range { first: 1, last: 9, step: 2 };
        let entry = Entry {
            record: Arc::new(record),
            taken: vec![TakenRange { counter_id: 11, range }],
            number: "SPO-20240122-001".into(),
            at: At { partition: 1, epoch: 1 },
            retry_count: 4,
            path: IssuePath::Redis,
        };
        let new_rows = NewRow::of(0, &entry).expect("content that columns take");
        let expected = Form::default()
            .integers(&[11, 1, 9, 2])
            .bytes(Uuid::from_u128(7).as_bytes())
            .optional(&[Some("SPO-20240122-001"), Some("all"), None, Some("13{0:3}")])
            .optional(&[None, None, None, Some("key")])
            .integers(&[3, 2])
            .bytes(b"SPO")
            .optional(&[None])
            .bytes(b"2024-01-22")
            .bytes(b"user")
            .optional(&[Some("::1")]);
        let mut expected = expected.0;
        expected.extend([1, 0, 0, 0, 2, 0, 255]);
        let expected = Form(expected).integers(&[5, 4]).bytes(b"redis");
        assert_eq!(RowText::of(&new_rows[0]).bytes(), expected.0);
    }

    #[test]
    fn what_a_row_leaves_out_is_sealed_as_the_record_describes() {
        let record = Record {
            allocation_id: Uuid::from_u128(7),
            series_id: 3,
            version: 2,
            type_code: "T".into(),
            project: Some("P1".into()),
            scope: "all".into(),
            // Values with text between them: no compressed form.
            mask: "A-{0:3}-B-{1:2}".into(),
            context: [("V".to_owned(), "x".to_owned())].into(),
            document_date: "2024-01-22".into(),
            serials: vec!["main".into(), "second".into()],
            counter_keys: vec!["k".into(), "l".into()],
            user_id: "user".into(),
            document_id: Some("d1".into()),
            issued_at_us: 5,
            ..Record::default()
        };
        let entry = Entry {
            record: Arc::new(record),
            taken: vec![one(11, 1), one(12, 2)],
            number: "A-001-B-02".into(),
            at: At { partition: 1, epoch: 1 },
            retry_count: 0,
            path: IssuePath::Database,
        };
        let rest = concat!(
            r#"[{"serial":"second","taken":{"counter_id":12,"#,
            r#""range":{"first":2,"last":2,"step":1}},"key":"l"}]"#
        );
        let shared = |form: Form, path: &str| {
            let form = form
                .integers(&[3, 2])
                .bytes(b"T")
                .optional(&[Some("P1")])
                .bytes(b"2024-01-22")
                .bytes(b"user")
                // Neither an address nor a digest.
                .optional(&[None, None])
                .integers(&[5, 0]);
            form.bytes(path.as_bytes()).0
        };
        let first = Form::default()
            .integers(&[11, 1, 1, 1])
            .bytes(Uuid::from_u128(7).as_bytes())
            .optional(&[Some("A-001-B-02"), Some("all"), Some("A-{0:3}-B-{1:2}"), None])
            .optional(&[Some(rest), Some(r#"{"V":"x"}"#), Some("d1"), None]);
        let further = Form::default()
            .integers(&[12, 2, 2, 1])
            .bytes(Uuid::from_u128(7).as_bytes())
            .optional(&[None; 8]);
        let expected = [shared(first, "database"), shared(further, "database")];
        let new_rows = NewRow::of(0, &entry).expect("content that columns take");
        assert_eq!(
            new_rows.iter().map(|row| RowText::of(row).bytes()).collect::<Vec<_>>(),
            expected
        );
    }

    /// A segment has no number, a context, and a path of its own.
    #[test]
    fn a_segment_is_sealed_as_the_record_describes() {
        let record = Record {
            allocation_id: Uuid::from_u128(7),
            document_date: "2024-01-22".into(),
            counter_keys: vec!["k".into()],
            ..Record::default()
        };
        let entry = Entry {
            record: Arc::new(record),
            taken: vec![one(12, 2)],
            number: "2".into(),
            at: At { partition: 1, epoch: 1 },
            retry_count: 0,
            path: IssuePath::Redis,
        };
        let mut new_rows = NewRow::of(0, &entry).expect("content that columns take");
        (new_rows[0].head, new_rows[0].segment) = (None, Some("archived/1.parquet"));
        let expected = Form::default()
            .integers(&[12, 2, 2, 1])
            .bytes(Uuid::from_u128(7).as_bytes())
            .optional(&[None, None, None, None, None, Some("archived/1.parquet"), None, None])
            .integers(&[0, 0])
            .bytes(b"")
            .optional(&[None])
            .bytes(b"2024-01-22")
            .bytes(b"")
            .optional(&[None, None])
            .integers(&[0, 0])
            .bytes(b"archived");
        assert_eq!(RowText::of(&new_rows[0]).bytes(), expected.0);
    }

    #[test]
    fn a_text_with_nul_is_refused_by_its_column() {
        let with = |document_id: &str| {
            let record = Record {
                document_id: Some(document_id.into()),
                document_date: "2024-01-22".into(),
                counter_keys: vec![String::new()],
                ..Record::default()
            };
            let range = Range { first: 1, last: 1, step: 1 };
            let entry = Entry {
                record: Arc::new(record),
                taken: vec![TakenRange { counter_id: 1, range }],
                number: "1".into(),
                at: At { partition: 1, epoch: 1 },
                retry_count: 0,
                path: IssuePath::Redis,
            };
            NewRow::of(0, &entry).map(|rows| rows.len()).map_err(|error| error.to_string())
        };
        assert_eq!(with("d"), Ok(1));
        let refused = with("d\0").expect_err("NUL");
        assert!(refused.contains("document_id: contains the character NUL"), "{refused}");
    }

    /// A made-up list with a column that was added.
    mod added {
        use super::super::{ColumnType, SealedValue};

        struct Stored<'r, Day> {
            counter_id: i64,
            cost_centre: Option<&'r str>,
            day: Day,
        }

        struct RowShared<'r> {
            user_id: &'r str,
        }

        row_text! { []
            /// A counter.
            sealed counter_id: i64 { counter_id }
            /// A user.
            sealed user_id: String {}
            /// A column that was added.
            later cost_centre: Option<String> { cost_centre }
        }

        #[test]
        fn a_later_column_changes_no_bytes_where_it_is_null() {
            let bytes = |cost_centre| {
                let row = Stored { counter_id: 1, cost_centre, day: "2024-01-22" };
                assert_eq!(row.day.len(), 10);
                let text = RowText::whole(&row, &RowShared { user_id: "u" });
                assert_eq!(text.with_nul(), None);
                let mut bytes = Vec::new();
                text.write(&mut bytes);
                bytes
            };
            let before = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, b'u'];
            assert_eq!(bytes(None), before);
            let after = bytes(Some("c"));
            let (same, added) = after.split_at(before.len());
            assert_eq!(same, before);
            assert_eq!(added, b"\xff\0\0\0\x0bcost_centre\0\0\0\x01c");
        }
    }
}
