//! Tables of a MySQL or MariaDB dump: the literal rows of its INSERT statements. Runs nothing.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use sqlparser::ast::{
    Expr, Insert, SetExpr, Statement as Parsed, TableObject, UnaryOperator, Value,
};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use super::statements::{Statement, Statements};
use super::{TableRow, parts};
use crate::features::import::ImportError;
use crate::features::import::metered::Metered;

/// Reads the rows that a dump inserts into these tables; returns which of them it has.
pub(super) fn read(
    path: &Path,
    tables: &[&'static str],
    each: &mut (dyn FnMut(TableRow) -> Result<(), ImportError> + Send),
) -> Result<BTreeSet<&'static str>, ImportError> {
    let name = path.display().to_string();
    let (file, _) = Metered::open(path)?;
    let mut statements = Statements::new(file, name.clone(), tables);
    let mut there: HashMap<&'static str, Table> = HashMap::new();
    while let Some(statement) = statements.next()? {
        let refused =
            |reason: String| ImportError::form(format!("{name}: line {}", statement.line), reason);
        let table = there.entry(statement.table).or_default();
        for part in parts_of(&statement).map_err(refused)? {
            for parsed in parse(&statement, &part).map_err(refused)? {
                match parsed {
                    Parsed::CreateTable(create) => {
                        let columns = create.columns.iter();
                        table.columns =
                            columns.map(|column| column.name.value.to_lowercase()).collect();
                    }
                    Parsed::Insert(insert) if is_on_table(&insert) => {
                        table.hand_over(statement.table, insert, &refused, each)?;
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(there.into_keys().collect())
}

/// The pieces that are parsed one at a time.
fn parts_of(statement: &Statement) -> Result<Vec<String>, String> {
    if statement.is_insert {
        return parts::of_insert(&statement.text);
    }
    // As for one that is not understood: if the rows name their columns, it is not needed.
    let is_flat = parts::must_be_flat(&statement.text).is_ok();
    Ok(is_flat.then(|| statement.text.clone()).into_iter().collect())
}

fn is_on_table(insert: &Insert) -> bool {
    matches!(insert.table, TableObject::TableName(_))
}

/// A table of the dump so far.
struct Table {
    columns: Arc<[String]>,
    rows: u64,
}

impl Default for Table {
    fn default() -> Self {
        Table { columns: Arc::from(Vec::new()), rows: 0 }
    }
}

impl Table {
    /// Passes on the rows that a statement inserts.
    fn hand_over(
        &mut self,
        table: &'static str,
        insert: Insert,
        refused: &impl Fn(String) -> ImportError,
        each: &mut (dyn FnMut(TableRow) -> Result<(), ImportError> + Send),
    ) -> Result<(), ImportError> {
        let columns = match &insert.columns[..] {
            [] => Arc::clone(&self.columns),
            named => named.iter().map(last_name).collect(),
        };
        let rows = insert.source.map(|query| *query.body);
        let Some(SetExpr::Values(values)) = rows else {
            return Err(refused("it inserts something else than values".into()));
        };
        for row in values.rows {
            self.rows += 1;
            let values: Option<Vec<_>> = row.content.into_iter().map(literal).collect();
            let values = values.filter(|values| values.len() == columns.len());
            let values = values.ok_or_else(|| {
                refused(format!(
                    "row {} of {table} is not one literal value for each column; dump with \
                     --complete-insert",
                    self.rows
                ))
            })?;
            let columns = Arc::clone(&columns);
            each(TableRow { table, row: self.rows, columns, values })?;
        }
        Ok(())
    }
}

fn parse(statement: &Statement, part: &str) -> Result<Vec<Parsed>, String> {
    match Parser::parse_sql(&MySqlDialect {}, part) {
        Ok(parsed) => Ok(parsed),
        // If the rows name their columns themselves, the table's definition is not needed.
        Err(_) if !statement.is_insert => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}

fn last_name(name: &sqlparser::ast::ObjectName) -> String {
    let part = name.0.last().and_then(|part| part.as_ident());
    part.map_or_else(String::new, |ident| ident.value.to_lowercase())
}

/// A literal as text; the inner `None` for NULL, the outer one for anything else.
fn literal(expression: Expr) -> Option<Option<String>> {
    match expression {
        Expr::Value(value) => match value.value {
            Value::Null => Some(None),
            Value::Boolean(is_true) => Some(Some(u8::from(is_true).to_string())),
            Value::Number(text, _)
            | Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text)
            | Value::NationalStringLiteral(text) => Some(Some(text)),
            _ => None,
        },
        Expr::Prefixed { value, .. } => literal(*value),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            let text = literal(*expr)??;
            Some(Some(format!("-{text}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rows = Vec<(String, Vec<(&'static str, Option<String>)>)>;

    fn rows(text: &str, columns: &[&'static str]) -> Result<Rows, ImportError> {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), text).expect("written");
        let mut rows = Vec::new();
        read(file.path(), &["document_sequence", "com_no_serial"], &mut |table_row| {
            let values = columns.iter().map(|name| (*name, table_row.get(name).map(Into::into)));
            rows.push((table_row.place(), values.collect()));
            Ok(())
        })?;
        Ok(rows)
    }

    #[test]
    fn rows_come_with_the_columns_of_their_table_or_their_own() {
        let text = "-- MySQL dump 10.13; don't stop here\n\
            /*!40101 SET NAMES utf8mb4 */;\n\
            CREATE TABLE `document_sequence` (\n\
              `sequence_type` varchar(10) NOT NULL COMMENT '類型; 代碼',\n\
              `sequence_date` date NOT NULL,\n\
              `current_no` int DEFAULT '0',\n\
              `version` bigint NOT NULL,\n\
              PRIMARY KEY (`sequence_type`,`sequence_date`),\n\
              KEY `k` (`version`)\n\
            ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='單據;';\n\
            LOCK TABLES `document_sequence` WRITE;\n\
            INSERT INTO `document_sequence` VALUES ('SPO','2024-01-22',15,3),\
            ('BPO','2024-01-22',NULL,0);\n\
            # a comment; of a line\n\
            INSERT IGNORE INTO shop.document_sequence (current_no, sequence_type) \
            VALUES (7,'it\\'s; 訂''單');\n\
            -- Dump completed on 2024-01-22 10:00:00\n";
        let rows = rows(text, &["sequence_type", "current_no"]).expect("rows");
        let own = |text: &str| Some(text.to_owned());
        let expected = [
            ("document_sequence row 1", own("SPO"), own("15")),
            ("document_sequence row 2", own("BPO"), None),
            ("document_sequence row 3", own("it's; 訂'單"), own("7")),
        ];
        assert_eq!(rows.len(), expected.len());
        for ((place, values), (expected, code, number)) in rows.into_iter().zip(expected) {
            assert_eq!(place, expected);
            assert_eq!(values, [("sequence_type", code), ("current_no", number)]);
        }
    }

    #[test]
    fn other_tables_and_the_bodies_of_triggers_are_passed_over() {
        let long = "x".repeat(100_000);
        let text = format!(
            "INSERT INTO `others` VALUES ('{long}; INSERT INTO document_sequence VALUES (1)');\n\
             DELIMITER ;;\n\
             CREATE TRIGGER t BEFORE INSERT ON o FOR EACH ROW BEGIN\n\
             INSERT INTO document_sequence VALUES (NEW.a, 1);\nEND ;;\n\
             DELIMITER ;\n\
             INSERT INTO com_no_serial (rule_format, serial_no) \
             VALUES (_utf8mb4'BX20240115%s', 18446744073709551616);"
        );
        let rows = rows(&text, &["rule_format", "serial_no"]).expect("rows");
        assert_eq!(rows.len(), 1);
        let values: Vec<_> = rows[0].1.iter().map(|(_, value)| value.as_deref()).collect();
        assert_eq!(values, [Some("BX20240115%s"), Some("18446744073709551616")]);
    }

    #[test]
    fn what_is_no_literal_is_refused_with_its_line() {
        let text = "\n\nINSERT INTO document_sequence (sequence_type) VALUES (concat('A','B'));";
        let refused = rows(text, &[]).expect_err("refused").to_string();
        assert!(refused.contains("line 3") && refused.contains("--complete-insert"), "{refused}");
    }

    #[test]
    fn an_expression_that_is_too_deep_or_too_long_is_refused_with_its_line() {
        let repeated = |text: &str| text.repeat(200_000);
        for value in [
            format!("{}1{}", repeated("("), repeated(")")),
            format!("1{}", repeated("+1")),
            format!("1{}", repeated("+f(1,2)")),
            format!("{}1", repeated("- ")),
            format!("{}1", repeated("NOT ")),
        ] {
            let text =
                format!("\nINSERT INTO document_sequence (sequence_type) VALUES\n({value});");
            let refused = rows(&text, &[]).expect_err("refused").to_string();
            assert!(refused.contains("line 2"), "{refused}");
        }
        let select =
            format!("INSERT INTO document_sequence SELECT 1{};", repeated(" UNION SELECT 1"));
        assert!(rows(&select, &[]).is_err());
        // Only rows without columns need the table's definition.
        let table =
            format!("CREATE TABLE document_sequence (a int DEFAULT 1{});\n", repeated("+1"));
        let named = "INSERT INTO document_sequence (current_no) VALUES (7);";
        assert_eq!(rows(&format!("{table}{named}"), &["current_no"]).expect("rows").len(), 1);
        let unnamed = "INSERT INTO document_sequence VALUES (7);";
        assert!(rows(&format!("{table}{unnamed}"), &[]).is_err());
    }

    /// As `mysqldump` begins and ends.
    fn whole(body: &str) -> String {
        format!(
            "-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)\n\
             /*!40101 SET NAMES utf8mb4 */;\n{body}-- Dump completed on 2024-01-22 10:00:00\n"
        )
    }

    const TWO: &str = "INSERT INTO document_sequence (current_no) VALUES (1);\n\
                       INSERT INTO document_sequence (current_no) VALUES (2);\n";

    #[test]
    fn a_mark_before_the_text_is_no_part_of_it() {
        let marked = rows(&format!("\u{feff}{TWO}"), &["current_no"]).expect("rows");
        assert_eq!(marked.len(), 2);
        let marked = rows(&format!("\u{feff}{}", whole(TWO)), &[]).expect("rows");
        assert_eq!(marked.len(), 2);
    }

    /// Goal: no row is missing from the result. Method: a dump cut at each of its bytes.
    #[test]
    fn a_dump_that_was_cut_short_is_refused_wherever_it_was_cut() {
        let body = "CREATE TABLE `document_sequence` (`sequence_type` varchar(9), `current_no` int)\
            /*!50100 COMMENT='a; b' */;\n\
            INSERT INTO `document_sequence` VALUES ('it\\'s; 訂',15),\n('b',3);\n\
            /* between; */ # and\n\
            DELIMITER ;;\nCREATE TRIGGER t BEFORE INSERT ON o FOR EACH ROW BEGIN\n\
            SET @a = 1; INSERT INTO document_sequence VALUES ('c', 4);\nEND ;;\nDELIMITER ;\n\
            INSERT INTO `document_sequence` VALUES ('d',5);\n";
        let text = whole(body);
        let columns = ["sequence_type", "current_no"];
        let all = rows(&text, &columns).expect("rows");
        assert_eq!(all.len(), 3);
        let end = "-- Dump completed";
        let (head, whole_at) = ("-- MySQL dump".len(), text.find(end).expect("end") + end.len());
        for cut in 0..text.len() {
            let file = tempfile::NamedTempFile::new().expect("file");
            std::fs::write(file.path(), &text.as_bytes()[..cut]).expect("written");
            let mut count = 0;
            let read = read(file.path(), &["document_sequence"], &mut |_| {
                count += 1;
                Ok(())
            });
            match read {
                Ok(_) if cut < head => assert_eq!(count, 0, "before anything"),
                Ok(_) => assert!(cut >= whole_at && count == all.len(), "cut at {cut}"),
                Err(error) => assert!(cut < whole_at, "cut at {cut}: {error}"),
            }
        }
    }

    #[test]
    fn a_file_that_ends_within_something_is_refused_also_without_a_dumps_head() {
        for end in ["INSERT INTO other VALUES (1)", "SELECT 'x;\n", "/* x;\n", "SELECT `x;\n"] {
            let refused = rows(&format!("{TWO}{end}"), &[]).expect_err(end).to_string();
            assert!(refused.contains("was cut short"), "{refused}");
        }
        let first = whole(TWO).replace("-- Dump completed", "-- Dump");
        let refused = rows(&(first + &whole(TWO)), &[]).expect_err("two").to_string();
        assert!(refused.contains("another dump begins within it"), "{refused}");
        assert_eq!(rows(&(whole(TWO) + &whole(TWO)), &[]).expect("rows").len(), 4);
        assert_eq!(rows(&format!("{TWO}-- the end"), &[]).expect("rows").len(), 2);
    }

    #[test]
    fn another_sign_for_the_end_of_statements_is_a_sign() {
        let refused = rows("DELIMITER \n", &[]).expect_err("none").to_string();
        assert!(refused.contains("line 1") && refused.contains("DELIMITER"), "{refused}");
        let text = format!("delimiter //\nSELECT 1; {TWO} //\nDelimiter ;\n{TWO}");
        assert_eq!(rows(&text, &[]).expect("rows").len(), 2);
    }

    #[test]
    fn a_dump_of_postgres_is_read_by_its_inserts_and_refused_with_its_copies() {
        let head = "--\n-- PostgreSQL database dump\n--\n\n\\restrict sOmE0nE\n\n\
            SET statement_timeout = 0;\n\
            SELECT pg_catalog.set_config('search_path', '', false);\n\n\
            CREATE TABLE public.document_sequence (\n\
            \x20   sequence_type character varying(10) NOT NULL,\n\
            \x20   sequence_date date NOT NULL,\n\
            \x20   current_no integer,\n    version bigint\n);\n\n";
        let tail = "\n--\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict sOmE0nE\n\n";
        let inserts = "INSERT INTO public.document_sequence VALUES ('SPO', '2024-01-22', 15, 3);\n";
        let read = rows(&format!("{head}{inserts}{tail}"), &["current_no"]).expect("rows");
        assert_eq!(read.len(), 1);
        let copies = "COPY public.document_sequence (sequence_type, sequence_date, current_no, \
            version) FROM stdin;\nSPO\t2024-01-22\t15\t3\n\\.\n\n";
        let refused = rows(&format!("{head}{copies}{tail}"), &[]).expect_err("copies").to_string();
        assert!(refused.contains("--inserts"), "{refused}");
    }
}
