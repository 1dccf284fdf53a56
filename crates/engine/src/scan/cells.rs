//! Cells: what the bytes of a CSV field or an Arrow value mean under the declared schema.
//!
//! # Claim
//! A decoded cell depends on that cell's own content and on public declarations, on nothing else, and
//! every content has a meaning: decoding is total. A CSV and a Parquet copy of one table decode alike.
//! # Arithmetic
//! - Space around a text is trimmed. Empty, unparsable and declared-missing texts, nulls and NaN are
//!   missing; for level columns an undeclared text is [`OTHER_CODE`].
//! - Integer columns take any decimal notation of a whole number (`3`, `+3`, `3.0`, `1e3`), read exactly;
//!   beyond the i64 range, and for infinities, the nearest end (`i64::MIN` itself is the missing mark, so
//!   the lower end is `i64::MIN + 1`). A number that is not whole is unparsable there.
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
//! `cells::tests::{whole_numbers, reals, levels, ids, arrow_types_agree_with_text}`,
//! `scan::tests::csv_and_parquet_agree`

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type,
};
use arrow::error::ArrowError;
use reticent_mechanisms::rows::{Cells, Column, Kind, MISSING_CODE, MISSING_INTEGER, OTHER_CODE, id_digest};

/// Longest text, in bytes, that can mean something.
pub const FIELD_CAP: usize = 1 << 20;

/// Decodes the cells of one declared column.
pub(crate) enum Decoder {
    Integer { missing: Vec<i64> },
    Real { missing: Vec<f64> },
    Levels { codes: HashMap<Vec<u8>, u32>, whole: Vec<(i64, u32)> },
    Id { missing: Vec<Vec<u8>> },
}

impl Decoder {
    /// A decoder for the column, with the texts that mean missing.
    pub(crate) fn new(column: &Column, missing: &[String]) -> Self {
        let texts = || missing.iter().map(|t| trim(t.as_bytes()));
        match &column.kind {
            Kind::Integer { .. } => Self::Integer { missing: texts().filter_map(parse_integer).collect() },
            Kind::Real { .. } => {
                Self::Real { missing: texts().filter_map(parse_real).filter(|x| !x.is_nan()).collect() }
            }
            Kind::Levels { levels, .. } => levels_decoder(levels, texts()),
            Kind::Id => Self::Id { missing: texts().map(<[u8]>::to_vec).collect() },
        }
    }

    /// Decodes texts; `None` is a null or an absent cell.
    pub(crate) fn texts<'a>(&self, cells: impl Iterator<Item = Option<&'a [u8]>>) -> Cells {
        let cells = cells.map(|c| trim(cap(c.unwrap_or_default())));
        match self {
            Self::Integer { missing } => {
                Cells::Integer(cells.map(|t| parse_integer(t).map_or(MISSING_INTEGER, |x| keep(x, missing))).collect())
            }
            Self::Real { missing } => {
                Cells::Real(cells.map(|t| parse_real(t).map_or(f64::NAN, |x| keep_real(x, missing))).collect())
            }
            Self::Levels { codes, .. } => {
                Cells::Code(cells.map(|t| codes.get(t).copied().unwrap_or(OTHER_CODE)).collect())
            }
            Self::Id { missing } => Cells::Id(cells.map(|t| digest(t, missing)).collect()),
        }
    }

    /// Decodes an Arrow column of a type that [`supported`] admits.
    pub(crate) fn array(&self, array: &ArrayRef) -> Result<Cells, ArrowError> {
        Ok(match array.data_type() {
            DataType::Int8 => self.whole_array::<Int8Type>(array),
            DataType::Int16 => self.whole_array::<Int16Type>(array),
            DataType::Int32 => self.whole_array::<Int32Type>(array),
            DataType::Int64 => self.whole_array::<Int64Type>(array),
            DataType::UInt8 => self.whole_array::<UInt8Type>(array),
            DataType::UInt16 => self.whole_array::<UInt16Type>(array),
            DataType::UInt32 => self.whole_array::<UInt32Type>(array),
            DataType::Float16 => self.reals(array.as_primitive::<Float16Type>().iter().map(|x| x.map(f64::from))),
            DataType::Float32 => self.reals(array.as_primitive::<Float32Type>().iter().map(|x| x.map(f64::from))),
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>();
                match self {
                    // The common case is one copy: NaN is the missing mark already.
                    Self::Real { missing } if missing.is_empty() && values.null_count() == 0 => {
                        Cells::Real(values.values().to_vec())
                    }
                    _ => self.reals(values.iter()),
                }
            }
            DataType::Boolean => match self {
                Self::Integer { .. } | Self::Real { .. } => {
                    self.wholes(array.as_boolean().iter().map(|x| x.map(i64::from)))
                }
                _ => self.texts(array.as_boolean().iter().map(|x| x.map(|x| if x { &b"true"[..] } else { b"false" }))),
            },
            DataType::Utf8 => self.texts(array.as_string::<i32>().iter().map(|t| t.map(str::as_bytes))),
            DataType::LargeUtf8 => self.texts(array.as_string::<i64>().iter().map(|t| t.map(str::as_bytes))),
            DataType::Utf8View => self.texts(array.as_string_view().iter().map(|t| t.map(str::as_bytes))),
            DataType::Binary => self.texts(array.as_binary::<i32>().iter()),
            DataType::LargeBinary => self.texts(array.as_binary::<i64>().iter()),
            DataType::BinaryView => self.texts(array.as_binary_view().iter()),
            DataType::FixedSizeBinary(_) => self.texts(array.as_fixed_size_binary().iter()),
            DataType::Null => self.texts((0..array.len()).map(|_| None)),
            DataType::Dictionary(_, value) => self.dictionary(array, value)?,
            time if is_time(time) && matches!(self, Self::Integer { .. } | Self::Real { .. }) => {
                self.array(&cast(array, &DataType::Int64)?)?
            }
            // Unsigned 64-bit numbers and decimals go through their exact decimal text, as in CSV.
            other if supported(other) => self.array(&cast(array, &DataType::Utf8)?)?,
            other => return Err(ArrowError::NotYetImplemented(format!("cells of type {other}"))),
        })
    }

    fn whole_array<T: ArrowPrimitiveType<Native: Into<i64>>>(&self, array: &ArrayRef) -> Cells {
        let values: &PrimitiveArray<T> = array.as_primitive();
        if values.null_count() == 0 {
            self.wholes(values.values().iter().map(|x| Some((*x).into())))
        } else {
            self.wholes(values.iter().map(|x| x.map(Into::into)))
        }
    }

    fn wholes(&self, values: impl Iterator<Item = Option<i64>>) -> Cells {
        match self {
            Self::Integer { missing } => {
                Cells::Integer(values.map(|x| x.map_or(MISSING_INTEGER, |x| keep(unmarked(x), missing))).collect())
            }
            #[allow(clippy::cast_precision_loss, reason = "rounds to nearest, as parsing its decimal text does")]
            Self::Real { missing } => {
                Cells::Real(values.map(|x| x.map_or(f64::NAN, |x| keep_real(x as f64, missing))).collect())
            }
            Self::Levels { codes, whole } => {
                let null = codes.get(&b""[..]).copied().unwrap_or(MISSING_CODE);
                let code = |x: i64| {
                    let at = whole.binary_search_by_key(&x, |(level, _)| *level).ok();
                    at.and_then(|i| whole.get(i)).map_or(OTHER_CODE, |(_, code)| *code)
                };
                Cells::Code(values.map(|x| x.map_or(null, code)).collect())
            }
            Self::Id { missing } => Cells::Id(
                values.map(|x| digest(x.map(|x| x.to_string()).unwrap_or_default().as_bytes(), missing)).collect(),
            ),
        }
    }

    fn reals(&self, values: impl Iterator<Item = Option<f64>>) -> Cells {
        match self {
            Self::Integer { missing } => Cells::Integer(
                values.map(|x| x.and_then(whole_of).map_or(MISSING_INTEGER, |x| keep(x, missing))).collect(),
            ),
            Self::Real { missing } => {
                Cells::Real(values.map(|x| x.map_or(f64::NAN, |x| keep_real(x, missing))).collect())
            }
            // `Display` writes a whole float without fraction or exponent, and otherwise the shortest
            // decimal text that reads back.
            Self::Levels { .. } | Self::Id { .. } => {
                let texts: Vec<Option<String>> =
                    values.map(|x| x.filter(|x| !x.is_nan()).map(|x| (x + 0.0).to_string())).collect();
                self.texts(texts.iter().map(|t| t.as_deref().map(str::as_bytes)))
            }
        }
    }

    /// Decodes each distinct value once, unless there are more of them than rows.
    fn dictionary(&self, array: &ArrayRef, value: &DataType) -> Result<Cells, ArrowError> {
        let keyed = cast(array, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(value.clone())))?;
        let keyed: &DictionaryArray<Int32Type> = keyed.as_dictionary();
        if keyed.values().len() > keyed.len() || keyed.values().is_empty() {
            return self.array(&cast(array, value)?);
        }
        let null = self.texts(std::iter::once(None));
        Ok(match (self.array(keyed.values())?, null) {
            (Cells::Integer(v), _) => Cells::Integer(gather(keyed, &v, MISSING_INTEGER)),
            (Cells::Real(v), _) => Cells::Real(gather(keyed, &v, f64::NAN)),
            (Cells::Code(v), Cells::Code(n)) => {
                Cells::Code(gather(keyed, &v, n.first().copied().unwrap_or(MISSING_CODE)))
            }
            (Cells::Id(v), Cells::Id(n)) => Cells::Id(gather(keyed, &v, n.first().copied().unwrap_or_default())),
            _ => Cells::Unread,
        })
    }
}

/// The value at each key of the dictionary.
fn gather<T: Copy>(keyed: &DictionaryArray<Int32Type>, of: &[T], null: T) -> Vec<T> {
    let at = |k: i32| usize::try_from(k).ok().and_then(|k| of.get(k)).copied().unwrap_or(null);
    if keyed.keys().null_count() == 0 {
        keyed.keys().values().iter().map(|k| at(*k)).collect()
    } else {
        keyed.keys().iter().map(|k| k.map_or(null, at)).collect()
    }
}

/// Whether Arrow values of this type can be decoded at all.
pub(crate) fn supported(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => !value.is_nested() && supported(value),
        DataType::Interval(_) => false,
        kind => {
            kind.is_primitive()
                || is_text(kind)
                || matches!(kind, DataType::Boolean | DataType::Null | DataType::FixedSizeBinary(_))
        }
    }
}

/// Whether the type holds variable-length text or bytes.
pub(crate) fn is_text(kind: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(kind, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

fn is_time(kind: &DataType) -> bool {
    kind.is_temporal() && !matches!(kind, DataType::Interval(_))
}

/// The text without ASCII white space at its ends.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

fn cap(text: &[u8]) -> &[u8] {
    text.get(..=FIELD_CAP).unwrap_or(text)
}

fn unmarked(x: i64) -> i64 {
    if x == MISSING_INTEGER { i64::MIN.saturating_add(1) } else { x }
}

fn keep(x: i64, missing: &[i64]) -> i64 {
    if missing.contains(&x) { MISSING_INTEGER } else { x }
}

fn keep_real(x: f64, missing: &[f64]) -> f64 {
    if missing.contains(&x) { f64::NAN } else { x }
}

fn digest(text: &[u8], missing: &[Vec<u8>]) -> u128 {
    if missing.iter().any(|m| m == text) { id_digest(b"") } else { id_digest(text) }
}

fn levels_decoder<'a>(levels: &[String], missing: impl Iterator<Item = &'a [u8]>) -> Decoder {
    let mut codes: HashMap<Vec<u8>, u32> = missing.map(|t| (t.to_vec(), MISSING_CODE)).collect();
    for (code, level) in (0u32..).zip(levels) {
        codes.entry(trim(level.as_bytes()).to_vec()).or_insert(code);
    }
    if levels.len() == 2 {
        let code = |name: &str| (0u32..).zip(levels).find(|(_, l)| *l == name).map(|(c, _)| c);
        if let (Some(no), Some(yes)) = (code("false"), code("true")) {
            for (text, code) in [("False", no), ("FALSE", no), ("0", no), ("True", yes), ("TRUE", yes), ("1", yes)] {
                codes.entry(text.as_bytes().to_vec()).or_insert(code);
            }
        }
    }
    codes.entry(Vec::new()).or_insert(MISSING_CODE);
    let number =
        |t: &[u8]| std::str::from_utf8(t).ok().and_then(|t| t.parse::<i64>().ok().filter(|x| x.to_string() == t));
    let mut whole: Vec<(i64, u32)> = codes.iter().filter_map(|(t, c)| number(t).map(|x| (x, *c))).collect();
    whole.sort_unstable();
    Decoder::Levels { codes, whole }
}

/// A real number, or `None` if the text is not one.
pub(crate) fn parse_real(text: &[u8]) -> Option<f64> {
    if text.len() > FIELD_CAP {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A whole number in any decimal notation, saturated; `None` if the text is not one.
pub(crate) fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    };
    // Eighteen digits cannot overflow; nearly every cell of nearly every file ends here.
    if (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) {
        let x = digits.iter().fold(0i64, |x, d| x.saturating_mul(10).saturating_add(i64::from(d.saturating_sub(b'0'))));
        return Some(if negative { x.saturating_neg() } else { x });
    }
    let value = parse_real(text)?;
    let magnitude = if value.is_finite() { exact_whole(digits)? } else { whole_of(value)?.checked_abs()? };
    Some(if negative { magnitude.saturating_neg() } else { magnitude })
}

/// The value of an unsigned decimal text that parses as a number: `None` unless whole; at most `i64::MAX`.
fn exact_whole(text: &[u8]) -> Option<i64> {
    let split = text.iter().position(|b| matches!(b, b'e' | b'E')).unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at_checked(split)?;
    let (sign, exponent) = match exponent {
        [_, b'-', rest @ ..] => (-1i64, rest),
        [_, b'+', rest @ ..] | [_, rest @ ..] => (1, rest),
        [] => (1, exponent),
    };
    let digit = |b: &u8| i64::from(b.saturating_sub(b'0'));
    let exponent = exponent.iter().fold(0i64, |x, d| x.saturating_mul(10).saturating_add(digit(d)));
    let point = mantissa.iter().position(|b| *b == b'.').unwrap_or(mantissa.len());
    let places = i64::try_from(mantissa.len().saturating_sub(point).saturating_sub(1)).ok()?;
    let digits = || mantissa.iter().filter(|b| **b != b'.');
    let zeros = digits().rev().take_while(|b| **b == b'0').count();
    let significant = digits().count().saturating_sub(zeros);
    if significant == 0 {
        return Some(0);
    }
    // value = (digits without trailing zeros) · 10^power
    let power = sign.saturating_mul(exponent).saturating_sub(places).saturating_add(i64::try_from(zeros).ok()?);
    if power < 0 {
        return None;
    }
    let head = digits().take(significant).fold(0i64, |x, d| x.saturating_mul(10).saturating_add(digit(d)));
    Some((0..power.min(19)).fold(head, |x, _| x.saturating_mul(10)))
}

/// A float that is whole (or infinite) as the nearest i64 above the missing mark.
#[allow(clippy::cast_possible_truncation, clippy::float_cmp, reason = "whole by the test; `as` saturates")]
fn whole_of(x: f64) -> Option<i64> {
    (x.trunc() == x).then(|| unmarked(x as i64))
}
