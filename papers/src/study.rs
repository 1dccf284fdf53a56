//! What a study is and what it reports.

use std::fmt;

use reticent_mechanisms::source::SourceError;

use crate::studies::{
    adult_binned, adult_roc, covariance, dpbench, empirical_ml, models, pegasus, plots,
    pums_linear, pums_residuals, roc, sparse_vector, which_mechanism,
};

/// How long a study runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Seconds: what the tests run.
    Quick,
    /// What `docs/studies.md` records.
    Full,
}

impl Form {
    /// One of two numbers.
    pub(crate) fn pick(self, quick: u32, full: u32) -> u32 {
        self.either(quick, full)
    }

    /// One of two values.
    pub(crate) fn either<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

/// A study by name.
#[derive(Clone, Copy)]
pub struct Study {
    /// As on the command line.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(Form) -> Result<Findings, StudyError>,
}

/// All studies.
pub const STUDIES: &[Study] = &[
    Study {
        name: "studies/adult-roc",
        about: "private AUC and the proved band against the true ROC curve of the Adult test records",
        run: adult_roc::run,
    },
    Study {
        name: "studies/adult-binned",
        about: "private against true binned residuals on the same records",
        run: adult_binned::run,
    },
    Study {
        name: "studies/pums-linear",
        about: "coverage of the nominal 95 % intervals of a linear regression on resampled PUMS records",
        run: pums_linear::run,
    },
    Study {
        name: "studies/pums-residuals",
        about: "similarity of private and true residual plots of the PUMS model",
        run: pums_residuals::run,
    },
    Study {
        name: "studies/which-mechanism",
        about: "measured errors of counts, totals, selection, medians and areas against n times epsilon, with a figure",
        run: which_mechanism::run,
    },
    Study {
        name: "dpbench",
        about: "errors of the ten histogram algorithms on the DPBench data sets, and closed forms",
        run: dpbench::run,
    },
    Study {
        name: "empirical-ml",
        about: "feature selection and naive Bayes on texts: figures 1 to 5 of Stoddard, Chen, Machanavajjhala (2014)",
        run: empirical_ml::run,
    },
    Study {
        name: "sparse-vector",
        about: "reconstruction of four histograms through threshold testing without a cut-off (thesis Tables 3.1-3.3)",
        run: sparse_vector::run,
    },
    Study {
        name: "studies/models",
        about: "held-out accuracy of logistic and linear regression on the designs behind the yardsticks, 10,000 records",
        run: models::small,
    },
    Study {
        name: "studies/models-large",
        about: "the same on 100,000 records",
        run: models::large,
    },
    Study {
        name: "studies/penalty",
        about: "AUC and logarithmic loss of logistic regression by the share of epsilon that the penalty pays for",
        run: models::penalties,
    },
    Study {
        name: "papers/covariance",
        about: "tables and figures of the covariance report, as printed and corrected",
        run: covariance::run,
    },
    Study {
        name: "regression-diagnostics/roc",
        about: "areas and curves on predictions for SMS and tweets: figures 4.7 to 4.11 and Table 4.4 of the thesis",
        run: roc::figures::run,
    },
    Study {
        name: "regression-diagnostics/roc-power",
        about: "which areas are told apart: Table 4.3",
        run: roc::power::run,
    },
    Study {
        name: "regression-diagnostics/roc-accuracy",
        about: "mean error of the area from 1,000 to 1,000,000 records",
        run: roc::accuracy::run,
    },
    Study {
        name: "regression-diagnostics/roc-coverage",
        about: "how often band and intervals hold: 77 negatives, ties, skewed scores",
        run: roc::coverage::run,
    },
    Study {
        name: "regression-diagnostics/residuals",
        about: "residual plots of right and wrong models: figure 4.3, Tables 4.1 and 4.2",
        run: plots::residuals::run,
    },
    Study {
        name: "regression-diagnostics/binned",
        about: "binned residual plots of right and wrong models (figures 4.14, 4.15, Table 4.5), and how often their limits hold",
        run: plots::binned::run,
    },
    Study {
        name: "regression-diagnostics/pictures",
        about: "single plots and how often one is read rightly: figures 4.1, 4.2, 4.4, 4.5, 4.12, 4.13",
        run: plots::pictures::run,
    },
    Study {
        name: "pegasus/picture",
        about: "a stream and its private releases (figure 5.2)",
        run: pegasus::picture::run,
    },
    Study {
        name: "pegasus/unit",
        about: "unit counts of streams by method and smoother (Chen 2018, figures 5.3 and 5.4), and the filters",
        run: pegasus::unit,
    },
    Study {
        name: "pegasus/windows",
        about: "window sums against SW_w (figure 5.5), and blended sums",
        run: pegasus::windows,
    },
    Study {
        name: "pegasus/alarms",
        about: "jumps and low signals (figures 5.6 and 5.7)",
        run: pegasus::alarms,
    },
    Study {
        name: "pegasus/hierarchy",
        about: "a tree of series (figure 5.8) with sound pruning",
        run: pegasus::hierarchy::run,
    },
];

/// Why a study could not run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The example could not be read.
    #[error("the example data: {0}")]
    Example(String),
    /// The data could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A release could not be prepared or run.
    #[error("{0}")]
    Release(String),
}

impl StudyError {
    /// A release that could not be prepared or run.
    pub(crate) fn release(cause: impl fmt::Display) -> Self {
        Self::Release(cause.to_string())
    }
}

/// A number that has to be reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// In words, with the figure.
    pub what: String,
    /// Whether it is.
    pub met: bool,
}

/// The figures of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Data, model, seeds, number of runs.
    pub settings: Vec<String>,
    /// Head of the table.
    pub head: Vec<String>,
    /// Rows of the table.
    pub rows: Vec<Vec<String>>,
    /// What the figures have to reach.
    pub requirements: Vec<Requirement>,
}

impl Findings {
    /// Whether every requirement is met.
    pub fn met(&self) -> bool {
        self.requirements.iter().all(|r| r.met)
    }

    /// Adds a requirement.
    pub(crate) fn require(&mut self, met: bool, what: String) {
        self.requirements.push(Requirement { what, met });
    }
}

impl fmt::Display for Findings {
    /// Markdown, ready for `docs/studies.md`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.settings {
            writeln!(f, "* {line}")?;
        }
        writeln!(f, "\n| {} |", self.head.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.head.len()))?;
        for row in &self.rows {
            writeln!(f, "| {} |", row.join(" | "))?;
        }
        writeln!(f)?;
        for r in &self.requirements {
            writeln!(f, "* {}: {}", if r.met { "met" } else { "NOT MET" }, r.what)?;
        }
        Ok(())
    }
}
