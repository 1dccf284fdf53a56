use reticent_laws::Seeded;
use reticent_noise::Noise;

use super::*;
use crate::program::{Comparison, Function, Split};
use crate::rows::Column;

fn column(name: &str, kind: Kind, missing: Missing) -> Column {
    Column {
        name: name.to_owned(),
        kind,
        missing,
    }
}

fn levels(other: Option<u32>) -> Kind {
    Kind::Levels {
        levels: ["a", "b", "c"].map(str::to_owned).to_vec(),
        other,
    }
}

/// n in 0..=10 (drops), x in −1..=1 (imputes .5), y in 1..=3 (drops), c and d in a, b, c, an identifier.
fn schema() -> Schema {
    Schema {
        columns: vec![
            column(
                "n",
                Kind::Integer {
                    lower: 0,
                    upper: 10,
                },
                Missing::Drop,
            ),
            column(
                "x",
                Kind::Real {
                    lower: -1.0,
                    upper: 1.0,
                },
                Missing::Impute(0.5),
            ),
            column(
                "y",
                Kind::Real {
                    lower: 1.0,
                    upper: 3.0,
                },
                Missing::Drop,
            ),
            column("c", levels(Some(2)), Missing::Impute(1.0)),
            column("d", levels(None), Missing::Drop),
            column("who", Kind::Id, Missing::Drop),
        ],
    }
}

fn pick<T: Copy>(from: &[T], random: &mut Seeded) -> T {
    from[random.bits() as usize % from.len()]
}

/// Cells as a source may hand them over: inside, outside, missing, wild.
fn batch(n: usize, random: &mut Seeded) -> Batch {
    let integers = [0, 3, 10, -7, i64::MAX, i64::MIN + 1, MISSING_INTEGER];
    let reals = [
        -1.0,
        -0.0,
        0.0,
        0.3,
        1.0,
        2.5,
        7.0,
        1e308,
        -1e308,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let codes = [0, 1, 2, 3, 77, MISSING_CODE, OTHER_CODE];
    let mut fill = |k: usize| match k {
        0 => Cells::Integer((0..n).map(|_| pick(&integers, random)).collect()),
        1 | 2 => Cells::Real((0..n).map(|_| pick(&reals, random)).collect()),
        3 | 4 => Cells::Code((0..n).map(|_| pick(&codes, random)).collect()),
        _ => Cells::Id((0..n).map(|_| u128::from(random.bits() % 5)).collect()),
    };
    Batch::new(n, (0..6).map(&mut fill).collect())
}

/// A random expression that may or may not have bounds.
fn expression(depth: u32, earlier: usize, random: &mut Seeded) -> Expr {
    let leaf = |random: &mut Seeded| match random.bits() % 8 {
        0 => Expr::Constant(pick(&[-2.0, -0.5, 0.0, 1.0, 3.0], random)),
        1 | 2 => Expr::Column(pick(&[0, 1, 2], random)),
        3 => Expr::Code(pick(&[3, 4], random)),
        4 | 5 => Expr::Level {
            column: pick(&[3, 4], random),
            level: pick(&[0, 1, 2], random),
        },
        _ if earlier > 0 => Expr::Term(random.bits() as usize % earlier),
        _ => Expr::Column(2),
    };
    if depth == 0 {
        return leaf(random);
    }
    let mut next = || Box::new(expression(depth - 1, earlier, random));
    let (a, b) = (next(), next());
    match random.bits() % 14 {
        0 => Expr::Add(a, b),
        1 => Expr::Sub(a, b),
        2 | 3 => Expr::Mul(a, b),
        4 => Expr::Div(a, b),
        5 => Expr::Power(a, pick(&[-3, -2, -1, 0, 1, 2, 3, 4], random)),
        6 => Expr::Clamp(
            a,
            Interval {
                lower: -0.5,
                upper: 2.0,
            },
        ),
        7 => {
            let how = pick(
                &[
                    Comparison::Less,
                    Comparison::LessEqual,
                    Comparison::Greater,
                    Comparison::GreaterEqual,
                    Comparison::Equal,
                    Comparison::NotEqual,
                ],
                random,
            );
            Expr::Compare(how, a, b)
        }
        8 => Expr::And(a, b),
        9 => Expr::Or(a, b),
        10 => Expr::Not(a),
        11 => Expr::Lookup(a, vec![0.5, -2.0, 1.0]),
        _ => {
            let f = pick(
                &[
                    Function::Log,
                    Function::Log1p,
                    Function::Log2,
                    Function::Log10,
                    Function::Sqrt,
                    Function::Exp,
                    Function::Expm1,
                    Function::Logistic,
                    Function::Abs,
                ],
                random,
            );
            Expr::Call(f, a)
        }
    }
}

fn program(random: &mut Seeded) -> RowProgram {
    let terms = (0..3).map(|t| expression(3, t, random)).collect();
    let compare = |how, column, k: f64| {
        Expr::Compare(
            how,
            Box::new(Expr::Column(column)),
            Box::new(Expr::Constant(k)),
        )
    };
    let filter = match random.bits() % 4 {
        0 => Some(compare(Comparison::Greater, 0, 2.5)),
        1 => Some(Expr::And(
            Box::new(compare(Comparison::LessEqual, 2, 2.0)),
            Box::new(compare(Comparison::GreaterEqual, 1, 0.0)),
        )),
        2 => Some(expression(2, 0, random)),
        _ => None,
    };
    let part = random.bits().is_multiple_of(2).then(|| Part {
        split: halves(SplitBy::Content),
        index: random.bits() as usize % 2,
    });
    RowProgram {
        terms,
        filter,
        part,
    }
}

fn halves(by: SplitBy) -> Split {
    Split {
        by,
        salt: "salt".to_owned(),
        parts: vec![("one".to_owned(), 1, 3), ("two".to_owned(), 2, 3)],
    }
}

fn run(program: &RowProgram, schema: &Schema, batch: &Batch) -> Option<(Prepared, Evaluated)> {
    let prepared = Prepared::new(program, schema).ok()?;
    let out = prepared.run(
        schema,
        Unit::Row,
        batch,
        &vec![true; batch.rows()],
        &mut Spare::default(),
    );
    Some((prepared, out))
}

/// Columns are used again, and no more of them are kept than the program has terms and inputs, whatever the terms are.
#[test]
fn spare_columns_are_bounded() {
    let schema = schema();
    let mut random = Seeded::new(8);
    let level = |level| Expr::Level { column: 3, level };
    let program = RowProgram {
        terms: vec![
            level(0),
            level(1),
            Expr::Code(3),
            Expr::Column(2),
            Expr::Constant(1.0),
        ],
        ..RowProgram::default()
    };
    let prepared = Prepared::new(&program, &schema).unwrap();
    let mut spare = Spare::default();
    for _ in 0..50 {
        let batch = batch(30, &mut random);
        let admitted = vec![true; 30];
        let rows = prepared.run(&schema, Unit::Row, &batch, &admitted, &mut spare);
        let fresh = prepared.run(&schema, Unit::Row, &batch, &admitted, &mut Spare::default());
        assert_eq!(rows.terms, fresh.terms);
        spare.give(rows.terms);
        assert!(spare.0.len() <= 2 * 5 + 2);
    }
}

/// A column is taken over by a term only where no later term reads it.
#[test]
fn columns_are_taken_over_once() {
    let column = |c| Expr::Column(c);
    let sum = Expr::Add(Box::new(column(0)), Box::new(column(1)));
    let uses = [column(0), column(2), column(0), sum, column(1)];
    assert_eq!(last_uses(&uses), [None, Some(2), None, None, Some(1)]);
    assert_eq!(last_uses(&uses[..3]), [None, Some(2), Some(0)]);
}

/// Whatever the cells hold, every term of every record lies in the public interval; and before the closing clamp
/// it lies there up to rounding, so that the clamp changes nothing a user would see.
#[test]
fn terms_stay_in_their_bounds() {
    let schema = schema();
    let mut random = Seeded::new(3);
    let (mut programs, mut records) = (0, 0);
    while programs < 2000 {
        let program = program(&mut random);
        let batch = batch(40, &mut random);
        let Some((prepared, out)) = run(&program, &schema, &batch) else {
            continue;
        };
        programs += 1;
        records += out.rows;
        assert_eq!(out.terms.len(), 3);
        for (values, bound) in out.terms.iter().zip(prepared.bounds()) {
            assert_eq!(values.len(), out.rows);
            for v in values {
                assert!(
                    bound.lower <= *v && *v <= bound.upper,
                    "{v} {bound:?} {program:?}"
                );
            }
        }
        let mut inputs = Inputs {
            schema: &schema,
            batch: &batch,
            numbers: HashMap::new(),
            spare: RefCell::default(),
        };
        // what the records that pass the filter can hold
        let scope = Scope::new(&schema, program.filter.as_ref());
        let narrowed: Vec<_> = (0..6).map(|c| scope.column(c).ok()).collect();
        inputs.read(&prepared.used, &narrowed);
        let mut earlier: Vec<Vec<f64>> = Vec::new();
        for (term, bound) in program.terms.iter().zip(prepared.bounds()) {
            let raw = inputs.values(term, &earlier, 40).into_owned();
            let slack = 1e-9 * (1.0 + bound.magnitude());
            for v in &raw {
                let inside = bound.lower - slack <= *v && *v <= bound.upper + slack;
                assert!(inside, "{v} outside {bound:?} in {term:?}");
            }
            earlier.push(raw.iter().map(|v| into(*v, *bound)).collect());
        }
    }
    assert!(records > 10_000, "{records}");
}

/// A batch gives what its rows give one by one.
#[test]
fn record_wise() {
    let schema = schema();
    let mut random = Seeded::new(4);
    let mut programs = 0;
    while programs < 300 {
        let program = program(&mut random);
        let all = batch(20, &mut random);
        let Some((_, together)) = run(&program, &schema, &all) else {
            continue;
        };
        programs += 1;
        let mut alone = vec![Vec::new(); 3];
        for i in 0..20 {
            let one = |c: usize| match all.column(c) {
                Cells::Integer(v) => Cells::Integer(vec![v[i]]),
                Cells::Real(v) => Cells::Real(vec![v[i]]),
                Cells::Code(v) => Cells::Code(vec![v[i]]),
                Cells::Id(v) => Cells::Id(vec![v[i]]),
                Cells::Unread => Cells::Unread,
            };
            let row = Batch::new(1, (0..6).map(one).collect());
            let (_, out) = run(&program, &schema, &row).unwrap();
            for (a, b) in alone.iter_mut().zip(out.terms) {
                a.extend(b);
            }
        }
        assert_eq!(alone, together.terms, "{program:?}");
    }
}

#[test]
fn missing_and_other() {
    let schema = schema();
    let nan = f64::NAN;
    let batch = Batch::new(
        5,
        vec![
            Cells::Integer(vec![99, -99, MISSING_INTEGER, 4, 5]),
            Cells::Real(vec![nan, f64::INFINITY, 0.0, -7.0, 0.25]),
            Cells::Real(vec![2.0; 5]),
            Cells::Code(vec![0, OTHER_CODE, MISSING_CODE, 99, 1]),
            Cells::Code(vec![0, OTHER_CODE, MISSING_CODE, 99, 1]),
            Cells::Id(vec![0; 5]),
        ],
    );
    let read = |e: Expr| {
        let program = RowProgram {
            terms: vec![e],
            ..RowProgram::default()
        };
        run(&program, &schema, &batch).unwrap().1.terms.remove(0)
    };
    // a missing integer drops its record; the others are clamped
    assert_eq!(read(Expr::Column(0)), [10.0, 0.0, 4.0, 5.0]);
    // a missing real is imputed; infinities are clamped
    assert_eq!(read(Expr::Column(1)), [0.5, 1.0, 0.0, -1.0, 0.25]);
    // an undeclared text goes to the declared substitute, a missing one to the imputed level
    assert_eq!(read(Expr::Code(3)), [0.0, 2.0, 1.0, 2.0, 1.0]);
    // or both drop their records
    assert_eq!(read(Expr::Code(4)), [0.0, 2.0, 1.0]);
    // every record has exactly one level
    let one = |level| read(Expr::Level { column: 3, level });
    let sum: Vec<f64> = (0..5).map(|i| one(0)[i] + one(1)[i] + one(2)[i]).collect();
    assert_eq!(sum, [1.0; 5]);
    // a column that was not read drops every record; so does one of the wrong length
    let short = Batch::new(2, vec![Cells::Integer(vec![1])]);
    let program = RowProgram {
        terms: vec![Expr::Column(0)],
        ..RowProgram::default()
    };
    assert_eq!(run(&program, &schema, &short).unwrap().1.rows, 0);
}

/// The first rows of each unit count, across batches, whatever lies between them.
#[test]
fn unit_cap() {
    let ids = [1_u128, 1, 2, 1, 2, 2, 3, 1];
    let batch = |ids: &[u128]| Batch::new(ids.len(), vec![Cells::Id(ids.to_vec())]);
    let unit = Unit::Column {
        column: 0,
        max_rows: 2,
    };
    let expected = [true, true, true, false, true, false, true, false];
    for cut in 0..ids.len() {
        let mut admission = Admission::default();
        let mut admitted = admission.admit(unit, &batch(&ids[..cut]));
        admitted.extend(admission.admit(unit, &batch(&ids[cut..])));
        assert_eq!(admitted, expected, "cut at {cut}");
    }
    let mut admission = Admission::default();
    assert_eq!(admission.admit(Unit::Row, &batch(&ids)), [true; 8]);
    // without identifiers nothing counts
    let blind = Batch::new(2, vec![Cells::Unread]);
    assert_eq!(Admission::default().admit(unit, &blind), [false; 2]);
    assert_eq!(
        Unit::Column {
            column: 0,
            max_rows: 0
        }
        .max_rows(),
        1
    );
}

/// Intervals of one name are one part, from whichever of them it is named; it and the rest are disjoint and hold every record.
/// The intervals of the rest are those of plain parts.
#[test]
fn parts_of_one_name_are_one_part() {
    let schema = schema();
    let batch = batch(3000, &mut Seeded::new(6));
    let of = |parts: &[(&str, u32, u32)], index| {
        let mut keep = vec![true; batch.rows()];
        let split = Split {
            by: SplitBy::Content,
            salt: "folds".to_owned(),
            parts: parts
                .iter()
                .map(|(name, n, d)| ((*name).to_owned(), *n, *d))
                .collect(),
        };
        let part = Part { split, index };
        route(&part, &schema, Unit::Row, &batch, &mut keep);
        keep
    };
    let fifths = [
        ("1", 1, 5),
        ("2", 1, 5),
        ("3", 1, 5),
        ("4", 1, 5),
        ("5", 1, 5),
    ];
    for i in 0..5u32 {
        let fold = [("train", i, 5), ("test", 1, 5), ("train", 4 - i, 5)];
        let (train, test) = (of(&fold, 0), of(&fold, 1));
        assert_eq!(train, of(&fold, 2));
        assert!(train.iter().zip(&test).all(|(a, b)| a != b));
        assert_eq!(test, of(&fifths, i as usize));
        assert!((450..750).contains(&test.iter().filter(|t| **t).count()));
        // no such part: no record
        assert!(of(&fold, 3).iter().all(|k| !k));
    }
}

/// Every record is in exactly one part; equal contents go together whatever their representation: −0 and 0, any NaN.
#[test]
fn parts_are_disjoint() {
    let schema = schema();
    let mut random = Seeded::new(5);
    let n = 3000;
    let batch = batch(n, &mut random);
    let routed = |unit, by: SplitBy, batch: &Batch| -> Vec<Vec<bool>> {
        (0..3)
            .map(|index| {
                let mut keep = vec![true; batch.rows()];
                let part = Part {
                    split: halves(by.clone()),
                    index,
                };
                route(&part, &schema, unit, batch, &mut keep);
                keep
            })
            .collect()
    };
    let unit = Unit::Column {
        column: 5,
        max_rows: 3,
    };
    for (unit, by) in [
        (Unit::Row, SplitBy::Content),
        (Unit::Row, SplitBy::Column(1)),
        (unit, SplitBy::Content),
        (unit, SplitBy::Column(0)),
    ] {
        let parts = routed(unit, by, &batch);
        for ((one, two), none) in parts[0].iter().zip(&parts[1]).zip(&parts[2]) {
            assert!(one != two && !none);
        }
        // a unit of several rows stays together
        if let (Unit::Column { .. }, Cells::Id(ids)) = (unit, batch.column(5)) {
            for (i, id) in ids.iter().enumerate() {
                let first = ids.iter().position(|x| x == id).unwrap();
                assert_eq!(parts[0][i], parts[0][first]);
            }
        }
    }
    let alike = |x: f64, y: f64| {
        let batch = Batch::new(2, vec![Cells::Unread, Cells::Real(vec![x, y])]);
        let digest = |row: usize| {
            let mut hash = Sha256::new();
            batch.encode(1, row, &mut hash);
            let digest: [u8; 32] = hash.finalize().into();
            digest
        };
        digest(0) == digest(1)
    };
    assert!(alike(0.0, -0.0) && alike(f64::NAN, f64::from_bits(0x7ff8_0000_dead_beef)));
    assert!(!alike(0.0, f64::MIN_POSITIVE) && !alike(f64::NAN, 0.0));
}
