//! The truth about public data, by code that shares nothing with the mechanisms.

pub mod bins;
pub mod curve;
pub mod least_squares;
pub mod plot;

use reticent_mechanisms::program::{Comparison, Expr, Function};
use reticent_mechanisms::rows::{
    Cells, Kind, MISSING_CODE, MISSING_INTEGER, Missing, OTHER_CODE, Schema,
};

use crate::public::Table;

/// The value of an expression for one record; nothing if a cell it needs is missing.
pub fn value(expr: &Expr, table: &Table, row: usize) -> Option<f64> {
    let of = |e: &Expr| value(e, table, row);
    let truth = |b: bool| if b { 1.0 } else { 0.0 };
    Some(match expr {
        Expr::Constant(c) => *c,
        Expr::Column(c) => number(table, *c, row)?,
        Expr::Code(c) => f64::from(level(table, *c, row)?),
        Expr::Level { column, level: l } => truth(level(table, *column, row)? == *l),
        Expr::Term(_) => return None,
        Expr::Add(a, b) => of(a)? + of(b)?,
        Expr::Sub(a, b) => of(a)? - of(b)?,
        Expr::Mul(a, b) => of(a)? * of(b)?,
        Expr::Div(a, b) => of(a)? / of(b)?,
        Expr::Power(a, k) => of(a)?.powi(*k),
        Expr::Clamp(a, i) => of(a)?.clamp(i.lower, i.upper),
        Expr::Call(f, a) => {
            let x = of(a)?;
            match f {
                Function::Log => x.ln(),
                Function::Log1p => x.ln_1p(),
                Function::Log2 => x.log2(),
                Function::Log10 => x.log10(),
                Function::Sqrt => x.sqrt(),
                Function::Exp => x.exp(),
                Function::Expm1 => x.exp_m1(),
                Function::Logistic => 1.0 / (1.0 + (-x).exp()),
                Function::Abs => x.abs(),
            }
        }
        Expr::Lookup(a, table) => {
            let x = of(a)?.max(0.0);
            let ends = (1u32..).map(f64::from).zip(table);
            let (_, entry) = ends
                .clone()
                .find(|(end, _)| x < *end)
                .or_else(|| ends.last())?;
            *entry
        }
        Expr::Compare(how, a, b) => {
            let (a, b) = (of(a)?, of(b)?);
            #[allow(clippy::float_cmp, reason = "the language compares numbers exactly")]
            truth(match how {
                Comparison::Less => a < b,
                Comparison::LessEqual => a <= b,
                Comparison::Greater => a > b,
                Comparison::GreaterEqual => a >= b,
                Comparison::Equal => a == b,
                Comparison::NotEqual => a != b,
            })
        }
        Expr::And(a, b) => truth(of(a)? != 0.0 && of(b)? != 0.0),
        Expr::Or(a, b) => truth(of(a)? != 0.0 || of(b)? != 0.0),
        Expr::Not(a) => truth(of(a)? == 0.0),
    })
}

/// Some expressions for every record in which none is missing.
pub fn values<const N: usize>(exprs: [&Expr; N], table: &Table) -> Vec<[f64; N]> {
    (0..table.rows())
        .filter_map(|row| {
            let mut all = [0.0; N];
            for (place, expr) in all.iter_mut().zip(exprs) {
                *place = value(expr, table, row)?;
            }
            Some(all)
        })
        .collect()
}

fn imputed(schema: &Schema, column: usize) -> Option<f64> {
    match schema.columns.get(column)?.missing {
        Missing::Drop => None,
        Missing::Impute(x) => Some(x),
    }
}

fn number(table: &Table, column: usize, row: usize) -> Option<f64> {
    let kind = &table.schema().columns.get(column)?.kind;
    #[allow(clippy::cast_precision_loss, reason = "declared bounds are below 2^53")]
    match (table.column(column), kind) {
        (Cells::Integer(v), Kind::Integer { lower, upper }) => match v[row] {
            MISSING_INTEGER => imputed(table.schema(), column),
            x => Some(x.clamp(*lower, *upper) as f64),
        },
        (Cells::Real(v), Kind::Real { lower, upper }) => {
            if v[row].is_nan() {
                imputed(table.schema(), column)
            } else {
                Some(v[row].clamp(*lower, *upper))
            }
        }
        _ => None,
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an imputed level is an index"
)]
fn level(table: &Table, column: usize, row: usize) -> Option<u32> {
    let kind = &table.schema().columns.get(column)?.kind;
    match (table.column(column), kind) {
        (Cells::Code(v), Kind::Levels { other, .. }) => match v[row] {
            MISSING_CODE => imputed(table.schema(), column).map(|x| x as u32),
            OTHER_CODE => *other,
            code => Some(code),
        },
        _ => None,
    }
}
