//! Columns of cells: the bytes of CSV fields and Arrow values, each read by [`cell`](reticent_mechanisms::rows::cell).
//!
//! # Claim
//! A decoded cell depends on that cell's own content and on public declarations, on nothing else, and
//! every content has a meaning: decoding is total. A CSV and a Parquet copy of one table decode alike.
//! # Arithmetic
//! - Numbers in level and id columns are compared as decimal text, whole floats without a fraction;
//!   Boolean values as `false` and `true`. Dates and times count in their stored unit for numeric columns.
//! - Of a field only its first bytes are kept, so that a 16 GB "field" (a quote left open) costs no memory.
//! # Checked by
//! `cells::tests::{ids, arrow_types_agree_with_text}`, `scan::tests::csv_and_parquet_agree`

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Float64Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};
use arrow::error::ArrowError;
use reticent_mechanisms::rows::cell::{Meaning, nearest, trimmed};
use reticent_mechanisms::rows::{Cells, id_digest};

/// Decodes texts; `None` is a null or an absent cell.
pub(crate) fn texts<'a>(meaning: &Meaning, cells: impl Iterator<Item = Option<&'a [u8]>>) -> Cells {
    let cells = cells.map(|t| trimmed(t.unwrap_or_default()));
    match meaning {
        Meaning::Integer(read) => Cells::Integer(cells.map(|t| read.text(t)).collect()),
        Meaning::Real(read) => Cells::Real(cells.map(|t| read.text(t)).collect()),
        Meaning::Levels(read) => Cells::Code(cells.map(|t| read.text(t)).collect()),
        Meaning::Id(read) => Cells::Id(cells.map(|t| id_digest(read.text(t))).collect()),
    }
}

/// Decodes an Arrow column of a type that [`supported`] admits; rarer types are first cast to one of a few.
pub(crate) fn array(meaning: &Meaning, array: &ArrayRef) -> Result<Cells, ArrowError> {
    let numeric = matches!(meaning, Meaning::Integer(_) | Meaning::Real(_));
    let target = match array.data_type() {
        DataType::Int64 => return Ok(wholes(meaning, array.as_primitive())),
        DataType::Float64 => return Ok(reals(meaning, array.as_primitive())),
        DataType::LargeBinary => return Ok(texts(meaning, array.as_binary::<i64>().iter())),
        DataType::Dictionary(_, value) => return dictionary(meaning, array, value),
        kind if is_text(kind) || kind.is_null() => DataType::LargeBinary,
        kind if kind.is_floating() => DataType::Float64,
        // Beyond i64 the exact decimal text decides, as in CSV.
        kind if kind.is_integer() && *kind != DataType::UInt64 => DataType::Int64,
        kind if numeric && (kind.is_temporal() || *kind == DataType::Boolean) => DataType::Int64,
        _ => DataType::Utf8,
    };
    self::array(meaning, &cast(array, &target)?)
}

fn wholes(meaning: &Meaning, array: &Int64Array) -> Cells {
    match meaning {
        // The common case is one loop that vectorises.
        Meaning::Integer(read) if read.is_plain() && array.null_count() == 0 => {
            Cells::Integer(array.values().iter().copied().map(nearest).collect())
        }
        Meaning::Integer(read) => Cells::Integer(array.iter().map(|x| read.whole(x)).collect()),
        Meaning::Real(read) => Cells::Real(array.iter().map(|x| read.whole(x)).collect()),
        Meaning::Levels(read) => Cells::Code(array.iter().map(|x| read.whole(x)).collect()),
        Meaning::Id(_) => displayed(meaning, array.iter()),
    }
}

fn reals(meaning: &Meaning, array: &Float64Array) -> Cells {
    match meaning {
        Meaning::Integer(read) => Cells::Integer(array.iter().map(|x| read.float(x)).collect()),
        // The common case is one copy: NaN is the missing mark already.
        Meaning::Real(read) if read.is_plain() && array.null_count() == 0 => {
            Cells::Real(array.values().to_vec())
        }
        Meaning::Real(read) => Cells::Real(array.iter().map(|x| read.float(x)).collect()),
        // Adding 0 turns −0 into 0.
        _ => {
            let numbers = array.iter().map(|x| x.filter(|x| !x.is_nan()));
            displayed(meaning, numbers.map(|x| x.map(|x| x + 0.0)))
        }
    }
}

/// Decodes numbers by their text: for floats the shortest that reads back, without exponent.
fn displayed<T: ToString>(meaning: &Meaning, values: impl Iterator<Item = Option<T>>) -> Cells {
    let shown: Vec<Option<String>> = values.map(|x| x.map(|x| x.to_string())).collect();
    texts(
        meaning,
        shown.iter().map(|t| t.as_deref().map(str::as_bytes)),
    )
}

/// Looks up each distinct level once, unless there are more of them than rows.
fn dictionary(meaning: &Meaning, array: &ArrayRef, value: &DataType) -> Result<Cells, ArrowError> {
    let (key, boxed) = (Box::new(DataType::Int32), Box::new(value.clone()));
    let keyed = cast(array, &DataType::Dictionary(key, boxed))?;
    let keyed: &DictionaryArray<Int32Type> = keyed.as_dictionary();
    if let Meaning::Levels(read) = meaning
        && keyed.values().len() <= keyed.len()
        && let Cells::Code(codes) = self::array(meaning, keyed.values())?
    {
        let null = read.whole(None);
        let code = |k: i32| usize::try_from(k).ok().and_then(|k| codes.get(k)).copied();
        let codes = keyed
            .keys()
            .iter()
            .map(|k| k.and_then(code).unwrap_or(null));
        return Ok(Cells::Code(codes.collect()));
    }
    self::array(meaning, &cast(array, value)?)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Date32Array, Float32Array, Int8Array, LargeStringArray, StringViewArray,
        TimestampSecondArray, UInt16Array, UInt64Array,
    };
    use reticent_mechanisms::rows::Kind;

    use super::*;

    fn meaning(kind: &Kind, missing: &[&str]) -> Meaning {
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        Meaning::new(kind, &missing)
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

    fn read(meaning: &Meaning, cells: &[&str]) -> Cells {
        texts(meaning, cells.iter().map(|t| Some(t.as_bytes())))
    }

    #[test]
    fn ids() {
        let found = read(
            &meaning(&Kind::Id, &["none"]),
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
            let declared = meaning(&kind, &["65535"]);
            for (stored, texts) in &arrays {
                let (a, b) = (array(&declared, stored).unwrap(), read(&declared, texts));
                // Debug text, because NaN is the missing mark of reals.
                let same = match (&a, &b) {
                    (Cells::Real(a), Cells::Real(b)) => {
                        format!("{a:?}").replace("-0.0", "0.0") == format!("{b:?}")
                    }
                    _ => a == b,
                };
                assert!(same, "{:?} {texts:?}: {a:?} {b:?}", stored.data_type());
            }
        }
        let days: ArrayRef = Arc::new(Date32Array::from(vec![19_000]));
        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![86_400]));
        let truth: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
        assert_eq!(
            array(&meaning(&integer(), &[]), &days).unwrap(),
            Cells::Integer(vec![19_000])
        );
        assert_eq!(
            array(&meaning(&real(), &[]), &seconds).unwrap(),
            Cells::Real(vec![86_400.0])
        );
        assert_eq!(
            array(&meaning(&levels(&["2022-01-08"]), &[]), &days).unwrap(),
            Cells::Code(vec![0])
        );
        assert_eq!(
            array(&meaning(&integer(), &[]), &truth).unwrap(),
            Cells::Integer(vec![1])
        );
        assert_eq!(
            array(&meaning(&levels(&["true"]), &[]), &truth).unwrap(),
            Cells::Code(vec![0])
        );
    }
}
