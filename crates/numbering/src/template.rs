//! The meaning of a template's tokens: from pieces of text to the parts that every number of a
//! series is made of. Rendering and reading back know parts only, so another notation needs only
//! another way to this list.

use super::check::Check;
use super::definition::SERIAL_DEFAULT;
use super::error::excerpt;
use super::lexer::{Piece, Token, lex};
use super::pattern::{DateField, Era, PatternPiece, check_together, parse_pattern};
use super::period::FiscalYear;
use super::serial_format::{SerialFormat, WIDTH_MAX};
use super::series::Variable;
use super::template_error::{Place, TemplateError, TokenFlaw};
use super::text::{flaw_of_literal, may_begin};
use super::value::ValueRule;
use super::{SerialDefinition, SeriesDefinition, TEXT_CHARS_MAX};

/// Longest template, in characters.
pub(super) const TEMPLATE_CHARS_MAX: usize = 4 * TEXT_CHARS_MAX;

/// Names that variables cannot have, because tokens of the language have or had them.
const RESERVED: [&str; 14] = [
    "SEQ",
    "DATE",
    "YEAR",
    "FY",
    "PREFIX",
    "PROJECT",
    "CORR_TYPE",
    "TYPE_CODE",
    "PHASE",
    "SNOWFLAKE",
    "CHECK",
    "ORG",
    "TYPE",
    "CATEGORY",
];

/// Whether a token of this name is or was the language's own, so that no variable has it.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The replacement for a withdrawn token.
pub(super) fn retired(name: &str) -> Option<&'static str> {
    Some(match name {
        "ORG" => "write {ORIGINATOR} or {RECIPIENT}",
        "TYPE" => "write {CORR_TYPE}, {SUB_TYPE} or {RFA_TYPE}",
        "CATEGORY" => "remove it",
        _ => return None,
    })
}

/// A part of every number of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Fixed text.
    Literal(String),
    /// The value of a serial.
    Serial {
        /// Its index in the definition.
        serial: usize,
        /// How its value is written.
        format: SerialFormat,
    },
    /// The value of a variable, by its index among the series' variables.
    Variable(usize),
    /// The request's project.
    Project,
    /// The request's type; the name of the token that shows it.
    Type(&'static str),
    /// The phase that the request names.
    Phase,
    /// A field of the document's date.
    Date(DateField),
    /// The id that is drawn for the number.
    Snowflake,
    /// Check characters of everything to the left.
    Check(Check),
}

/// Compiles the template of a definition; records in `variables` which it shows and how wide.
pub(super) fn compile_template(
    definition: &SeriesDefinition,
    variables: &mut [Variable],
) -> Result<Vec<Part>, TemplateError> {
    if let Some((offset, character)) = flaw_of_literal(&definition.template) {
        return Err(literal_error(character, Place::of(&definition.template, offset)));
    }
    let mut template = Template { definition, variables, parts: Vec::new(), dates: Vec::new() };
    for piece in lex(&definition.template)? {
        match piece {
            Piece::Literal { text, at } => template.literal(text, at)?,
            Piece::Token(token) => template.token(token)?,
        }
    }
    template.check_dates()?;
    Ok(template.parts)
}

/// A template during its conversion to parts.
struct Template<'d, 'v> {
    definition: &'d SeriesDefinition,
    /// The declared variables; tokens record their use here.
    variables: &'v mut [Variable],
    /// The parts so far.
    parts: Vec<Part>,
    /// The date fields with the tokens that show them.
    dates: Vec<(DateField, Token<'d>)>,
}

impl<'d> Template<'d, '_> {
    /// Fixed text of the template.
    fn literal(&mut self, text: String, at: Place) -> Result<(), TemplateError> {
        // The template as a whole is normal; a mark after a token would combine with its value.
        match text.chars().next() {
            Some(first) if !may_begin(first) => Err(literal_error(first, at)),
            _ => {
                self.push_literal(text);
                Ok(())
            }
        }
    }

    /// Joins neighbouring literals, a prefix among them, into one part.
    fn push_literal(&mut self, text: String) {
        match self.parts.last_mut() {
            Some(Part::Literal(before)) => before.push_str(&text),
            _ => self.parts.push(Part::Literal(text)),
        }
    }

    /// The one place that knows the tokens by name.
    fn token(&mut self, token: Token<'d>) -> Result<(), TemplateError> {
        match token.name {
            "SEQ" => self.serial(token),
            "DATE" => self.date(token),
            "YEAR" => {
                let era = Era::named(token.arguments.unwrap_or("A.D.")).ok_or_else(|| {
                    let expected = "{YEAR}, {YEAR:A.D.}, {YEAR:B.E.} or {YEAR:ROC}";
                    token.error(TokenFlaw::Arguments { expected })
                })?;
                self.push_date(DateField::Year(era), token);
                Ok(())
            }
            "FY" => self.fiscal_year(token),
            "PREFIX" => {
                plain(&token, "{PREFIX}")?;
                let prefix = self.definition.prefix.clone();
                self.push_literal(prefix.ok_or_else(|| token.error(TokenFlaw::NoPrefix))?);
                Ok(())
            }
            "PROJECT" => self.push_plain(&token, "{PROJECT}", Part::Project),
            "PHASE" => self.push_plain(&token, "{PHASE}", Part::Phase),
            "CHECK" => self.check(&token),
            "SNOWFLAKE" if self.parts.contains(&Part::Snowflake) => {
                Err(token.error(TokenFlaw::SnowflakeRepeated))
            }
            "SNOWFLAKE" => self.push_plain(&token, "{SNOWFLAKE}", Part::Snowflake),
            "CORR_TYPE" => self.push_plain(&token, "{CORR_TYPE}", Part::Type("CORR_TYPE")),
            "TYPE_CODE" => self.push_plain(&token, "{TYPE_CODE}", Part::Type("TYPE_CODE")),
            _ => self.variable(token),
        }
    }

    /// A token without arguments.
    fn push_plain(
        &mut self,
        token: &Token<'_>,
        expected: &'static str,
        part: Part,
    ) -> Result<(), TemplateError> {
        plain(token, expected)?;
        self.parts.push(part);
        Ok(())
    }

    /// `{SEQ}`, `{SEQ:n}`, `{SEQ:n:name}`.
    fn serial(&mut self, token: Token<'_>) -> Result<(), TemplateError> {
        let expected = "{SEQ}, {SEQ:4} or {SEQ:4:name}, 1 to 15 digits or letters";
        let (width, name) = match token.arguments {
            None => (None, SERIAL_DEFAULT),
            Some(arguments) => {
                let (width, name) =
                    arguments.split_once(':').unwrap_or((arguments, SERIAL_DEFAULT));
                let width = width_of(&token, width, WIDTH_MAX, expected)?;
                (Some(width), name)
            }
        };
        let declared = self.definition.serials.iter().position(|serial| serial.name == name);
        let Some(serial) = declared else {
            return Err(token.error(self.undeclared(name)));
        };
        let shown = |part: &Part| matches!(part, Part::Serial { serial: s, .. } if *s == serial);
        if self.parts.iter().any(shown) {
            return Err(token.error(TokenFlaw::SerialRepeated { name: name.into() }));
        }
        let SerialDefinition { style, overflow, .. } = &self.definition.serials[serial];
        let format = SerialFormat::of(*style, width, *overflow);
        self.parts.push(Part::Serial { serial, format });
        Ok(())
    }

    /// `{FY}`, `{FY:start}`, both with an era.
    fn fiscal_year(&mut self, token: Token<'d>) -> Result<(), TemplateError> {
        let (starts, era) = match token.arguments {
            None => (false, "A.D."),
            Some("start") => (true, "A.D."),
            Some(arguments) => match arguments.strip_prefix("start:") {
                Some(era) => (true, era),
                None => (false, arguments),
            },
        };
        let era = Era::named(era).ok_or_else(|| {
            let expected = "{FY}, {FY:start}, {FY:B.E.} or {FY:start:B.E.}";
            token.error(TokenFlaw::Arguments { expected })
        })?;
        let fiscal = FiscalYear::starting_in(self.definition.fiscal_year_start);
        let field = if starts { DateField::FiscalStart } else { DateField::FiscalYear };
        self.push_date(field(era, fiscal), token);
        Ok(())
    }

    /// `{CHECK:algorithm}`: refused if it would ignore something to its left.
    fn check(&mut self, token: &Token<'_>) -> Result<(), TemplateError> {
        let check = token.arguments.and_then(Check::named).ok_or_else(|| {
            let expected = "{CHECK:luhn}, {CHECK:mod97-10}, {CHECK:mod37-36} or {CHECK:damm}";
            token.error(TokenFlaw::Arguments { expected })
        })?;
        let differs = |part: &Part| match part {
            Part::Variable(index) => {
                let declared = self.definition.variables.get(&self.variables[*index].name);
                declared.is_some_and(|declared| declared.source.is_some())
            }
            part => matches!(part, Part::Serial { .. } | Part::Snowflake),
        };
        if !self.parts.iter().any(differs) {
            return Err(token.error(TokenFlaw::CheckBeforeSerial));
        }
        if self.parts.iter().any(|part| matches!(part, Part::Check(_))) {
            return Err(token.error(TokenFlaw::CheckRepeated));
        }
        let overlooked = self.parts.iter().find_map(|part| self.overlooked(part, check));
        if let Some((shown, character)) = overlooked {
            let reads = check.reads();
            return Err(token.error(TokenFlaw::CheckOverlooks { reads, shown, character }));
        }
        self.parts.push(Part::Check(check));
        Ok(())
    }

    /// A part, in words, with a character of it that a check would ignore.
    fn overlooked(&self, part: &Part, check: Check) -> Option<(String, char)> {
        let overlooks = |character: &char| check.overlooks(*character);
        let among = |texts: &[String]| texts.iter().find_map(|text| text.chars().find(overlooks));
        let anything = || ValueRule::printable().find(|character| check.overlooks(character));
        let SeriesDefinition { serves, references, .. } = self.definition;
        Some(match part {
            Part::Date(_) | Part::Snowflake | Part::Check(_) => return None,
            Part::Literal(text) => (format!("{text:?}"), text.chars().find(overlooks)?),
            Part::Serial { serial, format } => {
                let mut text = String::new();
                format.push(&mut text, 1);
                let name = &self.definition.serials[*serial].name;
                (format!("serial {name}"), text.chars().find(overlooks)?)
            }
            Part::Variable(index) => {
                let Variable { name, rule, .. } = &self.variables[*index];
                (format!("{{{name}}}"), rule.find(|character| check.overlooks(character))?)
            }
            // A table may later give its rows other codes.
            Part::Project if references.project.is_some() || serves.projects.is_empty() => {
                ("{PROJECT}".into(), anything()?)
            }
            Part::Project => ("{PROJECT}".into(), among(&serves.projects)?),
            Part::Type(name) if references.type_code.is_some() => {
                (format!("{{{name}}}"), anything()?)
            }
            Part::Type(name) => (format!("{{{name}}}"), among(&serves.types)?),
            Part::Phase => ("{PHASE}".into(), anything()?),
        })
    }

    /// `{DATE:pattern}`.
    fn date(&mut self, token: Token<'d>) -> Result<(), TemplateError> {
        let expected = "{DATE:yyyyMMdd} or another date pattern";
        let pattern =
            token.arguments.ok_or_else(|| token.error(TokenFlaw::Arguments { expected }))?;
        for piece in parse_pattern(pattern).map_err(|flaw| token.error(flaw))? {
            match piece {
                PatternPiece::Literal(text) if flaw_of_literal(&text).is_some() => {
                    return Err(token.error(TokenFlaw::Literal));
                }
                PatternPiece::Literal(text) => self.push_literal(text),
                PatternPiece::Field(field) => self.push_date(field, token),
            }
        }
        Ok(())
    }

    /// A date field, remembered with its token for [`Self::check_dates`].
    fn push_date(&mut self, field: DateField, token: Token<'d>) {
        self.parts.push(Part::Date(field));
        self.dates.push((field, token));
    }

    /// `{NAME}` or `{NAME:n}` of a declared variable.
    fn variable(&mut self, token: Token<'_>) -> Result<(), TemplateError> {
        let Some(index) = self.variables.iter().position(|v| v.name == token.name) else {
            return Err(token.error(self.unknown(token.name)));
        };
        let variable = &mut self.variables[index];
        variable.shown = true;
        if let Some(width) = token.arguments {
            let expected = "{NAME} or {NAME:n} with a width n of 1 to 128 characters";
            let width = width_of(&token, width, TEXT_CHARS_MAX, expected)?;
            let agree = variable.rule.fix_width(width);
            agree.map_err(|declared| token.error(TokenFlaw::Width { width, declared }))?;
        }
        self.parts.push(Part::Variable(index));
        Ok(())
    }

    /// Why a name is no token of this series.
    fn unknown(&self, name: &str) -> TokenFlaw {
        if let Some(remedy) = retired(name) {
            return TokenFlaw::Retired { remedy };
        }
        let built_in = RESERVED.iter().copied().filter(|name| retired(name).is_none());
        let declared = self.variables.iter().map(|variable| variable.name.as_str());
        let known: Vec<&str> = built_in.chain(declared).collect();
        let near = known.iter().find(|known| **known != name && known.eq_ignore_ascii_case(name));
        let hint = near.map_or_else(String::new, |near| format!("; is {near} meant?"));
        TokenFlaw::Unknown { hint, known: known.join(", ") }
    }

    /// Why a name is no serial of this series.
    fn undeclared(&self, name: &str) -> TokenFlaw {
        let names: Vec<&str> =
            self.definition.serials.iter().map(|serial| serial.name.as_str()).collect();
        let remedy = match names[..] {
            [] => "a series says by its serials what it counts by: write \
                   `serials = [{ reset = \"none\" }]` for one counter, or `reset = \"year\"`, \
                   `counter = [\"project\"]` in it"
                .to_owned(),
            [SERIAL_DEFAULT] => {
                "this series has one serial: write {SEQ:4}, or declare another under \
                 [[series.serials]]"
                    .to_owned()
            }
            _ => format!("this series has {}; another needs [[series.serials]]", names.join(", ")),
        };
        TokenFlaw::SerialUndeclared { name: excerpt(name), remedy }
    }

    /// Date fields are judged over the whole template: `{DATE:YYYY}-{DATE:ww}` is sound.
    fn check_dates(&self) -> Result<(), TemplateError> {
        let fields: Vec<DateField> = self.dates.iter().map(|(field, _)| *field).collect();
        check_together(&fields).map_err(|(culprit, flaw)| {
            let shown = self.dates.iter().find(|(field, _)| *field == culprit);
            shown.expect("the culprit is one of the fields").1.error(flaw)
        })
    }
}

/// A character that no number may hold.
fn literal_error(character: char, at: Place) -> TemplateError {
    let token = character.escape_debug().to_string();
    TemplateError::Token { token, at, flaw: TokenFlaw::Literal }
}

/// Refuses arguments for a token that takes none.
fn plain(token: &Token<'_>, expected: &'static str) -> Result<(), TemplateError> {
    match token.arguments {
        None => Ok(()),
        Some(_) => Err(token.error(TokenFlaw::Arguments { expected })),
    }
}

/// A width from 1 to `most`, in decimal digits.
fn width_of(
    token: &Token<'_>,
    text: &str,
    most: usize,
    expected: &'static str,
) -> Result<usize, TemplateError> {
    let digits = !text.is_empty() && text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit());
    let width = text.parse().ok().filter(|width| digits && (1..=most).contains(width));
    width.ok_or_else(|| token.error(TokenFlaw::Arguments { expected }))
}
