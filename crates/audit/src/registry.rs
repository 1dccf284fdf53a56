//! Which test vouches for which mechanism: one row per thing a plan can buy.

/// How a row is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Enumeration of the shipped code over all small tables.
    Enumerated,
    /// Strategy matrix read off the shipped code.
    Matrix,
    /// Density on a grid or in closed form.
    Density,
    /// Composite: every paid step has a row of its own, prices add up, drowned noise hides everything.
    Composite,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The mechanism, as in plans and receipts.
    pub name: &'static str,
    /// Ways it is tested.
    pub methods: &'static [Method],
    /// What is claimed.
    pub claim: &'static str,
    /// Tests, `file::function`. Composites: the contract test that lists them all.
    pub tests: &'static [&'static str],
}

use Method::{Composite, Density, Enumerated, Matrix};

/// Paid steps: what composites are made of.
pub const STEPS: &[Row] = &[
    Row {
        name: "counts",
        methods: &[Enumerated, Matrix],
        claim: "pure: a/r e, r1 2e at scale 1/e; e/2, e at scale 2/e",
        tests: &[
            "neighbours::counts_enumerated",
            "neighbours::counts_matrix",
            "canaries::counts",
        ],
    },
    Row {
        name: "sums",
        methods: &[Enumerated, Matrix],
        claim: "pure, as counts, noise in proportion to each group's largest deviation",
        tests: &[
            "neighbours::sums_enumerated",
            "neighbours::binned_sums_algebra",
            "canaries::sums",
        ],
    },
    Row {
        name: "quantile",
        methods: &[Enumerated],
        claim: "pure: a/r e, r1 e/max(q, 1-q); bounded range",
        tests: &[
            "neighbours::quantile_enumerated",
            "golden::em_quantile",
            "canaries::quantile",
        ],
    },
    Row {
        name: "medians",
        methods: &[Enumerated],
        claim: "pure: depth levels of a/r e, r1 2e; bounded range each",
        tests: &["neighbours::medians_enumerated", "canaries::medians"],
    },
    Row {
        name: "range",
        methods: &[Enumerated],
        claim: "pure: a/r e (r1 2e), or r1 e (a/r theta e1 + e2)",
        tests: &[
            "neighbours::range_enumerated",
            "golden::range_finder",
            "canaries::range",
        ],
    },
    Row {
        name: "sparse_vector",
        methods: &[Enumerated],
        claim: "pure e for c positive answers and their gaps",
        tests: &[
            "neighbours::sparse_vector_enumerated",
            "golden::sparse_vector",
            "canaries::sparse_vector",
        ],
    },
    Row {
        name: "second_moments",
        methods: &[Matrix, Density],
        claim: "L2 sensitivity Q (a/r), sqrt 2 Q (r1), isometric triangle",
        tests: &[
            "neighbours::second_moments_matrix",
            "golden::moments",
            "golden::gaussian_calibration",
            "canaries::second_moments",
        ],
    },
    Row {
        name: "objective",
        methods: &[Density],
        claim: "pure e: minimiser density, determinant ratio within 1 + R^2/(4 Lambda)",
        tests: &[
            "golden::objective_density",
            "golden::objective_density_with_intercept",
            "golden::objective_constants",
        ],
    },
    Row {
        name: "stream_counts",
        methods: &[Matrix, Enumerated],
        claim: "pure: a/r e, r1 2e for ever; same-tick swap 2(1 - root's share) e",
        tests: &[
            "streams::counts_matrix",
            "streams::plans_enumerated",
            "streams::swaps_of_state",
            "streams::plans_canary",
        ],
    },
    Row {
        name: "stream_groups",
        methods: &[Enumerated],
        claim: "pure: the marks of a series cost a/r e, r1 2e at scales 2/e1 and 4/e2",
        tests: &["streams::grouper_enumerated", "streams::grouper_canary"],
    },
];

/// Releases composed of [`STEPS`]; the contract test runs over all of them.
pub const COMPOSITES: &[Row] = &[
    composite("count", "counts"),
    composite("sum", "sums"),
    composite("mean", "counts, sums"),
    composite("histogram", "counts"),
    composite("crosstab", "counts"),
    composite("quantiles", "quantile"),
    composite("bounds", "range"),
    composite("logistic", "quantile, objective"),
    composite("linear", "quantile, second_moments"),
    composite("roc", "medians, counts"),
    composite("residuals", "range, counts"),
    composite("binned_residuals", "medians, counts, sums"),
];

const fn composite(name: &'static str, claim: &'static str) -> Row {
    Row {
        name,
        methods: &[Composite],
        claim,
        tests: &["composites::all"],
    }
}

/// The row of a name.
pub fn row(name: &str) -> Option<&'static Row> {
    STEPS.iter().chain(COMPOSITES).find(|r| r.name == name)
}
