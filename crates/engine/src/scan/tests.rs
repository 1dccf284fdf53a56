//! Tests of scanning: formats agree, nothing fails for what a row holds.

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use ::arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray,
};
use ::arrow::datatypes::{Field, Int32Type, Schema as ArrowSchema};
use ::parquet::arrow::ArrowWriter;
use ::parquet::file::properties::WriterProperties;
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use reticent_mechanisms::Unit;
use reticent_mechanisms::fold::{Axis, CellSum, Cut, FixedPoint, Fold, State};
use reticent_mechanisms::program::{Expr, Part, RowProgram, Split, SplitBy};
use reticent_mechanisms::rows::cell::FIELD_CAP;
use reticent_mechanisms::rows::{
    Cells, Column, Kind, MISSING_CODE, MISSING_INTEGER, Missing, OTHER_CODE, id_digest,
};
use reticent_mechanisms::source::{Job, Memory};
use tempfile::TempDir;

use super::*;
use crate::tokens::Tokens;

/// age (17 to 90), income (0 to 1e6), group (a, b; "?" is missing), person.
pub(crate) fn layout() -> Layout {
    let column = |name: &str, kind| Column {
        name: name.into(),
        kind,
        missing: Missing::Drop,
    };
    let levels = vec!["a".into(), "b".into()];
    let columns = vec![
        column(
            "age",
            Kind::Integer {
                lower: 17,
                upper: 90,
            },
        ),
        column(
            "income",
            Kind::Real {
                lower: 0.0,
                upper: 1e6,
            },
        ),
        column(
            "group",
            Kind::Levels {
                levels,
                other: None,
            },
        ),
        column("person", Kind::Id),
    ];
    let missing_values = vec![vec!["-9".into()], vec![], vec!["?".into()], vec![]];
    let rejects = vec![Rejects::default(); 4];
    Layout {
        schema: Arc::new(Schema { columns }),
        texts: Vec::new(),
        missing_values,
        rejects,
    }
}

pub(crate) fn write(dir: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// All cells of the source, columns glued together.
fn cells(source: &dyn RowSource) -> (usize, Vec<Cells>) {
    let all: Vec<usize> = (0..source.schema().columns.len()).collect();
    let glued = Mutex::new((0, Vec::<Cells>::new()));
    let add = |batch: &Batch| {
        let mut glued = glued.lock().unwrap();
        glued.0 += batch.rows();
        for c in 0..all.len() {
            match (glued.1.get_mut(c), batch.column(c).clone()) {
                (None, cells) => glued.1.push(cells),
                (Some(Cells::Integer(a)), Cells::Integer(b)) => a.extend(b),
                (Some(Cells::Real(a)), Cells::Real(b)) => a.extend(b),
                (Some(Cells::Code(a)), Cells::Code(b)) => a.extend(b),
                (Some(Cells::Id(a)), Cells::Id(b)) => a.extend(b),
                _ => panic!("batches disagree"),
            }
        }
    };
    source.visit(&all, Order::File, &add).unwrap();
    glued.into_inner().unwrap()
}

fn csv_cells(bytes: &[u8]) -> (usize, Vec<Cells>) {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, "t.csv", bytes);
    cells(&Files::open(vec![path], Format::Csv, layout()).unwrap())
}

fn integers(cells: &Cells) -> Vec<Option<i64>> {
    let Cells::Integer(v) = cells else {
        panic!("not integers")
    };
    v.iter()
        .map(|x| (*x != MISSING_INTEGER).then_some(*x))
        .collect()
}

fn reals(cells: &Cells) -> Vec<Option<f64>> {
    let Cells::Real(v) = cells else {
        panic!("not reals")
    };
    v.iter().map(|x| (!x.is_nan()).then_some(*x)).collect()
}

fn codes(cells: &Cells) -> Vec<u32> {
    let Cells::Code(v) = cells else {
        panic!("not codes")
    };
    v.clone()
}

/// Count, sum of income by group, and a histogram of age, of all rows and of a content-split part.
fn folds() -> Vec<Job> {
    let terms = vec![Expr::Column(0), Expr::Column(1), Expr::Code(2)];
    let fixed = FixedPoint { bits: 10 };
    let folds = vec![
        Fold::Grid {
            axes: vec![Axis {
                term: 2,
                cut: Cut::Whole(2),
            }],
            sum: Some(CellSum {
                term: 1,
                fixed,
                limits: Vec::new(),
            }),
        },
        Fold::Grid {
            axes: vec![Axis {
                term: 0,
                cut: Cut::Even {
                    lower: 17.0,
                    upper: 90.0,
                    cells: 73,
                },
            }],
            sum: None,
        },
    ];
    let parts = vec![("test".into(), 1, 3), ("train".into(), 2, 3)];
    let split = Split {
        by: SplitBy::Content,
        salt: "s".into(),
        parts,
    };
    let part = Some(Part { split, index: 0 });
    [None, part]
        .map(|part| Job {
            program: RowProgram {
                terms: terms.clone(),
                filter: None,
                part,
            },
            folds: folds.clone(),
        })
        .to_vec()
}

fn totals(source: &dyn RowSource, unit: Unit) -> Vec<Vec<State>> {
    source.scan(unit, &folds()).unwrap()
}

/// A table of n rows as CSV text and as a record batch of the natural types.
fn table(n: usize) -> (Vec<u8>, RecordBatch) {
    let age: Vec<Option<i32>> = (0..n)
        .map(|i| (i % 11 != 3).then_some(i32::try_from(i * 7 % 120).unwrap()))
        .collect();
    let income: Vec<Option<f64>> = (0..n)
        .map(|i| (i % 13 != 5).then_some((i * 7919 % 1_000_003) as f64 / 7.0 - 100.0))
        .collect();
    let group: Vec<Option<&str>> = (0..n)
        .map(|i| [Some("a"), Some("b"), Some("?"), None, Some("c")][i * 3 % 5])
        .collect();
    let person: Vec<Option<i64>> = (0..n)
        .map(|i| (i % 17 != 1).then_some(i64::try_from(i / 3).unwrap()))
        .collect();
    let mut text = b"person,age,unused,income,group\r\n".to_vec();
    for i in 0..n {
        let show = |x: Option<String>| x.unwrap_or_default();
        let line = format!(
            "{},{},\"x, \"\"{i}\"\"\n\",{},{}\r\n",
            show(person[i].map(|x| x.to_string())),
            show(age[i].map(|x| x.to_string())),
            show(income[i].map(|x| x.to_string())),
            group[i].unwrap_or(" "),
        );
        text.extend(line.bytes());
    }
    let group: DictionaryArray<Int32Type> = group.into_iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("group", Arc::new(group)),
        ("age", Arc::new(Int32Array::from(age))),
        ("income", Arc::new(Float64Array::from(income))),
        ("nothing", Arc::new(BooleanArray::from(vec![true; n]))),
        ("person", Arc::new(Int64Array::from(person))),
    ];
    (
        text,
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
            .unwrap(),
    )
}

fn parquet_file(dir: &TempDir, name: &str, batch: &RecordBatch, group_rows: usize) -> PathBuf {
    let path = dir.path().join(name);
    let how = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(how)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    path
}

#[test]
fn csv_and_parquet_agree() {
    let (text, batch) = table(5000);
    let dir = TempDir::new().unwrap();
    let csv = vec![write(&dir, "t.csv", &text)];
    let parquet = vec![parquet_file(&dir, "t.parquet", &batch, 700)];
    let csv = Files::open(csv, Format::Csv, layout()).unwrap();
    let parquet = Files::open(parquet, Format::Parquet, layout()).unwrap();
    let arrow =
        ArrowBatches::new(&[batch.slice(0, 1234), batch.slice(1234, 3766)], layout()).unwrap();
    let (rows, reference) = cells(&csv);
    assert_eq!(rows, 5000);
    for other in [cells(&parquet), cells(&arrow)] {
        assert_eq!(other.0, 5000);
        assert_eq!(integers(&other.1[0]), integers(&reference[0]));
        assert_eq!(reals(&other.1[1]), reals(&reference[1]));
        assert_eq!(codes(&other.1[2]), codes(&reference[2]));
        assert!(other.1[3] == reference[3], "identifiers differ");
    }
    // Independent expectations at chosen rows.
    assert_eq!(
        integers(&reference[0])[..4],
        [Some(0), Some(7), Some(14), None]
    );
    assert_eq!(
        codes(&reference[2])[..5],
        [0, MISSING_CODE, 1, OTHER_CODE, MISSING_CODE]
    );
    assert_eq!(
        codes(&reference[2])
            .iter()
            .filter(|c| **c == MISSING_CODE)
            .count(),
        2000
    );
    let Cells::Id(ids) = &reference[3] else {
        panic!()
    };
    assert_eq!((ids[0], ids[1]), (id_digest(b"0"), id_digest(b"")));
    // The same integers, content split included, under both kinds of unit.
    let unit = Unit::Column {
        column: 3,
        max_rows: 2,
    };
    for unit in [Unit::Row, unit] {
        let expected = totals(&csv, unit);
        assert!(totals(&parquet, unit) == expected && totals(&arrow, unit) == expected);
        let blank = Memory::new(layout().schema, Vec::new());
        assert!(totals(&blank, unit) != expected);
    }
}

#[test]
fn thread_and_batch_independence() {
    let (text, batch) = table(3000);
    let dir = TempDir::new().unwrap();
    let halves = [write(&dir, "1.csv", &text), write(&dir, "2.csv", &text)].to_vec();
    let parquet = [100, 5000].map(|g| parquet_file(&dir, &format!("{g}.parquet"), &batch, g));
    let open = |paths: &[PathBuf], format| Files::open(paths.to_vec(), format, layout()).unwrap();
    let unit = Unit::Column {
        column: 3,
        max_rows: 3,
    };
    let expected = [Unit::Row, unit].map(|u| totals(&open(&halves, Format::Csv), u));
    for threads in [1, 2, 8] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        for rows in [1, 7, 1000, 1 << 20] {
            for (paths, format) in [(&halves[..], Format::Csv), (&parquet[..], Format::Parquet)] {
                let files = open(paths, format).with_batch_rows(rows);
                let found = pool.install(|| [Unit::Row, unit].map(|u| totals(&files, u)));
                assert!(
                    found == expected,
                    "{threads} threads, {rows} rows, {format:?}"
                );
            }
        }
    }
}

#[test]
fn parquet_pieces() {
    // One row group longer than a piece: every row exactly once, in order.
    let n = (1 << 20) + 4321;
    let ages: Vec<i64> = (0..n).collect();
    let one = |name: &str, array: ArrayRef| (name.to_string(), array);
    let rows = ages.len();
    let batch = RecordBatch::try_from_iter([
        one("age", Arc::new(Int64Array::from(ages.clone()))),
        one("income", Arc::new(Float64Array::from(vec![1.0; rows]))),
        one("group", Arc::new(StringArray::from(vec!["a"; rows]))),
        one("person", Arc::new(StringArray::from(vec!["p"; rows]))),
    ])
    .unwrap();
    let dir = TempDir::new().unwrap();
    let path = parquet_file(&dir, "t.parquet", &batch, 1 << 21);
    let files = Files::open(vec![path], Format::Parquet, layout()).unwrap();
    let seen = Mutex::new(Vec::new());
    let see = |batch: &Batch| {
        let Cells::Integer(v) = batch.column(0) else {
            panic!()
        };
        assert!(batch.rows() <= parquet::ROWS && *batch.column(1) == Cells::Unread);
        seen.lock().unwrap().extend_from_slice(v);
    };
    files.visit(&[0], Order::File, &see).unwrap();
    assert!(std::mem::take(&mut *seen.lock().unwrap()) == ages);
    files.visit(&[0], Order::Any, &see).unwrap();
    let mut any = seen.into_inner().unwrap();
    any.sort_unstable();
    assert!(any == ages);
    // Rows can be counted without reading a column.
    let count = Mutex::new(0);
    files
        .visit(&[], Order::Any, &|b| *count.lock().unwrap() += b.rows())
        .unwrap();
    assert_eq!(count.into_inner().unwrap(), rows);
}

#[test]
fn bad_rows_never_fail() {
    let long = "x".repeat(1_000_000);
    let longer = "7".repeat(2 * FIELD_CAP);
    let mut text = b"age,income,group,person\n".to_vec();
    for line in [
        "30,1e308,a,p",
        "1000000,-inf,b,p",
        "nan,NaN,c,p",
        "-9,,?,",
        "31",
        "32,1,a,p,extra,cells,,,",
        "abc,x,,p",
        "3.5,1_000,A,p",
    ] {
        text.extend(line.bytes());
        text.push(b'\n');
    }
    text.extend(b"33,2,\xff\xfe\x00,p\n");
    text.extend(format!("34,3,{long},p\n{longer},{longer},{longer},{longer}\n35,4,b,p").bytes());
    let (rows, found) = csv_cells(&text);
    assert_eq!(rows, 12);
    let ages = [
        Some(30),
        Some(1_000_000),
        None,
        None,
        Some(31),
        Some(32),
        None,
        None,
    ];
    assert_eq!(integers(&found[0])[..8], ages);
    assert_eq!(
        integers(&found[0])[8..],
        [Some(33), Some(34), None, Some(35)]
    );
    let incomes = [
        Some(1e308),
        Some(f64::NEG_INFINITY),
        None,
        None,
        None,
        Some(1.0),
        None,
        None,
    ];
    assert_eq!(reals(&found[1])[..8], incomes);
    assert_eq!(
        reals(&found[1])[8..],
        [Some(2.0), Some(3.0), None, Some(4.0)]
    );
    let (o, m) = (OTHER_CODE, MISSING_CODE);
    assert_eq!(codes(&found[2]), [0, 1, o, m, m, 0, m, o, o, o, o, 1]);
}

#[test]
fn csv_dialects() {
    let reference = csv_cells(b"age,income,group,person\n20,1.5,a,x y\n21,2,b,q\n");
    let same: [&[u8]; 7] = [
        b"\xef\xbb\xbfage,income,group,person\r\n20,1.5,a,x y\r\n21,2,b,q\r\n",
        b"\xef\xbb\xbf\"age\", income ,\"group\",person\n20,1.5,a,x y\n21,2,b,q",
        b"age,income,group,person\r20,1.5,a,x y\r21,2,b,q\r",
        b"\n\nage,income,group,person\n\n20 ,\t1.5, a ,x y\n\n21,2,b,q\n\n\n",
        b"\"age\",\"income\",\"group\",\"person\"\n\"20\",\"1.5\",\"a\",\"x y\"\n\"21\",\"2\",\"b\",\"q\"\n",
        b"group,zz,person,income,age\na,\"1,\n\"\"2\"\"\",x y,1.5,+20\nb,,q,2e0,2.1e1\n",
        b"age,income,group,person\n20,1.5,a,x y\n21,2,b,\"q",
    ];
    for text in same {
        assert!(
            csv_cells(text) == reference,
            "{}",
            String::from_utf8_lossy(text)
        );
    }
}

#[test]
fn headers_that_are_refused() {
    let dir = TempDir::new().unwrap();
    for (text, what) in [
        (&b""[..], "the file is empty"),
        (b"\n\r\n\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"age,income,group\n1,2,a\n", "no column is named `person`"),
        (b"age;income;group;person\n1;2;a;p\n", "not semicolons"),
        (
            b"age,income,age,group,person\n",
            "columns 1 and 3 are both named `age`",
        ),
        (b"\xff\xfea\0g\0e\0", "UTF-16"),
    ] {
        let path = write(&dir, "t.csv", text);
        let message = Files::open(vec![path], Format::Csv, layout())
            .err()
            .unwrap()
            .to_string();
        assert!(
            message.contains("t.csv: ") && message.contains(what),
            "{message}"
        );
    }
    // A headerless file must not have its first record quoted.
    let path = write(&dir, "t.csv", b"77,123456,a,secret\n");
    let message = Files::open(vec![path], Format::Csv, layout())
        .err()
        .unwrap()
        .to_string();
    assert!(
        !message.contains("secret") && !message.contains("77"),
        "{message}"
    );
    // A header alone, and one row, are tables.
    assert_eq!(csv_cells(b"age,income,group,person").0, 0);
    assert_eq!(csv_cells(b"age,income,group,person\n1,2,a,p").0, 1);
}

#[test]
fn gzip() {
    let (text, _) = table(4000);
    let pack = |bytes: &[u8]| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let dir = TempDir::new().unwrap();
    let open = |name: &str, bytes: &[u8]| {
        Files::open(vec![write(&dir, name, bytes)], Format::Csv, layout())
    };
    let expected = totals(&open("t.csv", &text).unwrap(), Unit::Row);
    // By name, by content, and in several members.
    let (first, second) = text.split_at(text.len() / 2);
    let members = [pack(first), pack(second)].concat();
    let packed = pack(&text);
    for (name, bytes) in [
        ("a.csv.gz", &packed),
        ("a.csv", &packed),
        ("m.GZ", &members),
    ] {
        assert!(totals(&open(name, bytes).unwrap(), Unit::Row) == expected);
    }
    // Truncated anywhere: an error, never fewer rows.
    for cut in [packed.len() / 2, packed.len() - 8, packed.len() - 1] {
        let files = open("a.csv.gz", &packed[..cut]);
        let result = files.and_then(|f| f.scan(Unit::Row, &folds()).map(|_| ()));
        assert!(
            matches!(result, Err(SourceError::Io { .. })),
            "cut at {cut}"
        );
    }
    let mut flipped = packed.clone();
    flipped[packed.len() - 6] ^= 1;
    let files = open("a.csv.gz", &flipped).unwrap();
    assert!(files.scan(Unit::Row, &folds()).is_err());
    assert!(
        open("a.csv.gz", &text)
            .err()
            .unwrap()
            .to_string()
            .contains("not gzip")
    );
}

#[test]
fn damaged_parquet() {
    let (_, batch) = table(500);
    let dir = TempDir::new().unwrap();
    let path = parquet_file(&dir, "t.parquet", &batch, 100);
    let good = std::fs::read(&path).unwrap();
    let open = |bytes: &[u8]| {
        let path = write(&dir, "d.parquet", bytes);
        let files = Files::open(vec![path], Format::Parquet, layout())?;
        files.scan(Unit::Row, &folds()).map(|_| ())
    };
    open(&good).unwrap();
    assert!(open(b"").is_err() && open(b"PAR1PAR1").is_err() && open(&good[4..]).is_err());
    assert!(open(&good[..good.len() - 1]).is_err());
    // Any single damaged byte gives a result or an error.
    for at in (0..good.len()).step_by(37) {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        let _ = open(&bad);
    }
    let nested = ::arrow::array::StructArray::from(batch.slice(0, 1));
    let field = Field::new(
        "age",
        ::arrow::array::Array::data_type(&nested).clone(),
        true,
    );
    let schema = Arc::new(ArrowSchema::new(vec![
        field,
        Field::new("income", ::arrow::datatypes::DataType::Float64, true),
        Field::new("group", ::arrow::datatypes::DataType::Utf8, true),
        Field::new("person", ::arrow::datatypes::DataType::Utf8, true),
    ]));
    let message = ArrowBatches::new(&[RecordBatch::new_empty(schema)], layout())
        .err()
        .unwrap();
    assert!(message.to_string().contains("column `age`"), "{message}");
}

#[test]
fn large_integers_and_decimals() {
    let decimals = Decimal128Array::from(vec![Some(300), Some(350), None, Some(-900)]);
    let decimals = decimals.with_precision_and_scale(10, 2).unwrap();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("age", Arc::new(decimals.clone()) as ArrayRef, true),
        ("income", Arc::new(decimals) as ArrayRef, true),
        (
            "group",
            Arc::new(BooleanArray::from(vec![true, false, true, false])) as ArrayRef,
            true,
        ),
        (
            "person",
            Arc::new(::arrow::array::UInt64Array::from(vec![u64::MAX, 1, 2, 3])) as ArrayRef,
            true,
        ),
    ])
    .unwrap();
    let mut layout = layout();
    let mut schema = (*layout.schema).clone();
    let levels = vec!["false".into(), "true".into()];
    schema.columns[2].kind = Kind::Levels {
        levels,
        other: None,
    };
    layout.schema = Arc::new(schema);
    let (_, found) = cells(&ArrowBatches::new(&[batch], layout).unwrap());
    assert_eq!(integers(&found[0]), [Some(3), None, None, None]);
    assert_eq!(reals(&found[1]), [Some(3.0), Some(3.5), None, Some(-9.0)]);
    assert_eq!(codes(&found[2]), [1, 0, 1, 0]);
    let Cells::Id(ids) = &found[3] else { panic!() };
    assert_eq!(ids[0], id_digest(b"18446744073709551615"));
}

/// Texts become slots whatever Arrow type holds them; numbers are read as they are written in decimal.
#[test]
fn texts_in_arrow_batches() {
    let words = ["free", "7", "true", "5"].map(str::to_owned);
    let column = crate::text::TextColumn {
        name: "text".into(),
        tokenizer: crate::text::Tokenizer::new(""),
        vocabulary: crate::text::Vocabulary::words(words),
        most: 2,
        choice: crate::text::Choice::First,
    };
    let mut layout = layout();
    let mut schema = (*layout.schema).clone();
    schema.columns.truncate(2);
    schema.columns.splice(1..1, column.columns());
    layout.schema = Arc::new(schema);
    layout.texts = vec![Tokens { first: 1, column }];
    let dictionary = |i: i64| {
        let keys = Int32Array::from(vec![Some(0), None, Some(0)]);
        let values = Arc::new(Int64Array::from(vec![i]));
        DictionaryArray::<Int32Type>::new(keys, values)
    };
    let texts: Vec<(ArrayRef, [i64; 6])> = vec![
        (
            Arc::new(StringArray::from(vec![
                Some("5 free free 7"),
                None,
                Some("x"),
            ])),
            [3, 4, 4, 0, 4, 4],
        ),
        (
            Arc::new(
                vec![Some("7"), None, Some("7")]
                    .into_iter()
                    .collect::<DictionaryArray<Int32Type>>(),
            ),
            [1, 4, 1, 4, 4, 4],
        ),
        (Arc::new(dictionary(7)), [1, 4, 1, 4, 4, 4]),
        (
            Arc::new(Int64Array::from(vec![Some(7), None, Some(-5)])),
            [1, 4, 3, 4, 4, 4],
        ),
        (
            Arc::new(Float64Array::from(vec![Some(7.5), None, Some(0.5)])),
            [1, 4, 3, 3, 4, 4],
        ),
        (
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            [2, 4, 4, 4, 4, 4],
        ),
    ];
    for (text, expected) in texts {
        let kind = ::arrow::array::Array::data_type(&text).clone();
        let batch = RecordBatch::try_from_iter_with_nullable([
            (
                "income",
                Arc::new(Float64Array::from(vec![1.5; 3])) as ArrayRef,
                true,
            ),
            ("text", text, true),
            (
                "age",
                Arc::new(Int64Array::from(vec![20; 3])) as ArrayRef,
                true,
            ),
        ])
        .unwrap();
        let (_, found) = cells(&ArrowBatches::new(&[batch], layout.clone()).unwrap());
        assert_eq!(found[0], Cells::Integer(vec![20; 3]));
        assert_eq!(found[1], Cells::Integer(expected[..3].to_vec()), "{kind}");
        assert_eq!(found[2], Cells::Integer(expected[3..].to_vec()), "{kind}");
        assert_eq!(found[3], Cells::Real(vec![1.5; 3]));
    }
}

/// lessons 6, 46, 48, 49: odd values go to their documented cell and move one cell by at most one.
#[test]
fn odd_values_change_one_cell() {
    let header = "age,income,group,person\n";
    let base = "40,10,a,p\n".repeat(50);
    let count = |extra: &str| {
        let dir = TempDir::new().unwrap();
        let path = write(&dir, "t.csv", format!("{header}{base}{extra}").as_bytes());
        let files = Files::open(vec![path], Format::Csv, layout()).unwrap();
        totals(&files, Unit::Row).swap_remove(0)
    };
    // Clamped to the ends, whatever the notation.
    for (odd, plain) in [
        ("40,-1e300,a,p\n", "40,0,a,p\n"),
        ("40,inf,a,p\n", "40,1000000,a,p\n"),
        ("40,1e308,a,p\n", "40,1000000,a,p\n"),
        ("99999999999999999999999,5,b,p\n", "90,5,b,p\n"),
        ("-inf,5,b,p\n", "17,5,b,p\n"),
        ("-1e30,5,b,p\n", "17,5,b,p\n"),
    ] {
        assert!(count(odd) == count(plain), "{odd}");
        assert!(count(odd) != count(""), "{odd}");
    }
    // Missing and undeclared drop the record, under the policy declared in `layout`.
    for odd in [
        "40,nan,a,p\n",
        "40,,a,p\n",
        "x,1,a,p\n",
        "40,1,?,p\n",
        "40,1,zzz,p\n",
        "40\n",
    ] {
        assert!(count(odd) == count(""), "{odd}");
    }
    // The order of large and small values does not matter.
    let (big, small) = ("40,1000000,a,p\n", "40,0.0009765625,a,p\n".repeat(9));
    assert!(count(&format!("{big}{small}")) == count(&format!("{small}{big}")));
}

#[test]
fn a_visit_that_dies_does_not_hang() {
    let (text, _) = table(20_000);
    let dir = TempDir::new().unwrap();
    let files = Files::open(vec![write(&dir, "t.csv", &text)], Format::Csv, layout()).unwrap();
    let files = files.with_batch_rows(10);
    for order in [Order::Any, Order::File] {
        let dies = || files.visit(&[0], order, &|_| panic!("as asked"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(dies)).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    /// Whatever follows the header: no panic, no error, one row per record of the csv crate's reading.
    #[test]
    fn arbitrary_bytes(body in proptest::collection::vec(
        prop_oneof![Just(b'"'), Just(b','), Just(b'\n'), Just(b'\r'), Just(b'1'), Just(b'a'), any::<u8>()],
        0..400,
    )) {
        let text = [&b"age,income,group,person\n"[..], &body].concat();
        let (rows, found) = csv_cells(&text);
        let mut peer = ::csv::ReaderBuilder::new().flexible(true).from_reader(&text[..]);
        let peer: Vec<::csv::ByteRecord> = peer.byte_records().map(Result::unwrap).collect();
        prop_assert_eq!(rows, peer.len());
        if rows > 0 {
            let Cells::Id(ids) = &found[3] else { panic!() };
            for (id, record) in ids.iter().zip(&peer) {
                prop_assert_eq!(*id, id_digest(record.get(3).unwrap_or_default().trim_ascii()));
            }
        }
    }

    /// Whole files of arbitrary bytes, in both formats: a source or an error.
    #[test]
    fn arbitrary_files(bytes in proptest::collection::vec(any::<u8>(), 0..300), tail in any::<bool>()) {
        let dir = TempDir::new().unwrap();
        let bytes = if tail { [&b"PAR1"[..], &bytes, b"\x20\0\0\0PAR1"].concat() } else { bytes };
        for (name, format) in [("f.csv", Format::Csv), ("f.gz", Format::Csv), ("f.parquet", Format::Parquet)] {
            let path = write(&dir, name, &bytes);
            if let Ok(files) = Files::open(vec![path], format, layout()) {
                let _ = files.scan(Unit::Row, &folds());
            }
        }
    }
}

#[test]
fn expand_sorts_and_refuses() {
    let dir = TempDir::new().unwrap();
    for name in ["b.csv", "a.csv", "c.txt", "a[1].csv"] {
        write(&dir, name, b"");
    }
    let expand = |pattern: &str| crate::register::expand(pattern, dir.path());
    let names = |found: Vec<PathBuf>| -> Vec<String> {
        let name = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().into_owned();
        found.iter().map(name).collect()
    };
    assert_eq!(names(expand("?.csv").unwrap()), ["a.csv", "b.csv"]);
    assert_eq!(names(expand("a[1].csv").unwrap()), ["a[1].csv"]);
    assert!(
        expand("none*.csv")
            .unwrap_err()
            .to_string()
            .contains("none*.csv")
    );
    let absolute = dir.path().join("*.txt");
    let found = crate::register::expand(&absolute.to_string_lossy(), Path::new("/elsewhere"));
    assert_eq!(names(found.unwrap()), ["c.txt"]);
}
