//! Cells: what the bytes of a CSV field or an Arrow value mean under the declared schema.
//!
//! # Claim
//! A decoded cell depends on that cell's own content and on public declarations, on nothing else, and
//! every content has a meaning: decoding is total. A CSV and a Parquet copy of one table decode alike.
//! # Arithmetic
//! - Space around a text is trimmed. Empty, unparsable and declared-missing texts, nulls and NaN are
//!   missing; for level columns an undeclared text is [`OTHER_CODE`].
//! - Integer columns take plain digits exactly, and any other notation (`3.0`, `1e3`) whose nearest double
//!   is whole, as that double; beyond the i64 range, and for infinities, the nearest end (`i64::MIN` itself
//!   is the missing mark, so the lower end is `i64::MIN + 1`). Numbers that are not whole are unparsable.
//! - Real columns take what Rust's correctly rounded parser takes, `inf` included.
//! - Numbers in level and id columns are compared as decimal text, whole floats without a fraction;
//!   Boolean values as `false` and `true`. A column whose levels are `false` and `true` also takes
//!   `False`, `FALSE`, `0` and so on. Dates and times count in their stored unit for numeric columns.
//! - A missing identifier is the identifier of empty text: all rows without one form *one* unit, whose
//!   contribution is bounded like any other's. A person whose rows lack the identifier is hidden among
//!   them, and adding or removing rows without one changes that unit only.
//! - Of a text longer than [`FIELD_CAP`] bytes only the first `FIELD_CAP + 1` are looked at: it is
//!   unparsable or undeclared, and a 16 GB "field" (a quote left open) costs no memory.
//! # Checked by
//! `cells::tests::{whole_numbers, decimal_notation, reals, levels_and_others, ids, arrow_types_agree_with_text}`,
//! `scan::tests::csv_and_parquet_agree`

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Float64Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};
use arrow::error::ArrowError;
use reticent_mechanisms::rows::{
    Cells, Column, Kind, MISSING_CODE, MISSING_INTEGER, OTHER_CODE, id_digest,
};

/// Longest text, in bytes, that can mean something.
pub const FIELD_CAP: usize = 1 << 20;

/// Decodes the cells of one declared column; `missing` holds the declared missing values, decoded.
pub(crate) enum Decoder {
    Integer { missing: Vec<i64> },
    Real { missing: Vec<f64> },
    Levels(Levels),
    Id { missing: Vec<u128> },
}

/// The codes of texts, of those texts that are whole numbers (sorted), and of null.
pub(crate) struct Levels {
    codes: HashMap<Vec<u8>, u32>,
    whole: Vec<(i64, u32)>,
    null: u32,
}

impl Decoder {
    /// A decoder for the column, with the texts that mean missing.
    pub(crate) fn new(column: &Column, missing: &[String]) -> Self {
        let texts = missing.iter().map(|t| t.as_bytes().trim_ascii());
        match &column.kind {
            Kind::Integer { .. } => {
                let missing = texts.filter_map(parse_integer).collect();
                Self::Integer { missing }
            }
            Kind::Real { .. } => {
                let missing = texts.filter_map(parse_real).collect();
                Self::Real { missing }
            }
            Kind::Levels { levels, .. } => Self::Levels(Levels::new(levels, texts)),
            Kind::Id => {
                let missing = texts.map(id_digest).collect();
                Self::Id { missing }
            }
        }
    }

    /// Decodes texts; `None` is a null or an absent cell.
    pub(crate) fn texts<'a>(&self, cells: impl Iterator<Item = Option<&'a [u8]>>) -> Cells {
        let cells = cells.map(Option::unwrap_or_default);
        let cells = cells.map(|t| t.get(..=FIELD_CAP).unwrap_or(t).trim_ascii());
        match self {
            Self::Integer { missing } => {
                let values = cells.map(|t| parse_integer(t).unwrap_or(MISSING_INTEGER));
                Cells::Integer(marked(values, missing, MISSING_INTEGER))
            }
            Self::Real { missing } => {
                let values = cells.map(|t| parse_real(t).unwrap_or(f64::NAN));
                Cells::Real(marked(values, missing, f64::NAN))
            }
            Self::Levels(levels) => {
                let code = |t| levels.codes.get(t).copied().unwrap_or(OTHER_CODE);
                Cells::Code(cells.map(code).collect())
            }
            Self::Id { missing } => {
                Cells::Id(marked(cells.map(id_digest), missing, id_digest(b"")))
            }
        }
    }

    /// Decodes an Arrow column of a type that [`supported`] admits; rarer types are first cast to one
    /// of a few.
    pub(crate) fn array(&self, array: &ArrayRef) -> Result<Cells, ArrowError> {
        let numeric = matches!(self, Self::Integer { .. } | Self::Real { .. });
        let target = match array.data_type() {
            DataType::Int64 => return Ok(self.wholes(array.as_primitive())),
            DataType::Float64 => return Ok(self.reals(array.as_primitive())),
            DataType::LargeBinary => return Ok(self.texts(array.as_binary::<i64>().iter())),
            DataType::Dictionary(_, value) => return self.dictionary(array, value),
            kind if is_text(kind) || kind.is_null() => DataType::LargeBinary,
            kind if kind.is_floating() => DataType::Float64,
            // Beyond i64 the exact decimal text decides, as in CSV.
            kind if kind.is_integer() && *kind != DataType::UInt64 => DataType::Int64,
            kind if numeric && (kind.is_temporal() || *kind == DataType::Boolean) => {
                DataType::Int64
            }
            _ => DataType::Utf8,
        };
        self.array(&cast(array, &target)?)
    }

    fn wholes(&self, array: &Int64Array) -> Cells {
        match self {
            // The common case is one loop that vectorises.
            Self::Integer { missing } if missing.is_empty() && array.null_count() == 0 => {
                Cells::Integer(array.values().iter().copied().map(unmarked).collect())
            }
            Self::Integer { missing } => {
                let values = array.iter().map(|x| x.map_or(MISSING_INTEGER, unmarked));
                Cells::Integer(marked(values, missing, MISSING_INTEGER))
            }
            #[allow(
                clippy::cast_precision_loss,
                reason = "rounds as parsing decimal text does"
            )]
            Self::Real { missing } => {
                let values = array.iter().map(|x| x.map_or(f64::NAN, |x| x as f64));
                Cells::Real(marked(values, missing, f64::NAN))
            }
            Self::Levels(levels) => Cells::Code(array.iter().map(|x| levels.whole(x)).collect()),
            Self::Id { .. } => self.displayed(array.iter()),
        }
    }

    fn reals(&self, array: &Float64Array) -> Cells {
        match self {
            Self::Integer { missing } => {
                let values = array
                    .iter()
                    .map(|x| x.and_then(whole_of).unwrap_or(MISSING_INTEGER));
                Cells::Integer(marked(values, missing, MISSING_INTEGER))
            }
            // The common case is one copy: NaN is the missing mark already.
            Self::Real { missing } if missing.is_empty() && array.null_count() == 0 => {
                Cells::Real(array.values().to_vec())
            }
            Self::Real { missing } => {
                let values = array.iter().map(|x| x.unwrap_or(f64::NAN));
                Cells::Real(marked(values, missing, f64::NAN))
            }
            // Adding 0 turns −0 into 0.
            _ => self.displayed(
                array
                    .iter()
                    .map(|x| x.filter(|x| !x.is_nan()).map(|x| x + 0.0)),
            ),
        }
    }

    /// Decodes numbers by their text: for floats the shortest that reads back, without exponent.
    fn displayed<T: ToString>(&self, values: impl Iterator<Item = Option<T>>) -> Cells {
        let texts: Vec<Option<String>> = values.map(|x| x.map(|x| x.to_string())).collect();
        self.texts(texts.iter().map(|t| t.as_deref().map(str::as_bytes)))
    }

    /// Looks up each distinct level once, unless there are more of them than rows.
    fn dictionary(&self, array: &ArrayRef, value: &DataType) -> Result<Cells, ArrowError> {
        let (key, boxed) = (Box::new(DataType::Int32), Box::new(value.clone()));
        let keyed = cast(array, &DataType::Dictionary(key, boxed))?;
        let keyed: &DictionaryArray<Int32Type> = keyed.as_dictionary();
        if let Self::Levels(levels) = self
            && keyed.values().len() <= keyed.len()
            && let Cells::Code(codes) = self.array(keyed.values())?
        {
            let code = |k: i32| usize::try_from(k).ok().and_then(|k| codes.get(k)).copied();
            let keys = keyed.keys().iter();
            return Ok(Cells::Code(
                keys.map(|k| k.and_then(code).unwrap_or(levels.null))
                    .collect(),
            ));
        }
        self.array(&cast(array, value)?)
    }
}

impl Levels {
    fn new<'a>(levels: &[String], missing: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut codes: HashMap<Vec<u8>, u32> =
            missing.map(|t| (t.to_vec(), MISSING_CODE)).collect();
        for (code, level) in (0u32..).zip(levels) {
            codes
                .entry(level.as_bytes().trim_ascii().to_vec())
                .or_insert(code);
        }
        let boolean = match levels {
            [a, b] if a == "false" && b == "true" => Some((0, 1)),
            [a, b] if a == "true" && b == "false" => Some((1, 0)),
            _ => None,
        };
        if let Some((no, yes)) = boolean {
            let no = [&b"False"[..], b"FALSE", b"0"].map(|t| (t, no));
            let yes = [&b"True"[..], b"TRUE", b"1"].map(|t| (t, yes));
            for (text, code) in no.into_iter().chain(yes) {
                codes.entry(text.to_vec()).or_insert(code);
            }
        }
        let null = *codes.entry(Vec::new()).or_insert(MISSING_CODE);
        // Only canonical texts: the level "03" is not the number 3.
        let number = |t: &[u8]| parse_integer(t).filter(|x| x.to_string().as_bytes() == t);
        let whole = codes.iter().filter_map(|(t, c)| number(t).map(|x| (x, *c)));
        let mut whole: Vec<(i64, u32)> = whole.collect();
        whole.sort_unstable();
        Self { codes, whole, null }
    }

    fn whole(&self, x: Option<i64>) -> u32 {
        let Some(x) = x else { return self.null };
        let at = self.whole.binary_search_by_key(&x, |(level, _)| *level);
        at.ok()
            .and_then(|i| self.whole.get(i))
            .map_or(OTHER_CODE, |(_, code)| *code)
    }
}

/// Whether Arrow values of this type can be decoded at all.
pub(crate) fn supported(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => is_text(value) || value.is_primitive(),
        DataType::Interval(_) => false,
        kind => {
            is_text(kind) || kind.is_primitive() || kind.is_null() || *kind == DataType::Boolean
        }
    }
}

/// Whether the type holds text or bytes.
pub(crate) fn is_text(kind: &DataType) -> bool {
    kind.is_string() || kind.is_binary()
}

/// The values, with the mark in place of declared missing ones.
fn marked<T: PartialEq + Copy>(values: impl Iterator<Item = T>, missing: &[T], mark: T) -> Vec<T> {
    values
        .map(|x| if missing.contains(&x) { mark } else { x })
        .collect()
}

/// The nearest i64 that is not the missing mark.
fn unmarked(x: i64) -> i64 {
    x.max(i64::MIN.saturating_add(1))
}

/// A real number, or `None` if the text is not one.
fn parse_real(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text)
        .ok()
        .filter(|t| t.len() <= FIELD_CAP)?
        .parse()
        .ok()
}

/// A whole number in any decimal notation, saturated; `None` if the text is not one.
fn parse_integer(text: &[u8]) -> Option<i64> {
    let plain = std::str::from_utf8(text).ok()?.parse().map(unmarked);
    plain
        .ok()
        .filter(|_| text.len() <= FIELD_CAP)
        .or_else(|| parse_real(text).and_then(whole_of))
}

/// A float that is whole (or infinite) as the nearest i64 above the missing mark.
#[allow(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "whole by the test; `as` saturates"
)]
fn whole_of(x: f64) -> Option<i64> {
    (x.trunc() == x).then(|| unmarked(x as i64))
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "test values are small or meant to round"
)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Date32Array, Float32Array, Int8Array, LargeStringArray, StringViewArray,
        TimestampSecondArray, UInt16Array, UInt64Array,
    };
    use proptest::prelude::*;
    use reticent_mechanisms::rows::Missing;

    use super::*;

    fn decoder(kind: Kind, missing: &[&str]) -> Decoder {
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        Decoder::new(
            &Column {
                name: "c".into(),
                kind,
                missing: Missing::Drop,
            },
            &missing,
        )
    }

    fn integer() -> Kind {
        Kind::Integer { lower: 0, upper: 1 }
    }

    fn real() -> Kind {
        Kind::Real {
            lower: 0.0,
            upper: 1.0,
        }
    }

    fn levels(levels: &[&str]) -> Kind {
        let levels = levels.iter().map(ToString::to_string).collect();
        Kind::Levels {
            levels,
            other: None,
        }
    }

    fn read(decoder: &Decoder, texts: &[&str]) -> Cells {
        decoder.texts(texts.iter().map(|t| Some(t.as_bytes())))
    }

    #[test]
    fn whole_numbers() {
        let end = i64::MAX;
        for (text, value) in [
            ("3", Some(3)),
            ("+3", Some(3)),
            ("-3", Some(-3)),
            ("3.0", Some(3)),
            ("3.", Some(3)),
            ("1e3", Some(1000)),
            ("12.50e1", Some(125)),
            ("1200e-2", Some(12)),
            ("1205e-2", None),
            ("0.5", None),
            (".5", None),
            ("-0.0", Some(0)),
            ("0e999999999999999999999", Some(0)),
            ("1e999999999999999999999", Some(end)),
            ("1e-999999999999999999999", Some(0)),
            ("9223372036854775807", Some(end)),
            ("9223372036854775808", Some(end)),
            ("-9223372036854775807", Some(-end)),
            ("-9223372036854775808", Some(-end)),
            ("9007199254740993", Some(9_007_199_254_740_993)),
            ("9007199254740993.0", Some(9_007_199_254_740_992)),
            ("00000000000000000000000000007", Some(7)),
            ("inf", Some(end)),
            ("-Infinity", Some(-end)),
            ("nan", None),
            ("", None),
            ("-", None),
            ("+", None),
            (".", None),
            ("e5", None),
            ("1e", None),
            ("--1", None),
            ("+-1", None),
            ("1_000", None),
            ("1,000", None),
            ("0x10", None),
            ("3 4", None),
            ("٣", None),
        ] {
            assert_eq!(parse_integer(text.as_bytes()), value, "{text}");
        }
        let found = read(
            &decoder(integer(), &["-9", "NA", "99.0"]),
            &[" 5\t", "-9", "-9.0", "NA", "99"],
        );
        let m = MISSING_INTEGER;
        assert_eq!(found, Cells::Integer(vec![5, m, m, m, m]));
    }

    #[test]
    fn reals() {
        let found = read(
            &decoder(real(), &["-1"]),
            &["0.1", " 1e-3 ", "inf", "-inf", "nan", "x", "-1.0", ""],
        );
        let Cells::Real(found) = found else { panic!() };
        assert_eq!(found[..4], [0.1, 1e-3, f64::INFINITY, f64::NEG_INFINITY]);
        assert!(found[4..].iter().all(|x| x.is_nan()));
    }

    #[test]
    fn levels_and_others() {
        let (o, m) = (OTHER_CODE, MISSING_CODE);
        let found = read(
            &decoder(levels(&["a", " b "]), &["?"]),
            &["a", "b ", "B", "", "?", "  "],
        );
        assert_eq!(found, Cells::Code(vec![0, 1, o, m, m, m]));
        // Empty text can be declared a level; a missing text wins over a level of the same name.
        let found = read(&decoder(levels(&["", "?"]), &["?"]), &["", "?"]);
        assert_eq!(found, Cells::Code(vec![0, m]));
        let found = read(
            &decoder(levels(&["true", "false"]), &[]),
            &["TRUE", "false", "0", "1", "yes"],
        );
        assert_eq!(found, Cells::Code(vec![0, 1, 1, 0, o]));
        let found = read(&decoder(levels(&["yes", "no"]), &[]), &["TRUE", "yes"]);
        assert_eq!(found, Cells::Code(vec![o, 0]));
    }

    #[test]
    fn ids() {
        let found = read(
            &decoder(Kind::Id, &["none"]),
            &["p1", " p1", "", "none", "p2"],
        );
        let Cells::Id(found) = found else { panic!() };
        assert_eq!(found[0], found[1]);
        assert_eq!((found[2], found[3]), (id_digest(b""), id_digest(b"")));
        assert!(found[0] != found[4] && found[0] != found[2]);
    }

    /// lessons 47, 84: every Arrow type that is accepted means what its CSV text means.
    #[test]
    fn arrow_types_agree_with_text() {
        let arrays: Vec<(ArrayRef, Vec<&str>)> = vec![
            (
                Arc::new(Int8Array::from(vec![Some(-7), None])),
                vec!["-7", ""],
            ),
            (
                Arc::new(UInt16Array::from(vec![Some(1), Some(65535)])),
                vec!["1", "65535"],
            ),
            (
                Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
                vec!["18446744073709551615", ""],
            ),
            (
                Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(i64::MAX)])),
                vec!["-9223372036854775808", "9223372036854775807"],
            ),
            (
                Arc::new(Float32Array::from(vec![Some(1.0), Some(0.5)])),
                vec!["1", "0.5"],
            ),
            (
                Arc::new(Float64Array::from(vec![
                    Some(-0.0),
                    Some(1e20),
                    Some(0.1),
                    Some(f64::NAN),
                    None,
                ])),
                vec!["0", "100000000000000000000", "0.1", "", ""],
            ),
            (
                Arc::new(LargeStringArray::from(vec![Some(" 1 "), None])),
                vec!["1", ""],
            ),
            (
                Arc::new(StringViewArray::from(vec![Some("x"), Some("1e2")])),
                vec!["x", "1e2"],
            ),
        ];
        for kind in [
            integer(),
            real(),
            levels(&["1", "0.5", "-7", "x", "0"]),
            Kind::Id,
        ] {
            let decoder = decoder(kind, &["65535"]);
            for (array, texts) in &arrays {
                let (a, b) = (decoder.array(array).unwrap(), read(&decoder, texts));
                // Debug text, because NaN is the missing mark of reals.
                let same = match (&a, &b) {
                    (Cells::Real(a), Cells::Real(b)) => {
                        format!("{a:?}").replace("-0.0", "0.0") == format!("{b:?}")
                    }
                    _ => a == b,
                };
                assert!(same, "{:?} {texts:?}: {a:?} {b:?}", array.data_type());
            }
        }
        let days: ArrayRef = Arc::new(Date32Array::from(vec![19_000]));
        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![86_400]));
        let truth: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
        assert_eq!(
            decoder(integer(), &[]).array(&days).unwrap(),
            Cells::Integer(vec![19_000])
        );
        assert_eq!(
            decoder(real(), &[]).array(&seconds).unwrap(),
            Cells::Real(vec![86_400.0])
        );
        assert_eq!(
            decoder(levels(&["2022-01-08"]), &[]).array(&days).unwrap(),
            Cells::Code(vec![0])
        );
        assert_eq!(
            decoder(integer(), &[]).array(&truth).unwrap(),
            Cells::Integer(vec![1])
        );
        assert_eq!(
            decoder(levels(&["true"]), &[]).array(&truth).unwrap(),
            Cells::Code(vec![0])
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Against wide integer arithmetic: digits d, p decimal places, exponent e.
        #[test]
        fn decimal_notation(d in 0u64..1_000_000_000_000, p in 0usize..14, e in -15i32..15, minus: bool) {
            let digits = format!("{d:014}");
            let (whole, fraction) = digits.split_at(14 - p);
            let text = format!("{}{whole}.{fraction}e{e}", if minus { "-" } else { "" });
            let power = e - i32::try_from(p).unwrap();
            let scale = 10i128.pow(power.unsigned_abs());
            let d = i128::from(d);
            let value = if power >= 0 { Some(d * scale) } else { (d % scale == 0).then(|| d / scale) };
            let nearest = |v: i128| if v <= 1 << 53 { i64::try_from(v).unwrap() } else { v as f64 as i64 };
            let value = value.map(nearest).map(|v| if minus { -v } else { v });
            prop_assert_eq!(parse_integer(text.as_bytes()), value, "{}", text);
        }

        /// Any text: total, and whole exactly when the real parser agrees.
        #[test]
        fn any_text(text in "[-+0-9.eEinfa ]{0,12}") {
            if let Some(x) = parse_integer(text.as_bytes()) {
                let real = parse_real(text.as_bytes()).unwrap();
                prop_assert!(real.is_infinite() || (real - x as f64).abs() <= real.abs() * 1e-15 || x.abs() == i64::MAX);
            }
        }
    }
}
