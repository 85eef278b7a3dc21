//! The numbering language: series definitions, templates, counter keys, rendering and parsing.
//!
//! Pure: no I/O, no clock, no tokio. Everything that decides *what a number looks like* and *which
//! counter it comes from* is here; nothing here knows how values are taken.

mod as_written;
mod beyond;
mod by_hand;
mod calendar;
mod change;
mod characters;
mod check;
mod compare;
mod compile;
mod correction;
mod date;
mod definition;
mod documents;
mod draft;
mod error;
mod exchange;
mod expression;
mod external;
mod field;
mod hints;
mod key;
mod lengths;
mod lexer;
mod look_alike;
mod names;
mod nearest;
mod novelty;
mod offer;
mod origin;
mod parse;
mod partial_number;
mod pattern;
mod period;
mod plausible;
mod range;
mod reference;
mod resolve;
mod revision;
mod rule_format;
mod rules;
mod sample;
mod serial_format;
mod series;
mod series_file;
mod series_forms;
mod served;
mod shown;
mod snowflake;
mod template;
mod template_error;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;
mod ties;
mod value;
mod values;
mod window;
mod written;

pub use as_written::WidenedSeries;
pub use beyond::{Beyond, SharedName};
pub use change::{ChangeError, Succession, check_change, succession};
pub use compare::{
    Accepted, Ambiguity, EarlierVersion, GiveUp, Hasty, IssuedVersion, PROOF_STEPS_MAX, ProofError,
    Reading, concerned, only_narrows, prove_issued, prove_saved, same_numbers, same_rules,
};
pub use correction::CorrectionError;
pub use date::read_moment;
pub use definition::{
    Overflow, Policy, References, Reset, SerialDefinition, SeriesDefinition, Serves, Style,
    VariableDefinition,
};
pub use documents::{Documents, DocumentsOf};
pub use draft::{Draft, Inputs, Recipient, Told};
pub use error::{InputError, ParseError};
pub use exchange::{ExchangeError, ExchangeKind, ExchangePart, ExchangeSerial};
pub use expression::{
    EXPRESSION_BYTES_MAX, ElementFlaw, Expression, ExpressionError, Inexpressible,
};
pub use external::{SourcedVariable, is_source_name};
pub use hints::TypesServed;
pub use key::CounterKey;
pub use partial_number::PartialNumber;
pub use pattern::Era;
pub use period::period_of;
pub use plausible::{DateSpan, DocumentDate, LookAlikes, PlausibleDates, flaw_of_closing};
pub use range::{Range, TakenRange, first_values};
pub use reference::{
    Membership, ReferenceData, ReferenceFlaw, ReferenceRow, check_reference, check_reference_id,
    is_table_name,
};
pub use revision::{Original, RevisedNumber, RevisionError};
pub use rule_format::{RuleFormatError, RuleFormats};
pub use rules::{
    Choice, Explanation, RuleError, Verdict, choose, choose_telling, comes_before, explain,
    fits_some_day,
};
pub use series::{Parsed, ParsedSerial, Serial, SerialWidth, Series};
pub use series_file::{FilePlace, SeriesFileError, builtin_series, place_of, read_series};
pub use series_forms::SERIES_FORMS;
pub use served::{ORIGINATORS, naming_type_of};
pub use snowflake::{NODE_NUMBERS, SNOWFLAKES_PER_MS, Snowflake, SnowflakePlace};
pub use template::is_reserved;
pub use template_error::{FieldFlaw, Place, TemplateError, TokenFlaw};
pub use text::{Lines, Unprintable, check_printable, escaped, hexadecimal};
pub use ties::{check_rules, may_come_before};
pub use written::{Form, Misfit, Notation, Step, form_of, json_of_toml, read_written};

/// The largest value a counter may take: 2^53 - 1, the last integer that a Lua number holds
/// exactly.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The longest text of a number, in characters.
pub const TEXT_CHARS_MAX: usize = 128;
