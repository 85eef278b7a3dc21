//! What holds for every series, by random series: a drafted number fits, and what the template
//! determines is read back: parse(render(x)) = x. proptest prints a failure, smallest case first,
//! and keeps its seed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::super::testing::{compile, inputs, restore, serial};
use super::super::*;

/// The tokens that show a fiscal year.
const FISCAL_YEARS: [&str; 4] = ["{FY}", "{FY:start}", "{FY:B.E.}", "{FY:start:ROC}"];

/// The check algorithms.
const CHECKS: [&str; 4] = ["luhn", "mod97-10", "mod37-36", "damm"];

/// When counters may restart.
const RESETS: [Reset; 11] = [
    Reset::None,
    Reset::Second,
    Reset::Minute,
    Reset::Hour,
    Reset::Day,
    Reset::Week,
    Reset::Month,
    Reset::Quarter,
    Reset::Year,
    Reset::FiscalYear,
    Reset::Phase,
];

/// Names of the variables that a random series may have.
const NAMES: [&str; 3] = ["A", "B", "单位"];

/// A random part of a template.
#[derive(Clone, Debug)]
enum Element {
    Literal(String),
    Variable(usize),
    Project,
    Phase,
    Type(&'static str),
    Date(&'static str),
    /// A serial of this width; the first one may be shown unpadded instead.
    Serial(usize, Style, Overflow),
}

/// A random series with a request for it. Its elements are joined by `-`, which no value, literal
/// or date contains: the template determines its parts.
#[derive(Clone, Debug)]
struct Case {
    elements: Vec<Element>,
    unpadded: bool,
    values: [String; 3],
    project: String,
    phase: String,
    fiscal_year_start: u8,
    now_ms: i64,
    serials: Vec<u64>,
}

impl Case {
    fn template(&self) -> String {
        let mut serial = 0;
        let shown = self.elements.iter().map(|element| match element {
            Element::Literal(text) => text.replace('{', "{{").replace('}', "}}"),
            Element::Variable(index) => format!("{{{}}}", NAMES[*index]),
            Element::Project => "{PROJECT}".into(),
            Element::Phase => "{PHASE}".into(),
            Element::Type(token) | Element::Date(token) => (*token).into(),
            Element::Serial(width, ..) => {
                serial += 1;
                match self.name(serial - 1).as_str() {
                    "SEQ" => "{SEQ}".into(),
                    name => format!("{{SEQ:{width}:{name}}}"),
                }
            }
        });
        shown.collect::<Vec<_>>().join("-")
    }

    /// Name of a serial; `SEQ` is the one without a width.
    fn name(&self, serial: usize) -> String {
        if serial == 0 && self.unpadded { "SEQ".into() } else { format!("S{serial}") }
    }

    /// Values that fit their widths.
    fn fitting(&self, series: &Series) -> Vec<u64> {
        let fit = |(serial, value): (&Serial, &u64)| 1 + (value - 1) % serial.max;
        series.serials().iter().zip(&self.serials).map(fit).collect()
    }

    /// Its serials as a definition declares them.
    fn declared(&self) -> Vec<SerialDefinition> {
        let written = |element: &Element| match element {
            Element::Serial(_, style, overflow) => Some((*style, *overflow)),
            _ => None,
        };
        let declare = |(index, (style, overflow))| {
            let name = self.name(index);
            SerialDefinition { style, overflow, ..serial(&name) }
        };
        self.elements.iter().filter_map(written).enumerate().map(declare).collect()
    }

    fn series(&self) -> Series {
        // What was saved before may begin or end with a blank.
        let series = restore(|definition| {
            definition.template = self.template();
            definition.look_alikes = LookAlikes::Allow;
            definition.timezone = Some("Asia/Bangkok".into());
            definition.serves.types = vec!["T".into(), "TT".into()];
            for name in NAMES {
                let rule = VariableDefinition {
                    excluded: Some("-".into()),
                    width_max: Some(6),
                    default: Some("0".into()),
                    ..VariableDefinition::default()
                };
                definition.variables.insert(name.into(), rule);
            }
            definition.fiscal_year_start = Some(self.fiscal_year_start);
            definition.serials = self.declared();
        });
        series.unwrap_or_else(|error| panic!("{}: {error}", self.template()))
    }

    fn inputs(&self) -> Inputs {
        let given = NAMES.iter().zip(&self.values);
        Inputs {
            type_code: "TT".into(),
            project: Some(self.project.clone()),
            date: None,
            phase: self.shows_phase().then(|| self.phase.clone()),
            context: given.map(|(name, value)| (name.to_string(), value.clone())).collect(),
            ..Inputs::default()
        }
    }

    fn shows_phase(&self) -> bool {
        self.elements.iter().any(|element| matches!(element, Element::Phase))
    }

    fn shows_date(&self, tokens: &[&str]) -> bool {
        let shown = |e: &Element| matches!(e, Element::Date(token) if tokens.contains(token));
        self.elements.iter().any(shown)
    }

    /// What must be read back.
    fn shown(&self) -> BTreeMap<String, String> {
        let shown = |element: &Element| match element {
            Element::Variable(index) => Some((NAMES[*index].into(), self.values[*index].clone())),
            Element::Project => Some(("PROJECT".into(), self.project.clone())),
            Element::Phase => Some(("PHASE".into(), self.phase.clone())),
            Element::Type(token) => Some((token[1..token.len() - 1].into(), "TT".into())),
            _ => None,
        };
        self.elements.iter().filter_map(shown).collect()
    }

    /// Date and time that must be read back: as far as the tokens go, computed from the present.
    fn date_shown(&self) -> (Option<String>, Option<String>) {
        let at = self.at();
        let shows = |tokens: &[&str]| self.shows_date(tokens);
        let calendar = self.fiscal_year_start == 1 && shows(&FISCAL_YEARS);
        let date = if shows(&["{DATE:yyyyMMdd}", "{DATE:yyyyDDD}", "{DATE:yyyyMMddYYYY'W'ww}"]) {
            Some(at.strftime("%Y-%m-%d").to_string())
        } else if shows(&["{DATE:yyMM}"]) {
            Some(at.strftime("%Y-%m").to_string())
        } else if shows(&["{DATE:yyyy'Q'Q}"]) {
            Some(format!("{}-Q{}", at.year(), (at.month() + 2) / 3))
        } else if calendar || shows(&["{YEAR}", "{YEAR:B.E.}", "{YEAR:ROC}"]) {
            Some(at.year().to_string())
        } else {
            None
        };
        (date, shows(&["{DATE:HHmmssSSS}"]).then(|| at.strftime("%H:%M:%S.%3f").to_string()))
    }

    /// The fiscal year that must be read back.
    fn fiscal_year_shown(&self) -> Option<i16> {
        let (at, start) = (self.at(), i8::try_from(self.fiscal_year_start).unwrap());
        let ends_next_year = start > 1 && at.month() >= start;
        self.shows_date(&FISCAL_YEARS).then(|| at.year() + i16::from(ends_next_year))
    }

    /// Whether its numbers show enough to name a period, as far as that is plain: a whole date
    /// determines every period of days.
    fn tells(&self, reset: Reset) -> bool {
        let (date, time) = self.date_shown();
        let day = date.is_some_and(|date| date.len() == "yyyy-mm-dd".len());
        match reset {
            Reset::None => true,
            Reset::Second | Reset::Minute | Reset::Hour => day && time.is_some(),
            Reset::FiscalYear => day || self.fiscal_year_shown().is_some(),
            Reset::Phase => self.shows_phase(),
            Reset::Day | Reset::Week | Reset::Month | Reset::Quarter | Reset::Year => day,
        }
    }

    /// The present where the series is.
    fn at(&self) -> jiff::civil::DateTime {
        TimeZone::get("Asia/Bangkok").unwrap().to_datetime(self.now())
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now_ms).unwrap()
    }
}

fn element() -> impl Strategy<Value = Element> {
    prop_oneof![
        "[A-Zก-ฮ{}. ]{1,4}".prop_map(Element::Literal),
        (0..NAMES.len()).prop_map(Element::Variable),
        Just(Element::Project),
        Just(Element::Phase),
        prop_oneof![Just("{CORR_TYPE}"), Just("{TYPE_CODE}")].prop_map(Element::Type),
        prop_oneof![
            Just("{YEAR}"),
            Just("{YEAR:B.E.}"),
            Just("{YEAR:ROC}"),
            Just("{DATE:yyyyMMdd}"),
            Just("{DATE:yyMM}"),
            Just("{DATE:yyyyDDD}"),
            Just("{DATE:yyyy'Q'Q}"),
            Just("{DATE:HHmmssSSS}"),
            Just("{DATE:yyyyMMddYYYY'W'ww}"),
            prop::sample::select(&FISCAL_YEARS[..]),
        ]
        .prop_map(Element::Date),
        serial_element(),
    ]
}

fn serial_element() -> impl Strategy<Value = Element> {
    let style = prop_oneof![Just(Style::Digits), Just(Style::Letters)];
    let overflow = prop_oneof![Just(Overflow::Refuse), Just(Overflow::Widen)];
    let element = |(width, style, overflow)| Element::Serial(width, style, overflow);
    (1_usize..=15, style, overflow).prop_map(element)
}

/// A value: no `-`, no blank at either end, and nothing invisible.
const VALUE: &str = "[A-Za-z0-9ก-ฮ单.]([ 0-9ก-ฮ]{0,4}[A-Z])?";

prop_compose! {
    fn case()(
        mut elements in prop::collection::vec(element(), 0..6),
        (serial, at, unpadded) in (serial_element(), 0_usize..6, any::<bool>()),
        values in [VALUE, VALUE, VALUE],
        (project, phase, fiscal_year_start) in (VALUE, VALUE, 1..=12_u8),
        // 2000 to 2099, where two-digit years are read back.
        now_ms in 946_771_200_000_i64..4_102_358_400_000,
        serials in prop::collection::vec(1..=NUMBER_MAX, 8),
    ) -> Case {
        elements.insert(at.min(elements.len()), serial);
        Case { elements, unpadded, values, project, phase, fiscal_year_start, now_ms, serials }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_rendered_is_read_back(case in case()) {
        let series = case.series();
        let draft = match series.draft(&case.inputs(), case.now()) {
            Err(InputError::TextTooLong { .. }) => return Ok(()),
            drafted => drafted.unwrap(),
        };
        let values = case.fitting(&series);
        let number = draft.partial.fill(&values).unwrap();
        prop_assert!(number.chars().count() <= TEXT_CHARS_MAX);
        prop_assert!(unicode_normalization::is_nfc(&number));
        let carried = PartialNumber::parse(&draft.partial.to_text()).unwrap();
        let carried = carried.fill(&values).unwrap();
        prop_assert_eq!(&carried, &number);

        let parsed = series.parse(&number).unwrap();
        let read: Vec<u64> = parsed.serials.iter().map(|serial| serial.value).collect();
        prop_assert_eq!(read, values);
        prop_assert_eq!(parsed.variables, case.shown());
        prop_assert_eq!((parsed.date, parsed.time), case.date_shown());
        prop_assert_eq!(parsed.fiscal_year, case.fiscal_year_shown());
    }

    #[test]
    fn a_check_is_read_back_and_notices_a_wrong_character(
        (check, code) in (prop::sample::select(&CHECKS[..]), "[0-9]{1,3}(-[0-9])?"),
        (value, place, wrong) in (1..10_000_u64, 0..4_usize, 1..10_u8),
        seconds in 946_771_200_i64..4_102_358_400,
    ) {
        let series = compile(|definition| {
            definition.template = format!("{{AREA}}/{{DATE:yyyyMMdd}}-{{SEQ:4}}{{CHECK:{check}}}");
            let alphabet = Some("0-9-".into());
            let variable = VariableDefinition { alphabet, ..VariableDefinition::default() };
            definition.variables.insert("AREA".into(), variable);
        });
        let series = series.unwrap();
        let request = inputs("T", "", "", &[("AREA", &code)]);
        let request = Inputs { date: None, ..request };
        let now = Timestamp::from_second(seconds).unwrap();
        let partial = series.draft(&request, now).unwrap().partial;
        let number = partial.fill(&[value]).unwrap();
        let carried = PartialNumber::parse(&partial.to_text()).unwrap().fill(&[value]).unwrap();
        prop_assert_eq!(&carried, &number);
        let parsed = series.parse(&number).unwrap();
        prop_assert_eq!((parsed.serials[0].value, &parsed.variables["AREA"]), (value, &code));

        // One digit of the serial mistyped; no serial is 0.
        let digits = number.rfind('-').unwrap() + 1;
        let mut typed = number.into_bytes();
        typed[digits + place] = b'0' + (typed[digits + place] - b'0' + wrong) % 10;
        prop_assume!(&typed[digits..digits + 4] != b"0000");
        let refused = series.parse(std::str::from_utf8(&typed).unwrap());
        let position = digits + 5;
        match refused {
            Err(ParseError::Check { position: at, .. }) => prop_assert_eq!(at, position),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn a_number_leads_back_to_no_other_counter_than_its_own(
        case in case(),
        reset in prop::sample::select(&RESETS[..]),
    ) {
        let mut definition = case.series().definition().clone();
        definition.serials[0].reset = reset;
        definition.serials[0].counter = vec!["type".into()];
        definition.serves.types = vec!["TT".into()];
        let series = Series::restore(definition).unwrap();
        let phase = (reset == Reset::Phase || case.shows_phase()).then(|| case.phase.clone());
        let request = Inputs { phase, ..case.inputs() };
        let draft = match series.draft(&request, case.now()) {
            Err(InputError::TextTooLong { .. }) => return Ok(()),
            drafted => drafted.unwrap(),
        };
        let number = draft.partial.fill(&case.fitting(&series)).unwrap();
        let origins = series.origins(&series.parse(&number).unwrap());
        if case.tells(reset) || !origins.is_empty() {
            prop_assert_eq!(&origins, &draft.keys[..1], "{}", number);
        }
    }

    #[test]
    fn no_text_makes_reading_a_number_panic(case in case(), text in "\\PC{0,140}") {
        let series = case.series();
        if let Ok(parsed) = series.parse(&text) {
            prop_assert_eq!(parsed.serials.len(), series.serials().len());
        }
    }

    #[test]
    fn no_template_makes_compiling_panic(template in "[{}A-Z:'yMdS0-9 ก]{0,40}|\\PC{0,40}") {
        let compiled = compile(|definition| definition.template = template.clone());
        if let Ok(series) = compiled {
            prop_assert_eq!(series.serials().len(), 1);
        }
    }

    #[test]
    fn no_request_makes_drafting_panic(
        case in case(),
        type_code in "\\PC{0,8}",
        date in "[0-9TZ:+-]{0,30}|[0-9]{4}-[0-9]{2}-[0-9]{2}",
        value in "\\PC{0,80}|[ -~\\x00]{0,8}",
    ) {
        let series = case.series();
        let mut request = case.inputs();
        request.type_code = type_code;
        request.date = Some(date);
        request.context.insert("A".into(), value);
        if let Ok(draft) = series.draft(&request, testing::NOW) {
            let most: Vec<u64> = series.serials().iter().map(|serial| serial.max).collect();
            let number = draft.partial.fill(&most).unwrap();
            prop_assert!(number.chars().count() <= TEXT_CHARS_MAX);
        }
    }
}
