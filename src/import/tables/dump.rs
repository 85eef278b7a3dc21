//! Tables of a MySQL or MariaDB dump: what its statements insert, literally. Runs nothing.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use sqlparser::ast::{Expr, SetExpr, Statement as Parsed, TableObject, UnaryOperator, Value};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use super::Record;
use super::statements::{Statement, Statements};
use crate::import::ImportError;
use crate::import::metered::Metered;

/// Reads the rows that a dump inserts into these tables; which of them it has.
pub(super) fn read(
    path: &Path,
    tables: &[&'static str],
    each: &mut (dyn FnMut(Record) -> Result<(), ImportError> + Send),
) -> Result<BTreeSet<&'static str>, ImportError> {
    let name = path.display().to_string();
    let (file, _) = Metered::open(path)?;
    let mut statements = Statements::new(file, name.clone(), tables);
    let mut there: HashMap<&'static str, Table> = HashMap::new();
    while let Some(statement) = statements.next()? {
        let place = format!("{name}: line {}", statement.line);
        let refused = |reason: String| ImportError::form(&place, reason);
        let table = there.entry(statement.table).or_default();
        for parsed in parse(&statement).map_err(refused)? {
            match parsed {
                Parsed::CreateTable(create) => {
                    let columns = create.columns.iter();
                    table.columns =
                        columns.map(|column| column.name.value.to_lowercase()).collect();
                }
                Parsed::Insert(insert) if matches!(insert.table, TableObject::TableName(_)) => {
                    let columns = match &insert.columns[..] {
                        [] => Arc::clone(&table.columns),
                        named => named.iter().map(last_name).collect(),
                    };
                    let rows = insert.source.map(|query| *query.body);
                    let Some(SetExpr::Values(values)) = rows else {
                        return Err(refused("it inserts something else than values".into()));
                    };
                    for row in values.rows {
                        table.rows += 1;
                        let values: Option<Vec<_>> = row.content.into_iter().map(literal).collect();
                        let values = values.filter(|values| values.len() == columns.len());
                        let values = values.ok_or_else(|| {
                            refused(format!(
                                "row {} of {} is not one literal value for each column; dump \
                                 with --complete-insert",
                                table.rows, statement.table
                            ))
                        })?;
                        let columns = Arc::clone(&columns);
                        let (table, row) = (statement.table, table.rows);
                        each(Record { table, row, columns, values })?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(there.into_keys().collect())
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

fn parse(statement: &Statement) -> Result<Vec<Parsed>, String> {
    match Parser::parse_sql(&MySqlDialect {}, &statement.text) {
        Ok(parsed) => Ok(parsed),
        // Where the rows name their columns themselves, nobody needs the table's definition.
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
        read(file.path(), &["document_sequence", "com_no_serial"], &mut |record| {
            let values = columns.iter().map(|name| (*name, record.get(name).map(Into::into)));
            rows.push((record.place(), values.collect()));
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
            VALUES (7,'it\\'s; 訂''單');\n";
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
}
