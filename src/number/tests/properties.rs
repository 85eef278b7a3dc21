//! What holds for every series, by random series: a drafted number fits, and what the template
//! determines is read back: parse(render(x)) = x. proptest prints a failure, smallest case first,
//! and keeps its seed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::super::testing::{compile, serial};
use super::super::*;

/// Names of the variables that a random series may have.
const NAMES: [&str; 3] = ["A", "B", "单位"];

/// A random part of a template.
#[derive(Clone, Debug)]
enum Element {
    Literal(String),
    Variable(usize),
    Project,
    Type(&'static str),
    Date(&'static str),
    /// A serial of so many digits; the first one may be shown unpadded instead.
    Serial(usize),
}

/// A random series with a request for it. Its elements are joined by `-`, which no value, literal
/// or date contains: the template determines its parts.
#[derive(Clone, Debug)]
struct Case {
    elements: Vec<Element>,
    unpadded: bool,
    values: [String; 3],
    project: String,
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
            Element::Type(token) | Element::Date(token) => (*token).into(),
            Element::Serial(width) => {
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
    fn fitting(&self) -> Vec<u64> {
        let width = |element: &Element| match element {
            Element::Serial(width) => Some(*width),
            _ => None,
        };
        let widths = self.elements.iter().filter_map(width).enumerate();
        let fit = |((serial, width), value): ((usize, usize), &u64)| {
            let limit = 10_u64.pow(u32::try_from(width).unwrap());
            if self.name(serial) == "SEQ" { *value } else { value % limit }
        };
        widths.zip(&self.serials).map(fit).collect()
    }

    fn series(&self) -> Series {
        let series = compile(|definition| {
            definition.template = self.template();
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
            let serials = 0..self.fitting().len();
            definition.serials = serials.map(|index| serial(&self.name(index))).collect();
        });
        series.unwrap_or_else(|error| panic!("{}: {error}", self.template()))
    }

    fn inputs(&self) -> Inputs {
        let given = NAMES.iter().zip(&self.values);
        Inputs {
            type_code: "TT".into(),
            project: Some(self.project.clone()),
            date: None,
            context: given.map(|(name, value)| (name.to_string(), value.clone())).collect(),
            ..Inputs::default()
        }
    }

    /// What must be read back.
    fn shown(&self) -> BTreeMap<String, String> {
        let shown = |element: &Element| match element {
            Element::Variable(index) => Some((NAMES[*index].into(), self.values[*index].clone())),
            Element::Project => Some(("PROJECT".into(), self.project.clone())),
            Element::Type(token) => Some((token[1..token.len() - 1].into(), "TT".into())),
            _ => None,
        };
        self.elements.iter().filter_map(shown).collect()
    }

    /// Date and time that must be read back: as far as the tokens go, worked out from the present.
    fn date_shown(&self) -> (Option<String>, Option<String>) {
        let at = TimeZone::get("Asia/Bangkok").unwrap().to_datetime(self.now());
        let shows = |tokens: &[&str]| {
            self.elements
                .iter()
                .any(|e| matches!(e, Element::Date(token) if tokens.contains(token)))
        };
        let date = if shows(&["{DATE:yyyyMMdd}", "{DATE:yyyyDDD}", "{DATE:yyyyMMddYYYY'W'ww}"]) {
            Some(at.strftime("%Y-%m-%d").to_string())
        } else if shows(&["{DATE:yyMM}"]) {
            Some(at.strftime("%Y-%m").to_string())
        } else if shows(&["{DATE:yyyy'Q'Q}"]) {
            Some(format!("{}-Q{}", at.year(), (at.month() + 2) / 3))
        } else if shows(&["{YEAR}", "{YEAR:B.E.}", "{YEAR:ROC}"]) {
            Some(at.year().to_string())
        } else {
            None
        };
        (date, shows(&["{DATE:HHmmssSSS}"]).then(|| at.strftime("%H:%M:%S.%3f").to_string()))
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
        ]
        .prop_map(Element::Date),
        (1_usize..=15).prop_map(Element::Serial),
    ]
}

/// A value: no `-`, no blank at either end, and nothing invisible.
const VALUE: &str = "[A-Za-z0-9ก-ฮ单.]([ 0-9ก-ฮ]{0,4}[A-Z])?";

prop_compose! {
    fn case()(
        mut elements in prop::collection::vec(element(), 0..6),
        (width, at, unpadded) in (1_usize..=15, 0_usize..6, any::<bool>()),
        values in [VALUE, VALUE, VALUE],
        project in VALUE,
        // 2000 to 2099, where two-digit years are read back.
        now_ms in 946_771_200_000_i64..4_102_358_400_000,
        serials in prop::collection::vec(1..=NUMBER_MAX, 8),
    ) -> Case {
        elements.insert(at.min(elements.len()), Element::Serial(width));
        Case { elements, unpadded, values, project, now_ms, serials }
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
        let values = case.fitting();
        let number = draft.mask.fill(&values).unwrap();
        prop_assert!(number.chars().count() <= TEXT_CHARS_MAX);
        prop_assert!(unicode_normalization::is_nfc(&number));
        let carried = Mask::parse(&draft.mask.to_text()).unwrap().fill(&values).unwrap();
        prop_assert_eq!(&carried, &number);

        let parsed = series.parse(&number).unwrap();
        let read: Vec<u64> = parsed.serials.iter().map(|serial| serial.value).collect();
        prop_assert_eq!(read, values);
        prop_assert_eq!(parsed.variables, case.shown());
        prop_assert_eq!((parsed.date, parsed.time), case.date_shown());
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
        if let Ok(draft) = series.draft(&request, Timestamp::UNIX_EPOCH) {
            let most: Vec<u64> = series.serials().iter().map(|serial| serial.max).collect();
            let number = draft.mask.fill(&most).unwrap();
            prop_assert!(number.chars().count() <= TEXT_CHARS_MAX);
        }
    }
}
