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
        name: "bisection",
        methods: &[Enumerated],
        claim: "pure: depth draws of a/r e, r1 2e; bounded range each; general levels, also over two classes on one line",
        tests: &[
            "smooth::bisection_enumerated",
            "smooth::bisection_canary",
            "classes::both_classes_enumerated",
            "classes::both_classes_canary",
            "classes::half_the_noise_is_not_enough_for_replacing",
        ],
    },
    Row {
        name: "smooth_medians",
        methods: &[Density, Enumerated],
        claim: "pure: depth Cauchy draws, a/r s e, r1 (2s - 1) e; kappa hyperbolic, smooth sensitivity rounded up",
        tests: &[
            "smooth::sensitivity_is_smooth",
            "smooth::golden_losses",
            "smooth::median_density",
            "smooth::medians_enumerated",
            "smooth::median_canary",
        ],
    },
    Row {
        name: "smooth_auc",
        methods: &[Density],
        claim: "pure e under both relations: Cauchy noise on max(1/m, e^(-(m-1) beta))",
        tests: &[
            "smooth::auc_moves_by_one_over_m",
            "smooth::auc_density",
            "smooth::auc_canary",
        ],
    },
    Row {
        name: "range",
        methods: &[Enumerated],
        claim: "pure: a/r e (r1 2e), or r1 e (a/r theta e1 + e2)",
        tests: &[
            "neighbours::range_enumerated",
            "golden::range_finder",
            "golden::printed_range_scales",
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
        name: "norm_moments",
        methods: &[Density],
        claim: "pure e: distance of the weighted triangle within Q (a/r), sqrt 2 Q (r1)",
        tests: &[
            "models::norm_moments_distances",
            "models::weaker_noise_is_flagged",
            "models::norm_moments_noise_has_the_law",
        ],
    },
    Row {
        name: "output_perturbation",
        methods: &[Density],
        claim: "pure e: certified minimisers within (R + 2 gamma)/Lambda (a/r), (2R + 2 gamma)/Lambda (r1)",
        tests: &[
            "models::output_perturbation_distances",
            "models::weaker_noise_is_flagged",
        ],
    },
    Row {
        name: "least_squares",
        methods: &[Density],
        claim: "pure e: certified fits within a ball, (G + 2 gamma)/Lambda (a/r), (2G + 2 gamma)/Lambda (r1), G = Q (W + sqrt(1 + W^2))/2",
        tests: &[
            "least_squares::distances_are_paid_for",
            "least_squares::distances_reach_the_bound",
            "least_squares::weaker_noise_is_flagged",
            "least_squares::without_the_ball_is_flagged",
            "least_squares::released_noise_has_the_law",
        ],
    },
    Row {
        name: "sketch",
        methods: &[Density],
        claim: "(e, delta): Gaussian rows over S + w^2 I; a/r N(0, 1 + q) against N(0, 1), r1 its product with the reverse, q = Q/w^2, each exact",
        tests: &[
            "sketch::losses_are_paid_for",
            "sketch::worst_pairs_reach_the_claim",
            "sketch::weaker_is_flagged",
            "sketch::units_of_several_records",
            "sketch::released_rows_have_the_law",
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
            "objective::shipped_minimiser_inverts_the_gradient",
            "objective::shipped_losses",
            "objective::shipped_losses_with_intercept",
            "objective::shipped_canary",
        ],
    },
    Row {
        name: "linear queries",
        methods: &[Enumerated, Matrix],
        claim: "pure e (rho, (e, delta)) for any public strategy: noise S/(share e), S its exact column sum (a/r) or pair bound (r1)",
        tests: &[
            "linear::enumerated",
            "linear::every_strategy_matrix",
            "linear::counter_matrices",
            "linear::golden_trees",
            "linear::gaussian_strategies",
            "linear::canaries",
        ],
    },
    Row {
        name: "partition",
        methods: &[Enumerated, Density],
        claim: "pure: a/r e (r1 2e), or r1 e (a/r e/2); noise on every candidate, no clamping",
        tests: &[
            "partition::enumerated",
            "partition::golden_line",
            "partition::canary",
        ],
    },
    Row {
        name: "split_tree",
        methods: &[Enumerated, Density],
        claim: "pure e at any depth, scale K(H)/e (a/r), (K(H-1) + 1)/e (r1)",
        tests: &[
            "split_tree::enumerated",
            "split_tree::golden_biased_counts",
            "split_tree::canary",
        ],
    },
    Row {
        name: "worst_query",
        methods: &[Enumerated],
        claim: "pure e under both relations; bounded range",
        tests: &["worst_query::enumerated", "worst_query::canary"],
    },
    Row {
        name: "selection",
        methods: &[Enumerated],
        claim: "pure: k picks of a/r e/k, r1 2e/k at rate e/k; e/2, e at half the rate; exponential: bounded range",
        tests: &[
            "selection::exponential_enumerated",
            "selection::permute_and_flip_enumerated",
            "selection::noisy_max_enumerated",
            "selection::items_enumerated",
            "selection::golden_permute_and_flip",
            "selection::selection_canaries",
        ],
    },
    Row {
        name: "joint_selection",
        methods: &[Enumerated],
        claim: "pure: a/r e, r1 2e at rate e/2; e/2, e at rate e/4; bounded range",
        tests: &[
            "joint::golden_joint",
            "joint::joint_enumerated",
            "joint::joint_canary",
        ],
    },
    Row {
        name: "threshold_tests",
        methods: &[Enumerated],
        claim: "pure e for c positive answers and their gaps, adaptive tests, thresholds that are counts; plus e_v for values",
        tests: &[
            "threshold_tests::threshold_tests_enumerated",
            "threshold_tests::threshold_tests_against_counts",
            "threshold_tests::adaptive_tests_enumerated",
            "threshold_tests::threshold_tests_canary",
        ],
    },
    Row {
        name: "merged_bins",
        methods: &[Enumerated],
        claim: "pure: a/r e, r1 2e at scales 1/e; e/2, e at scales 2/e, whatever the number of groups",
        tests: &[
            "merged_bins::merged_bins_enumerated",
            "merged_bins::golden_bins",
            "merged_bins::merged_bins_canary",
        ],
    },
    Row {
        name: "item_counts",
        methods: &[Enumerated, Matrix],
        claim: "pure: s/e, r1 2s/e; zCDP s/(2 rho), s/rho; (e, delta) analytic; s + 1 with the class counts",
        tests: &[
            "item_counts::item_counts_enumerated",
            "item_counts::item_counts_matrix",
            "item_counts::item_counts_canary",
            "item_counts::slots_enumerated",
            "item_counts::slots_matrix",
        ],
    },
    Row {
        name: "votes",
        methods: &[Enumerated],
        claim: "pure: 1/e, r1 2/e on the number of yes votes",
        tests: &[
            "votes::votes_enumerated",
            "votes::a_record_moves_one_group",
            "votes::order_does_not_count",
            "votes::votes_canary",
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
    composite("histogram identity", "linear queries"),
    composite("histogram uniform", "linear queries"),
    composite("histogram hb", "linear queries"),
    composite("histogram privelet", "linear queries"),
    composite("histogram greedyh", "linear queries"),
    composite("histogram dawa", "partition, linear queries"),
    composite("histogram ahp", "linear queries twice"),
    composite("histogram ag", "linear queries, up to three times"),
    composite(
        "histogram mwem",
        "linear queries, rounds of worst_query and linear queries",
    ),
    composite("histogram privtree", "split_tree, linear queries"),
    composite("crosstab", "counts"),
    composite("quantiles", "quantile"),
    composite("quantiles_recursive", "bisection"),
    composite("quantiles_smooth", "smooth_medians"),
    composite("bounds", "range"),
    composite("bounds_upper", "range"),
    composite("bounds_printed", "range"),
    composite("logistic", "quantile, objective or output_perturbation"),
    composite("linear", "quantile, second_moments or norm_moments"),
    composite("linear output", "least_squares"),
    composite("covariance", "quantile, second_moments or norm_moments"),
    composite("covariance sketch", "sketch"),
    composite("auc", "smooth_auc"),
    composite("roc", "medians, counts"),
    composite("roc stratified", "counts, bisection, counts"),
    composite("roc label_separate", "counts, bisection"),
    composite("residuals", "range, counts"),
    composite("residuals_published", "range, then partition and linear"),
    composite("residuals_tests", "range, counts, linear"),
    composite("binned_residuals", "medians, counts, sums"),
    composite(
        "binned_residuals_published",
        "medians, merged_bins, counts, sums",
    ),
    composite("binned_residuals_against", "medians, counts, sums"),
    composite("verify", "votes"),
    composite("naive_bayes", "item_counts, sums"),
    composite("naive_bayes keep", "item_counts, sums"),
    composite("select", "item_counts"),
    composite("select by picks", "selection"),
    composite("select by sparse vector", "threshold_tests"),
    composite("running_total", "linear queries"),
    composite("running_total tree", "linear queries"),
    composite("running_total square_root", "linear queries"),
    composite("top_k", "selection, or joint_selection, or counts"),
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
