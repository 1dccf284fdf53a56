//! Records of UCI Adult with a public model, for the attacks on plots.

use super::residuals::Point;
use super::roc::Scored;
use crate::AuditError;

/// The columns the public models read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Person {
    /// Years.
    pub age: u32,
    /// 1 to 16.
    pub education: u32,
    /// Per week.
    pub hours: u32,
    /// Income above 50,000.
    pub high_income: bool,
}

/// The first `n` records of a table.
pub fn load(adult: &str, file: &str, n: usize) -> Result<Vec<Person>, AuditError> {
    let names = ["age", "education_num", "hours_per_week", "income"];
    let rows = super::histogram::columns(adult, file, &names)?;
    rows.iter()
        .take(n)
        .map(|row| {
            let number = |i: usize| {
                row[i].trim().parse().map_err(|_| AuditError::Input {
                    file: file.to_owned(),
                    cause: format!("{:?} in column {} is not a whole number", row[i], names[i]),
                })
            };
            Ok(Person {
                age: number(0)?,
                education: number(1)?,
                hours: number(2)?,
                high_income: row[3].trim().starts_with('>'),
            })
        })
        .collect()
}

impl Person {
    /// A public logistic model of income (rounded coefficients, for illustration).
    pub fn scored(&self) -> Scored {
        let z = -8.4
            + 0.044 * f64::from(self.age)
            + 0.35 * f64::from(self.education)
            + 0.038 * f64::from(self.hours);
        Scored {
            score: 1.0 / (1.0 + libm::exp(-z)),
            positive: self.high_income,
        }
    }

    /// A public linear model of hours from age and education (rounded coefficients, for illustration).
    pub fn expected_hours(age: u32, education: u32) -> f64 {
        30.27 + 0.0613 * f64::from(age) + 0.7391 * f64::from(education)
    }

    /// The record's point on the residual plot of that model.
    pub fn point(&self) -> Point {
        let predicted = Self::expected_hours(self.age, self.education);
        Point {
            predicted,
            residual: f64::from(self.hours) - predicted,
        }
    }
}
