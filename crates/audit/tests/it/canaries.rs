//! Canaries: the same tests with .95·r of the noise (r: the recorded share of the price) must exceed the price.

use super::neighbours as n;
use super::*;

#[test]
fn counts() {
    n::counts().canary([1.0, 1.0]);
}

#[test]
fn sums() {
    n::sums(false).canary([1.0, 1.0]);
    n::sums(true).canary([1.0, 1.0]);
}

#[test]
fn quantile() {
    n::quantile(ratio(1, 1), (1, 2), &n::EDGES_AND_INSIDES, 4)
        .canary([0.928_452_816, 0.827_988_939]);
}

#[test]
fn medians() {
    n::medians(ratio(2, 1), 2, 6, 4).canary([0.897_748_434, 0.570_025_047]);
}

#[test]
fn range() {
    n::range(ratio(2, 1), (1, 2), &[0.0, 1.0, 2.0, 3.0], 3).canary([0.879_797_597, 0.926_564_419]);
}

#[test]
fn sparse_vector() {
    let (general, nested) = ([0..1, 1..2, 1..3], [1..2, 1..3, 0..4]);
    n::sparse_vector(ratio(1, 1), &general, &[1, 2, 3], 2, false, false, 3).canary([1.0, 1.0]);
    n::sparse_vector(ratio(1, 1), &nested, &[1, 2, 3], 1, true, false, 3).canary([0.5, 1.0]);
}
