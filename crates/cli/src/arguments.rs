//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Private models and diagnostics from confidential tables.
///
/// A curator declares a table and its budget once (`init`, `register`); analysts write plans, see what they cost
/// (`price`) and run them (`run`). Every release is paid for in a ledger (`ledger`).
#[derive(Parser)]
#[command(name = "reticent", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print for machines.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  reticent price examples/adult/plan.toml      what the plan costs, without opening the data
  reticent run examples/adult/plan.toml        make release.json and report.html
  reticent count examples/adult/dataset.toml --epsilon 0.1
                                               one release, from flags: every kind is a command
  reticent ledger show examples/adult/dataset.toml

Exit codes: 0 done, 1 the machine failed, 2 the request as written is refused, 3 a valid request is refused,
4 an audit refuted the claim.";

const AUDITS: &str = "\
Examples:
  reticent audit                               what can be audited
  reticent audit noisy-cut --out noisy-cut.svg
  reticent audit --first a.csv --second b.csv --epsilon 1 -- python3 examples/audit/laplace.py

A program reads a table on standard input and prints its output, numbers, on one line; up to RETICENT_RUNS lines from
as many independent runs are welcome. Exit codes: 0 not flagged, 4 flagged.";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Write a dataset.toml to fill in, from the header of a file alone.
    #[command(after_help = "Example: reticent init survey.csv > dataset.toml")]
    Init {
        /// CSV (also .gz) or Parquet file, of which only the header is read; or SmartNoise metadata (.yaml).
        data: PathBuf,
        /// Which table of SmartNoise metadata.
        #[arg(long)]
        table: Option<String>,
    },
    /// Check every row of a table, for its curator, and create its ledger.
    #[command(after_help = "Example: reticent register dataset.toml")]
    Register {
        /// The declaration.
        dataset: PathBuf,
    },
    /// Write public fake data of the declared shape, to try plans on.
    #[command(after_help = "Example: reticent mock dataset.toml --rows 1000 > mock.csv")]
    Mock {
        /// The declaration.
        dataset: PathBuf,
        /// Number of rows.
        #[arg(long, default_value_t = 1000)]
        rows: u64,
        /// Seed; the same seed gives the same rows.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Print the JSON Schema of a file format.
    Schema {
        /// Which format.
        of: Format,
    },
    /// Say what a plan costs and how accurate it will be, without opening the data.
    #[command(after_help = "Example: reticent price plan.toml --rows 50000")]
    Price {
        /// The plan.
        plan: PathBuf,
        /// Number of rows to assume where none is declared.
        #[arg(long)]
        rows: Option<u64>,
    },
    /// Say how accurate a plan or one kind of release will be, and which epsilon an accuracy needs.
    ///
    /// From public parameters alone; the data are never opened. Errors are half-widths that hold with probability .95.
    #[command(
        after_help = "Examples:\n  reticent plan-accuracy plan.toml --rows 50000\n  reticent plan-accuracy --kind histogram --cells 4096 --epsilon 0.1 --relation add_remove\n  reticent plan-accuracy --kind count --error 20"
    )]
    PlanAccuracy(Box<PlanAccuracy>),
    /// Run a plan: pay for it, make its releases, write release.json and report.html.
    #[command(after_help = "Example: reticent run plan.toml --out results")]
    Run {
        /// The plan.
        plan: PathBuf,
        /// Folder for release.json and report.html; by default out/NAME beside the plan.
        #[arg(long)]
        out: Option<PathBuf>,
        /// Whose spends these are (a name for the books; the command line does not check it).
        #[arg(long)]
        analyst: Option<String>,
        /// Only say what it would cost.
        #[arg(long)]
        dry_run: bool,
    },
    /// Predict with a released model.
    #[command(
        after_help = "Example: reticent predict out/plan/release.json#income new.csv > predicted.csv"
    )]
    Predict {
        /// The model, as release.json#id.
        model: String,
        /// CSV file with the model's columns.
        data: PathBuf,
        /// Output file; standard output by default.
        #[arg(long)]
        out: Option<PathBuf>,
        /// Probability from which a row is positive: a number, or release.json#id of a released threshold; 0.5 by default.
        #[arg(long)]
        threshold: Option<String>,
    },
    /// Test a mechanism's privacy claim: exact loss where there is one, a statistical lower bound.
    #[command(after_help = AUDITS)]
    Audit(crate::audit::Audit),
    /// See what mechanisms that are not private, and exact plots, give away.
    #[command(after_help = "Example: reticent attack reconstruct --out reconstructed.svg")]
    Attack {
        #[command(subcommand)]
        which: crate::audit::Attack,
    },
    /// Release private counts of a stream of events, tick by tick, until it ends or is stopped.
    #[command(after_help = "Example: reticent stream examples/flights/stream.toml")]
    Stream {
        /// The declaration, stream.toml.
        config: PathBuf,
        /// Noise from this seed, nothing paid, no guarantee: for trials on public data.
        #[arg(long)]
        simulate: Option<u64>,
        /// Whose spend it is.
        #[arg(long)]
        analyst: Option<String>,
        /// Only say what is guaranteed and what it costs.
        #[arg(long)]
        dry_run: bool,
        /// Believe marks more than `max_ahead` ticks ahead: once, after a long silence.
        #[arg(long)]
        catch_up: bool,
    },
    /// Look at a ledger, check it, or raise its cap.
    Ledger {
        #[command(subcommand)]
        action: LedgerAction,
    },
}

/// What `plan-accuracy` is asked about: a plan, or one kind by its numbers.
#[derive(clap::Args)]
pub(crate) struct PlanAccuracy {
    /// The plan.
    #[arg(required_unless_present = "kind", conflicts_with = "kind")]
    pub(crate) plan: Option<PathBuf>,
    /// One kind: count, sum, mean, histogram, crosstab, quantiles, bounds, sparse_vector, roc, auc, residuals,
    /// binned_residuals, top_k, running_total, select, naive_bayes, verify; of logistic, linear, covariance, regress and
    /// threshold it says why no error can be given.
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Epsilon of the release.
    #[arg(long, conflicts_with_all = ["rho", "error"])]
    pub(crate) epsilon: Option<f64>,
    /// Rho, for running totals by square root.
    #[arg(long, conflicts_with = "error")]
    pub(crate) rho: Option<f64>,
    /// The error that is wanted; gives the epsilon for it.
    #[arg(long)]
    pub(crate) error: Option<f64>,
    /// The neighbour relation.
    #[arg(long, value_enum, default_value_t = Neighbours::AddRemove)]
    pub(crate) relation: Neighbours,
    /// Number of rows to assume.
    #[arg(long)]
    pub(crate) rows: Option<u64>,
    /// Largest number of rows of a privacy unit.
    #[arg(long)]
    pub(crate) rows_per_unit: Option<u32>,
    /// Cells of a histogram, of the grid of quantiles, candidates of a top-k, or features.
    #[arg(long)]
    pub(crate) cells: Option<u32>,
    /// Number of quantiles.
    #[arg(long)]
    pub(crate) levels: Option<u32>,
    /// Largest absolute value of a sum; width of the interval of a mean.
    #[arg(long)]
    pub(crate) width: Option<f64>,
    /// Share that a range covers on each side.
    #[arg(long)]
    pub(crate) coverage: Option<f64>,
    /// Ends of a range that are sought: 1 or 2.
    #[arg(long)]
    pub(crate) sides: Option<u32>,
    /// Positive answers of a sparse vector.
    #[arg(long)]
    pub(crate) answers: Option<u32>,
    /// Queries of a sparse vector.
    #[arg(long)]
    pub(crate) queries: Option<u64>,
    /// How many of the candidates a top-k chooses.
    #[arg(long)]
    pub(crate) k: Option<u32>,
    /// Features that a record can have, of a select or naive Bayes release.
    #[arg(long)]
    pub(crate) most: Option<u32>,
    /// Coefficients of a verified regression, the intercept among them; 2 by default.
    #[arg(long)]
    pub(crate) coefficients: Option<u32>,
    /// Steps of running totals.
    #[arg(long)]
    pub(crate) steps: Option<u32>,
    /// Share of positive outcomes.
    #[arg(long)]
    pub(crate) positive_rate: Option<f64>,
    /// Method: exponential, recursive, smooth; fine, doubling; tree, honaker, square_root; counts,
    /// permute_and_flip, peeling, joint, noisy_max; clusters, picks, sparse_vector.
    #[arg(long)]
    pub(crate) method: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Neighbours {
    /// One unit more or less.
    AddRemove,
    /// One unit replaced.
    ReplaceOne,
}

#[derive(Subcommand)]
pub(crate) enum LedgerAction {
    /// What was spent, by whom, and what is left.
    Show {
        /// dataset.toml or the ledger itself.
        of: PathBuf,
    },
    /// Re-read the whole chain and recompute every total.
    #[command(after_help = "Example: reticent ledger verify dataset.toml --against release.json")]
    Verify {
        /// dataset.toml or the ledger itself.
        of: PathBuf,
        /// A release.json that must lie on this ledger's chain.
        #[arg(long)]
        against: Option<PathBuf>,
    },
    /// Raise the cap; recorded for good.
    #[command(
        after_help = "Example: reticent ledger raise dataset.toml --epsilon 12 --by \"data board\""
    )]
    Raise {
        /// dataset.toml or the ledger itself.
        of: PathBuf,
        /// New cap.
        #[arg(long)]
        epsilon: Option<String>,
        /// New cap.
        #[arg(long)]
        delta: Option<String>,
        /// New cap.
        #[arg(long)]
        rho: Option<String>,
        /// Who decided it.
        #[arg(long)]
        by: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// dataset.toml
    Dataset,
    /// plan.toml
    Plan,
    /// release.json
    Release,
    /// stream.toml
    Stream,
}

impl Format {
    /// The name by which the engine knows it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dataset => "dataset",
            Self::Plan => "plan",
            Self::Release => "release",
            Self::Stream => "stream",
        }
    }
}
