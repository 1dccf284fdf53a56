//! Cells: what one text or number of the files means under the declaration of its column.
//!
//! The door takes whatever number comes out and clamps it, so a mistake here cannot break a guarantee. What it relies on is
//! that each of these functions sees one cell and public declarations, and nothing else: no record can influence another.
//!
//! # Claim
//! Every content has a meaning: decoding is total.
//! # Arithmetic
//! - Space around a text is trimmed. Empty, unparsable and declared-missing texts, nulls and NaN are
//!   missing; for level columns an undeclared text is [`OTHER_CODE`].
//! - Integer columns take plain digits exactly, and any other notation (`3.0`, `1e3`) whose nearest double
//!   is whole, as that double; beyond the i64 range, and for infinities, the nearest end (`i64::MIN` itself
//!   is the missing mark, so the lower end is `i64::MIN + 1`). Numbers that are not whole are unparsable.
//! - Real columns take what Rust's correctly rounded parser takes, `inf` included.
//! - A column whose levels are `false` and `true` also takes `False`, `FALSE`, `0` and so on.
//! - A missing identifier is the identifier of empty text. Rows without one are nobody's: registration refuses them, or
//!   (`missing = "drop"`) they are never admitted. As *one* unit they would share one bound.
//! - Of a text longer than [`FIELD_CAP`] bytes only the first `FIELD_CAP + 1` are looked at: it is
//!   unparsable or undeclared.
//! # Checked by
//! `cell::tests::{whole_numbers, decimal_notation, any_text, reals, levels_and_others, ids, numbers_mean_what_their_texts_mean,
//! every_code_is_the_index_of_a_level}`
//!
//! ```
//! use reticent_expressions::Kind;
//! use reticent_expressions::cell::{MISSING_INTEGER, Meaning, trimmed};
//!
//! let missing = ["-9".to_owned()];
//! let Meaning::Integer(age) = Meaning::new(&Kind::Integer { lower: 17, upper: 90 }, &missing) else {
//!     unreachable!()
//! };
//! let read = |text: &str| age.text(trimmed(text.as_bytes()));
//! assert_eq!([read(" 30 "), read("3e1"), read("-9.0")], [30, 30, MISSING_INTEGER]);
//! ```

use std::collections::HashMap;

use crate::{Column, Kind, Missing};

/// Longest text, in bytes, that can mean something.
pub const FIELD_CAP: usize = 1 << 20;
/// The integer that stands for a missing cell of an integer column.
pub const MISSING_INTEGER: i64 = i64::MIN;
/// The code that stands for a missing cell of a text column.
pub const MISSING_CODE: u32 = u32::MAX;
/// The code that stands for a text which is not among the declared levels.
pub const OTHER_CODE: u32 = u32::MAX - 1;

/// What is looked at of a text; the functions for texts take it from here.
#[inline]
pub fn trimmed(text: &[u8]) -> &[u8] {
    text.get(..=FIELD_CAP).unwrap_or(text).trim_ascii()
}

/// What the cells of a column mean.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// Whole numbers.
    Integer(Integers),
    /// Real numbers.
    Real(Reals),
    /// Declared texts.
    Levels(Levels),
    /// Identifiers.
    Id(Ids),
}

impl Meaning {
    /// Of a column of this kind, with the texts that mean missing.
    pub fn new(kind: &Kind, missing: &[String]) -> Self {
        let texts = missing.iter().map(|t| t.as_bytes().trim_ascii());
        match kind {
            Kind::Integer { .. } => Self::Integer(Integers {
                missing: texts.filter_map(parse_integer).collect(),
            }),
            Kind::Real { .. } => Self::Real(Reals {
                missing: texts.filter_map(parse_real).collect(),
            }),
            Kind::Levels { levels, .. } => Self::Levels(Levels::new(levels, texts)),
            Kind::Id => {
                let missing: Vec<Vec<u8>> = texts.map(<[u8]>::to_vec).collect();
                let numbers = missing.iter().filter_map(|t| parse_real(t)).collect();
                Self::Id(Ids { missing, numbers })
            }
        }
    }
}

/// Whole numbers, and those of them that mean missing.
#[derive(Clone, Debug)]
pub struct Integers {
    missing: Vec<i64>,
}

impl Integers {
    /// Whether no number means missing: then [`nearest`] is all there is to a whole number.
    pub fn is_plain(&self) -> bool {
        self.missing.is_empty()
    }

    /// The number of a text.
    #[inline]
    pub fn text(&self, text: &[u8]) -> i64 {
        self.marked(parse_integer(text))
    }

    /// The number of a whole number; `None` is a null.
    #[inline]
    pub fn whole(&self, x: Option<i64>) -> i64 {
        self.marked(x.map(nearest))
    }

    /// The number of a float.
    #[inline]
    pub fn float(&self, x: Option<f64>) -> i64 {
        self.marked(x.and_then(whole_of))
    }

    fn marked(&self, x: Option<i64>) -> i64 {
        x.filter(|x| !self.missing.contains(x))
            .unwrap_or(MISSING_INTEGER)
    }
}

/// Real numbers, and those of them that mean missing.
#[derive(Clone, Debug)]
pub struct Reals {
    missing: Vec<f64>,
}

impl Reals {
    /// Whether no number means missing: then a float is its own meaning.
    pub fn is_plain(&self) -> bool {
        self.missing.is_empty()
    }

    /// The number of a text.
    #[inline]
    pub fn text(&self, text: &[u8]) -> f64 {
        self.float(parse_real(text))
    }

    /// The number of a whole number, rounded as parsing its text does; `None` is a null.
    #[inline]
    #[allow(
        clippy::cast_precision_loss,
        reason = "rounds as parsing decimal text does"
    )]
    pub fn whole(&self, x: Option<i64>) -> f64 {
        self.float(x.map(|x| x as f64))
    }

    /// The number of a float.
    #[inline]
    pub fn float(&self, x: Option<f64>) -> f64 {
        x.filter(|x| !self.missing.contains(x)).unwrap_or(f64::NAN)
    }
}

/// The codes of texts, of those texts that are whole numbers (sorted), and of null.
#[derive(Clone, Debug)]
pub struct Levels {
    /// Only looked up, so that the order in which a hash map walks does not matter.
    codes: HashMap<Vec<u8>, u32>,
    whole: Vec<(i64, u32)>,
    null: u32,
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

    /// The code of a text.
    #[inline]
    pub fn text(&self, text: &[u8]) -> u32 {
        self.codes.get(text).copied().unwrap_or(OTHER_CODE)
    }

    /// The code of a whole number: that of its decimal text. `None` is a null.
    #[inline]
    pub fn whole(&self, x: Option<i64>) -> u32 {
        let Some(x) = x else { return self.null };
        let at = self.whole.binary_search_by_key(&x, |(level, _)| *level);
        at.ok()
            .and_then(|i| self.whole.get(i))
            .map_or(OTHER_CODE, |(_, code)| *code)
    }
}

/// How codes of a level column count as indices of levels: missing cells are imputed (or dropped anyway), undeclared texts
/// substituted.
#[derive(Clone, Copy, Debug)]
pub struct Indices {
    last: u32,
    fill: u32,
    other: u32,
}

impl Indices {
    /// Of this column; of one without levels every index is 0.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "level counts are below 2^32; clamped to the levels"
    )]
    pub fn new(column: &Column) -> Self {
        let (levels, other) = match &column.kind {
            Kind::Levels { levels, other } => (levels.len(), other.unwrap_or(0)),
            _ => (0, 0),
        };
        let last = levels.saturating_sub(1) as u32;
        let fill = match column.missing {
            Missing::Impute(x) => x.clamp(0.0, f64::from(last)) as u32,
            Missing::Drop => 0,
        };
        let other = other.min(last);
        Self { last, fill, other }
    }

    /// The index for a code.
    #[inline]
    pub fn of(self, code: u32) -> u32 {
        match code {
            MISSING_CODE => self.fill,
            OTHER_CODE => self.other,
            code => code.min(self.last),
        }
    }
}

/// Identifiers, and the texts that mean that there is none: also in another notation of the same number, and NaN.
#[derive(Clone, Debug)]
pub struct Ids {
    missing: Vec<Vec<u8>>,
    numbers: Vec<f64>,
}

impl Ids {
    /// The identifying text; empty if it is missing.
    #[inline]
    pub fn text<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let may_be_nan = text.len() <= 4 && text.last().is_some_and(|c| b"nN".contains(c));
        let number = if may_be_nan || !self.numbers.is_empty() {
            parse_real(text)
        } else {
            None
        };
        let missing = self.missing.iter().any(|m| m == text)
            || number.is_some_and(|x| x.is_nan() || self.numbers.contains(&x));
        if missing { &[] } else { text }
    }
}

/// The nearest i64 that is not the missing mark.
#[inline]
pub fn nearest(x: i64) -> i64 {
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
    let plain = std::str::from_utf8(text).ok()?.parse().map(nearest);
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
    (x.trunc() == x).then(|| nearest(x as i64))
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "test values are small or meant to round"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn integers(missing: &[&str]) -> Integers {
        match Meaning::new(&Kind::Integer { lower: 0, upper: 1 }, &strings(missing)) {
            Meaning::Integer(integers) => integers,
            other => panic!("{other:?}"),
        }
    }

    fn real(missing: &[&str]) -> Reals {
        let kind = Kind::Real {
            lower: 0.0,
            upper: 1.0,
        };
        match Meaning::new(&kind, &strings(missing)) {
            Meaning::Real(reals) => reals,
            other => panic!("{other:?}"),
        }
    }

    fn levels(levels: &[&str], missing: &[&str]) -> Levels {
        let kind = Kind::Levels {
            levels: strings(levels),
            other: None,
        };
        match Meaning::new(&kind, &strings(missing)) {
            Meaning::Levels(levels) => levels,
            other => panic!("{other:?}"),
        }
    }

    fn each<T>(texts: &[&str], read: impl Fn(&[u8]) -> T) -> Vec<T> {
        texts.iter().map(|t| read(trimmed(t.as_bytes()))).collect()
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
        let declared = integers(&["-9", "NA", "99.0"]);
        let found = each(&[" 5\t", "-9", "-9.0", "NA", "99"], |t| declared.text(t));
        let m = MISSING_INTEGER;
        assert_eq!(found, [5, m, m, m, m]);
    }

    #[test]
    fn reals() {
        let declared = real(&["-1"]);
        let texts = ["0.1", " 1e-3 ", "inf", "-inf", "nan", "x", "-1.0", ""];
        let found = each(&texts, |t| declared.text(t));
        assert_eq!(found[..4], [0.1, 1e-3, f64::INFINITY, f64::NEG_INFINITY]);
        assert!(found[4..].iter().all(|x| x.is_nan()));
    }

    #[test]
    fn levels_and_others() {
        let (o, m) = (OTHER_CODE, MISSING_CODE);
        let declared = levels(&["a", " b "], &["?"]);
        let found = each(&["a", "b ", "B", "", "?", "  "], |t| declared.text(t));
        assert_eq!(found, [0, 1, o, m, m, m]);
        // Empty text can be declared a level; a missing text wins over a level of the same name.
        let declared = levels(&["", "?"], &["?"]);
        assert_eq!(each(&["", "?"], |t| declared.text(t)), [0, m]);
        assert_eq!(declared.whole(None), 0);
        let declared = levels(&["true", "false"], &[]);
        let found = each(&["TRUE", "false", "0", "1", "yes"], |t| declared.text(t));
        assert_eq!(found, [0, 1, 1, 0, o]);
        let declared = levels(&["yes", "no"], &[]);
        assert_eq!(each(&["TRUE", "yes"], |t| declared.text(t)), [o, 0]);
    }

    #[test]
    fn every_code_is_the_index_of_a_level() {
        let column = |levels: &[&str], other, missing| Column {
            name: "c".to_owned(),
            kind: Kind::Levels {
                levels: strings(levels),
                other,
            },
            missing,
        };
        let of = |column: &Column| {
            let index = Indices::new(column);
            [0, 1, 2, 7, MISSING_CODE, OTHER_CODE].map(|code| index.of(code))
        };
        let three = column(&["a", "b", "c"], Some(1), Missing::Impute(2.0));
        assert_eq!(of(&three), [0, 1, 2, 2, 2, 1]);
        let odd = column(&["a", "b"], Some(9), Missing::Impute(f64::NAN));
        assert_eq!(of(&odd), [0, 1, 1, 1, 0, 1]);
        assert_eq!(of(&column(&[], None, Missing::Drop)), [0; 6]);
        let mut none = three;
        none.kind = Kind::Id;
        assert_eq!(of(&none), [0; 6]);
    }

    #[test]
    fn ids() {
        let Meaning::Id(declared) = Meaning::new(&Kind::Id, &strings(&[" none"])) else {
            panic!()
        };
        let texts = ["p1", " p1", "", "none", "p2"].map(str::as_bytes);
        let found = texts.map(|t| declared.text(trimmed(t)));
        assert_eq!(found, ["p1", "p1", "", "", "p2"].map(str::as_bytes));
    }

    /// Numbers stored as such mean what their decimal texts mean.
    #[test]
    fn numbers_mean_what_their_texts_mean() {
        let (ints, reals) = (integers(&["7"]), real(&["7"]));
        let declared = levels(&["3", "03", "-5", "7"], &["7"]);
        for x in [0, 3, -5, 7, 1 << 60, i64::MIN, i64::MAX] {
            let text = x.to_string();
            let text = text.as_bytes();
            assert_eq!(ints.whole(Some(x)), ints.text(text));
            assert_eq!(declared.whole(Some(x)), declared.text(text));
            let (a, b) = (reals.whole(Some(x)), reals.text(text));
            assert!(a.to_bits() == b.to_bits(), "{x}");
        }
        for x in [0.5, 3.0, 7.0, 1e300, f64::INFINITY, f64::NAN] {
            let text = x.to_string();
            assert_eq!(ints.float(Some(x)), ints.text(text.as_bytes()));
        }
        assert_eq!((ints.whole(None), ints.float(None)), (i64::MIN, i64::MIN));
        assert!(reals.float(None).is_nan() && reals.whole(None).is_nan());
        assert_eq!(declared.whole(None), MISSING_CODE);
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
