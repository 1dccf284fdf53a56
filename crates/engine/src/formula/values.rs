//! Expressions over one record: names, arithmetic, conditions.

use reticent_mechanisms::program::{Comparison, Expr, Function};
use reticent_mechanisms::rows::{Kind as ColumnKind, Schema};

use super::deparse::{deparse, number};
use super::error::FormulaError;
use super::parser::{Kind, Node, Operator};
use crate::dataset::BOOLEAN_LEVELS;
use crate::suggest;

/// Functions of one number, by the name R gives them.
pub(super) const FUNCTIONS: [(&str, Function); 9] = [
    ("log", Function::Log),
    ("log1p", Function::Log1p),
    ("log2", Function::Log2),
    ("log10", Function::Log10),
    ("sqrt", Function::Sqrt),
    ("exp", Function::Exp),
    ("expm1", Function::Expm1),
    ("abs", Function::Abs),
    ("plogis", Function::Logistic),
];
/// Functions of R that look at the whole column and therefore cannot be row-wise.
const COLUMN_WISE: [&str; 14] = [
    "scale", "poly", "ns", "bs", "mean", "median", "sd", "var", "min", "max", "sum", "cut", "rank",
    "quantile",
];
const LARGEST_POWER: f64 = 64.0;
/// Operands of one arithmetic sum: the tree of an expression is walked by recursion.
const MOST_OPERANDS: usize = 200;

/// What an expression stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(Expr),
    /// 1 or 0.
    Truth(Expr),
    /// The level of a column.
    Level(usize),
    Text(String),
}

/// A reader of expressions.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) schema: &'a Schema,
}

impl Reader<'_> {
    pub(super) fn error(&self, node: &Node, message: impl Into<String>) -> FormulaError {
        FormulaError::at(self.text, node.start, node.end, message)
    }

    /// The schema position of a name.
    pub(super) fn column(&self, node: &Node, name: &str) -> Result<usize, FormulaError> {
        self.schema.position(name).ok_or_else(|| {
            let names: Vec<&str> = self
                .schema
                .columns
                .iter()
                .map(|c| c.name.as_str())
                .collect();
            self.error(node, format!("there is no column `{name}`"))
                .accepting(suggest::advice(name, &names))
        })
    }

    /// The levels of a level column.
    pub(super) fn levels(&self, column: usize) -> &[String] {
        match self.schema.columns.get(column).map(|c| &c.kind) {
            Some(ColumnKind::Levels { levels, .. }) => levels,
            _ => &[],
        }
    }

    /// Whether a column is boolean: R prints its values as FALSE and TRUE.
    pub(super) fn is_boolean(&self, column: usize) -> bool {
        self.levels(column) == BOOLEAN_LEVELS
    }

    fn name_of(&self, column: usize) -> &str {
        self.schema
            .columns
            .get(column)
            .map_or("", |c| c.name.as_str())
    }

    /// The index of a level, or an error that names the nearest one.
    pub(super) fn level(
        &self,
        node: &Node,
        column: usize,
        text: &str,
    ) -> Result<u32, FormulaError> {
        let levels = self.levels(column);
        let folded = text.to_lowercase();
        let text_or_folded = if self.is_boolean(column) {
            &folded
        } else {
            text
        };
        let found = levels
            .iter()
            .position(|l| l == text_or_folded)
            .and_then(|i| u32::try_from(i).ok());
        found.ok_or_else(|| {
            let names: Vec<&str> = levels.iter().map(String::as_str).collect();
            self.error(
                node,
                format!("{text:?} is not a level of `{}`", self.name_of(column)),
            )
            .accepting(suggest::advice(text, &names))
        })
    }

    pub(super) fn value(&self, node: &Node) -> Result<Value, FormulaError> {
        match &node.kind {
            Kind::Number(x) => Ok(Value::Number(Expr::Constant(*x))),
            Kind::Text(t) => Ok(Value::Text(t.clone())),
            Kind::Truth(t) => Ok(Value::Truth(Expr::Constant(f64::from(u8::from(*t))))),
            Kind::Name(name) => self.named(node, name),
            Kind::Dot => {
                Err(self.error(node, "`.` stands for all columns and is a term of its own"))
            }
            Kind::Paren(inner) => self.value(inner),
            Kind::Plus(inner) => Ok(Value::Number(self.number(inner)?)),
            Kind::Negate(inner) => Ok(Value::Number(match self.number(inner)? {
                Expr::Constant(x) => Expr::Constant(-x),
                other => Expr::Constant(0.0).sub(other),
            })),
            Kind::Not(inner) => Ok(Value::Truth(Expr::Not(Box::new(self.truth(inner)?)))),
            Kind::Sum(first, rest) => self.sum(node, first, rest),
            Kind::Binary(op, a, b) => self.binary(node, *op, a, b),
            Kind::Call(function, arguments) => self.call(node, function, arguments),
            Kind::Formula(..) => Err(self.error(node, "`~` belongs between outcome and terms")),
        }
    }

    fn named(&self, node: &Node, name: &str) -> Result<Value, FormulaError> {
        let column = self.column(node, name)?;
        match self.schema.columns.get(column).map(|c| &c.kind) {
            Some(ColumnKind::Integer { .. } | ColumnKind::Real { .. }) => {
                Ok(Value::Number(Expr::Column(column)))
            }
            Some(ColumnKind::Levels { .. }) => Ok(Value::Level(column)),
            _ => Err(self
                .error(node, format!("`{name}` is an identifier and never a value"))
                .accepting("Use another column, or declare it with another type.")),
        }
    }

    /// A number; conditions count as 1 and 0.
    pub(super) fn number(&self, node: &Node) -> Result<Expr, FormulaError> {
        match self.value(node)? {
            Value::Number(e) | Value::Truth(e) => Ok(e),
            Value::Level(column) => Err(self
                .error(
                    node,
                    format!(
                        "`{}` has levels, and a number is needed here",
                        self.name_of(column)
                    ),
                )
                .accepting(format!(
                    "Compare it with a level, for example {}.",
                    self.comparison_example(column)
                ))),
            Value::Text(_) => Err(self
                .error(node, "a quoted text where a number is needed")
                .accepting("Column names are written without quotes or in backticks.")),
        }
    }

    /// A condition.
    pub(super) fn truth(&self, node: &Node) -> Result<Expr, FormulaError> {
        match self.value(node)? {
            Value::Truth(e) => Ok(e),
            Value::Level(column) if self.is_boolean(column) => Ok(Expr::Level { column, level: 1 }),
            Value::Level(column) => {
                Err(self
                    .error(node, "a condition is needed here")
                    .accepting(format!(
                        "Compare with a level, for example {}.",
                        self.comparison_example(column)
                    )))
            }
            Value::Number(_) => Err(self
                .error(node, "a condition is needed here, not a number")
                .accepting(format!("Compare it, for example {} > 0.", deparse(node)))),
            Value::Text(_) => Err(self.error(node, "a condition is needed here, not a text")),
        }
    }

    fn comparison_example(&self, column: usize) -> String {
        let level = self.levels(column).first().map_or("…", String::as_str);
        format!("{} == {level:?}", super::quote_name(self.name_of(column)))
    }

    fn sum(&self, node: &Node, first: &Node, rest: &[(bool, Node)]) -> Result<Value, FormulaError> {
        if rest.len() >= MOST_OPERANDS {
            return Err(self.error(
                node,
                format!("more than {MOST_OPERANDS} operands in one sum"),
            ));
        }
        let mut total = self.number(first)?;
        for (plus, operand) in rest {
            let operand = self.number(operand)?;
            total = match (total, operand, plus) {
                (Expr::Constant(a), Expr::Constant(b), true) => Expr::Constant(a + b),
                (Expr::Constant(a), Expr::Constant(b), false) => Expr::Constant(a - b),
                (a, b, true) => a.add(b),
                (a, b, false) => a.sub(b),
            };
        }
        Ok(Value::Number(self.finite(node, total)?))
    }

    fn finite(&self, node: &Node, expr: Expr) -> Result<Expr, FormulaError> {
        match expr {
            Expr::Constant(x) if !x.is_finite() => {
                Err(self.error(node, "this constant is not a finite number"))
            }
            other => Ok(other),
        }
    }

    fn binary(&self, node: &Node, op: Operator, a: &Node, b: &Node) -> Result<Value, FormulaError> {
        let compared = |how| self.compare(node, how, a, b).map(Value::Truth);
        match op {
            Operator::Multiply | Operator::Divide => {
                let expr = match (self.number(a)?, self.number(b)?, op) {
                    (Expr::Constant(x), Expr::Constant(y), Operator::Multiply) => {
                        Expr::Constant(x * y)
                    }
                    (Expr::Constant(x), Expr::Constant(y), _) => Expr::Constant(x / y),
                    (x, y, Operator::Multiply) => x.mul(y),
                    (x, y, _) => Expr::Div(Box::new(x), Box::new(y)),
                };
                Ok(Value::Number(self.finite(node, expr)?))
            }
            Operator::Power => self.power(node, a, b).map(Value::Number),
            Operator::Colon => Err(self
                .error(node, "`:` joins terms and is no arithmetic")
                .accepting("Write * for a product.")),
            Operator::In => self.within(node, a, b).map(Value::Truth),
            Operator::And => Ok(Value::Truth(Expr::And(
                Box::new(self.truth(a)?),
                Box::new(self.truth(b)?),
            ))),
            Operator::Or => Ok(Value::Truth(Expr::Or(
                Box::new(self.truth(a)?),
                Box::new(self.truth(b)?),
            ))),
            Operator::Less => compared(Comparison::Less),
            Operator::LessEqual => compared(Comparison::LessEqual),
            Operator::Greater => compared(Comparison::Greater),
            Operator::GreaterEqual => compared(Comparison::GreaterEqual),
            Operator::Equal => compared(Comparison::Equal),
            Operator::NotEqual => compared(Comparison::NotEqual),
        }
    }

    fn power(&self, node: &Node, a: &Node, b: &Node) -> Result<Expr, FormulaError> {
        let base = self.number(a)?;
        let fix = "Write a whole exponent such as x^2; sqrt(x) for x^0.5, exp(x) for e^x.";
        let Expr::Constant(exponent) = self.number(b)? else {
            return Err(self
                .error(b, "the exponent must be a number")
                .accepting(fix));
        };
        if exponent.fract() != 0.0 || exponent.abs() > LARGEST_POWER {
            return Err(self
                .error(b, "the exponent must be a whole number of at most 64")
                .accepting(fix));
        }
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a whole number of magnitude at most 64"
        )]
        let k = exponent as i32;
        match base {
            Expr::Constant(x) => self.finite(node, Expr::Constant(x.powi(k))),
            other => Ok(Expr::Power(Box::new(other), k)),
        }
    }

    fn compare(
        &self,
        node: &Node,
        how: Comparison,
        a: &Node,
        b: &Node,
    ) -> Result<Expr, FormulaError> {
        let (left, right) = (self.value(a)?, self.value(b)?);
        let (column, other, at) = match (&left, &right) {
            (Value::Level(c), _) => (*c, &right, b),
            (_, Value::Level(c)) => (*c, &left, a),
            _ => {
                return Ok(Expr::Compare(
                    how,
                    Box::new(self.number(a)?),
                    Box::new(self.number(b)?),
                ));
            }
        };
        let level = self.constant_level(at, column, other)?;
        let is = Expr::Level { column, level };
        match how {
            Comparison::Equal => Ok(is),
            Comparison::NotEqual => Ok(Expr::Not(Box::new(is))),
            _ => Err(self
                .error(
                    node,
                    format!("the levels of `{}` have no order", self.name_of(column)),
                )
                .accepting("Use ==, != or %in%.")),
        }
    }

    /// The level that a constant names.
    fn constant_level(
        &self,
        node: &Node,
        column: usize,
        value: &Value,
    ) -> Result<u32, FormulaError> {
        match value {
            Value::Text(t) => self.level(node, column, t),
            Value::Number(Expr::Constant(x)) => self.level(node, column, &number(*x)),
            Value::Truth(Expr::Constant(x)) => {
                self.level(node, column, if *x == 0.0 { "FALSE" } else { "TRUE" })
            }
            _ => Err(self
                .error(
                    node,
                    format!(
                        "`{}` can only be compared with one of its levels",
                        self.name_of(column)
                    ),
                )
                .accepting(format!(
                    "Write for example {}.",
                    self.comparison_example(column)
                ))),
        }
    }

    fn within(&self, node: &Node, a: &Node, b: &Node) -> Result<Expr, FormulaError> {
        let single = [(None, b.clone())];
        let set: &[(Option<String>, Node)] = match &b.kind {
            Kind::Call(f, arguments) if f == "c" => arguments,
            _ => &single,
        };
        if set.is_empty() || set.len() > MOST_OPERANDS {
            return Err(self
                .error(
                    b,
                    format!("between 1 and {MOST_OPERANDS} values are accepted after %in%"),
                )
                .accepting("Write for example education %in% c(\"BA\", \"MA\")."));
        }
        let left = self.value(a)?;
        let mut any: Option<Expr> = None;
        for (_, element) in set {
            let is = if let Value::Level(column) = left {
                let value = self.value(element)?;
                Expr::Level {
                    column,
                    level: self.constant_level(element, column, &value)?,
                }
            } else {
                Expr::Compare(
                    Comparison::Equal,
                    Box::new(self.number(a)?),
                    Box::new(self.number(element)?),
                )
            };
            any = Some(match any {
                None => is,
                Some(before) => Expr::Or(Box::new(before), Box::new(is)),
            });
        }
        any.ok_or_else(|| self.error(node, "nothing follows %in%"))
    }

    fn call(
        &self,
        node: &Node,
        function: &str,
        arguments: &[(Option<String>, Node)],
    ) -> Result<Value, FormulaError> {
        let known = FUNCTIONS.iter().find(|f| f.0 == function);
        if known.is_none() && !matches!(function, "I" | "as.numeric" | "C" | "factor" | "c") {
            return Err(self.unknown_function(node, function));
        }
        if matches!(function, "C" | "factor") {
            return Err(self
                .error(
                    node,
                    format!("{function}() makes levels, which are no number"),
                )
                .accepting(
                    "Use it as a term of its own, or compare the column itself with a level.",
                ));
        }
        if function == "c" {
            return Err(self.error(node, "c() is only known after %in%"));
        }
        let [(None, argument)] = arguments else {
            let fix = match function {
                "log" => "Write log(x), log2(x) or log10(x).".to_owned(),
                _ => format!("Write {function}(x)."),
            };
            return Err(self
                .error(node, format!("{function}() takes one argument"))
                .accepting(fix));
        };
        match (function, known) {
            ("I", _) => self.value(argument),
            (_, Some((_, f))) => Ok(Value::Number(self.number(argument)?.call(*f))),
            _ => Ok(Value::Number(self.number(argument)?)),
        }
    }

    fn unknown_function(&self, node: &Node, function: &str) -> FormulaError {
        let names: Vec<&str> = FUNCTIONS
            .iter()
            .map(|f| f.0)
            .chain(["I", "C", "factor"])
            .collect();
        let error = self.error(node, format!("there is no function `{function}`"));
        if COLUMN_WISE.contains(&function) {
            return self
                .error(node, format!("{function}() depends on all rows at once, which would have to be released first"))
                .accepting("Use functions of one row, with public constants: for example I((age - 40)/10).");
        }
        match function {
            "offset" => error.accepting("Subtract a known part from the outcome instead."),
            "is.na" => error.accepting("Missing cells are governed by the curator's policies."),
            "ln" => error.accepting("The natural logarithm is log(x)."),
            _ => error.accepting(suggest::advice(function, &names)),
        }
    }
}
