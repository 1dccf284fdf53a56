//! The deviation-based grouper: one open group of exact counts per series, closed by a noisy test.

use reticent_noise::{Lattice, Noise};

/// What the grouper says about a tick of one series; this is all that leaves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// The grouper did not see this tick of this series.
    #[default]
    Off,
    /// The tick opens a new group.
    Opened,
    /// The tick joined the open group.
    Joined,
    /// The tick did not fit: the open group is closed, and so is this tick, as a group of its own.
    Alone,
}

/// The two noises of a group: on its threshold, drawn when it opens, and on every deviation compared with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupNoise {
    /// On the threshold.
    pub threshold: Lattice,
    /// On a deviation.
    pub deviation: Lattice,
}

/// Counts above this are cut to it: a public bound that moves with a count by at most as much.
pub const LARGEST_COUNT: i64 = 1 << 40;

/// A group this long is closed without looking at it: 4,194,304 ticks, so that sums of counts fit in 64 bits.
const LONGEST: i64 = 1 << 22;

/// The open group of one series, if any: exact counts, so confidential.
///
/// # Claim
/// With noise of scales 2/ε_a and 4/ε_b the marks of a series are (ε_a + ε_b)-DP when one event is added or removed.
/// # Assumptions
/// One event changes one count of the series by 1.
/// # Sensitivity
/// dev(G) = Σ_{i∈G} |c_i − mean|. For w = |G| and a counts at or above the mean, a unit more on one of them changes
/// dev by 2(1 − a/w), on one below by −2a/w: |Δdev| < 2. Signs differ along one run (+ at first, − once larger counts
/// arrive), so this is the general row of the sparse vector technique with Δ = 2. ⌊dev⌋ and ⌊dev′⌋ are
/// integers whose distance is below 2 + 1, so at most 2; and dev < K ⇔ ⌊dev⌋ < K for integers K.
/// # Noise
/// θ̃ = θ + DLap(2/ε_a) once per group; a tick joins iff ⌊dev⌋ + DLap(4/ε_b) < θ̃, fresh noise each.
/// # Composition
/// An event at tick t is in the deviations of one group only: the one open before t, or the one t opens; a tick that
/// closes a group is a group of its own and never compared again. Groups therefore compose in parallel. In a group:
/// "joined" answers cost one shift of θ̃ by 2 (2/(2/ε_a) = ε_a), the one closing answer a shift of its own noise by
/// at most 4 (4/(4/ε_b) = ε_b).
/// # Arithmetic
/// w·dev = 2(n_<·S − w·S_<). Counts are at most 2⁴⁰ and w at most 2²²: sums, and products of a count and a size, are
/// at most 2⁶² and kept in i64; the products in w·dev are at most 2⁸⁴, taken in i64 where they fit and in i128 else.
/// The counts are held as sorted runs with a cursor at the mean: while dev ≤ D there are at most 2√D + 1 runs.
/// # Checked by
/// `streams::grouper_enumerated`, `streams::grouper_canary`, `deviations_are_exact`
/// # References
/// Chen 2018, Algorithm 16; `privacy.md` §9; `beyond.md` §11 "PeGaSus state"; Lyu, Su, Li 2017 (the split).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// θ plus its noise, while the group is open.
    threshold: Option<i128>,
    /// (count, how often), by count.
    runs: Vec<(i64, i64)>,
    /// Runs before it are below the mean.
    cursor: usize,
    size: i64,
    sum: i64,
    size_below: i64,
    sum_below: i64,
}

impl Group {
    /// Takes in the count of a tick. `theta` is the public threshold on the deviation.
    pub fn push(
        &mut self,
        count: i64,
        theta: i64,
        law: &GroupNoise,
        noise: &mut dyn Noise,
    ) -> Mark {
        let count = count.clamp(0, LARGEST_COUNT);
        let Some(threshold) = self.threshold.filter(|_| self.size < LONGEST) else {
            self.clear();
            self.insert(count);
            self.threshold = Some(i128::from(theta).saturating_add(noise.lattice(&law.threshold)));
            return Mark::Opened;
        };
        self.insert(count);
        let need = threshold.saturating_sub(self.deviation());
        if noise.exceeds(&law.deviation, need) {
            self.clear();
            Mark::Alone
        } else {
            Mark::Joined
        }
    }

    /// Closes the group without looking at it; whoever decides that must do so from outputs.
    pub fn close(&mut self) {
        self.clear();
    }

    fn clear(&mut self) {
        self.threshold = None;
        self.runs.clear();
        self.cursor = 0;
        (self.size, self.sum) = (0, 0);
        (self.size_below, self.sum_below) = (0, 0);
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "see Arithmetic above; the cursor stays within 0..=runs.len()"
    )]
    fn insert(&mut self, count: i64) {
        let at = self.runs.partition_point(|r| r.0 < count);
        match self.runs.get_mut(at) {
            Some(run) if run.0 == count => run.1 += 1,
            _ => {
                self.runs.insert(at, (count, 1));
                self.cursor += usize::from(at < self.cursor);
            }
        }
        if at < self.cursor {
            self.size_below += 1;
            self.sum_below += count;
        }
        self.size += 1;
        self.sum += count;
        while let Some(&(value, times)) = self.cursor.checked_sub(1).and_then(|i| self.runs.get(i))
        {
            if value * self.size < self.sum {
                break;
            }
            self.cursor -= 1;
            self.size_below -= times;
            self.sum_below -= value * times;
        }
        while let Some(&(value, times)) = self.runs.get(self.cursor) {
            if value * self.size >= self.sum {
                break;
            }
            self.cursor += 1;
            self.size_below += times;
            self.sum_below += value * times;
        }
    }

    /// ⌊dev⌋ of the group (0 when empty).
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "see Arithmetic above; the divisor is at least 1"
    )]
    fn deviation(&self) -> i128 {
        let (below, all) = (
            self.size_below.checked_mul(self.sum),
            self.size.checked_mul(self.sum_below),
        );
        // n_<·S ≥ w·S_<, so half of w·dev is at least 0
        if let (Some(below), Some(all)) = (below, all)
            && let Some(scaled) = (below - all).checked_mul(2)
        {
            return i128::from(scaled / self.size.max(1));
        }
        let wide = |a: i64, b: i64| i128::from(a) * i128::from(b);
        let half = wide(self.size_below, self.sum) - wide(self.size, self.sum_below);
        2 * half / i128::from(self.size.max(1))
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let Some(threshold) = self.threshold else {
            out.push(0);
            return;
        };
        out.push(1);
        out.extend(threshold.to_le_bytes());
        out.extend(u64::try_from(self.runs.len()).unwrap_or(0).to_le_bytes());
        for (count, times) in &self.runs {
            out.extend(count.to_le_bytes());
            out.extend(times.to_le_bytes());
        }
    }

    /// Reads one group off the front.
    #[allow(clippy::arithmetic_side_effects, reason = "see Arithmetic above")]
    pub(super) fn decode(from: &mut &[u8]) -> Option<Self> {
        let [open] = take(from)?;
        let mut group = Self::default();
        match open {
            0 => return Some(group),
            1 => {}
            _ => return None,
        }
        group.threshold = Some(i128::from_le_bytes(take(from)?));
        for _ in 0..u64::from_le_bytes(take(from)?) {
            let count = i64::from_le_bytes(take(from)?);
            let times = i64::from_le_bytes(take(from)?);
            let ordered = group.runs.last().is_none_or(|last| last.0 < count);
            let inside = (0..=LARGEST_COUNT).contains(&count) && (1..=LONGEST).contains(&times);
            if !ordered || !inside || group.size + times > LONGEST {
                return None;
            }
            group.runs.push((count, times));
            group.size += times;
            group.sum += count * times;
        }
        for &(count, times) in &group.runs {
            if count * group.size >= group.sum {
                break;
            }
            group.cursor += 1;
            group.size_below += times;
            group.sum_below += count * times;
        }
        Some(group)
    }
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use reticent_laws::{Seeded, Silent};
    use reticent_noise::Scale;

    use super::Mark::{Alone, Joined, Opened};
    use super::*;

    const NONE: GroupNoise = GroupNoise {
        threshold: Lattice::Laplace(Scale::ZERO),
        deviation: Lattice::Laplace(Scale::ZERO),
    };

    /// Against the sum over all counts, in rationals w·dev = Σ |w·c − S|, and through an encoding.
    #[test]
    fn deviations_are_exact() {
        for spread in [1_u64, 2, 5, 40, 100_000, u64::MAX >> 24] {
            let mut noise = Seeded::new(spread);
            let mut group = Group {
                threshold: Some(0),
                ..Group::default()
            };
            let mut all: Vec<i128> = Vec::new();
            for _ in 0..600 {
                let c = (noise.bits() % spread).cast_signed();
                group.insert(c);
                all.push(i128::from(c));
                let (w, s) = (i128::try_from(all.len()).unwrap(), all.iter().sum::<i128>());
                let scaled: i128 = all.iter().map(|c| (w * c - s).abs()).sum();
                assert_eq!(group.deviation(), scaled / w);
            }
            let mut bytes = Vec::new();
            group.encode(&mut bytes);
            let mut rest = bytes.as_slice();
            assert!(Group::decode(&mut rest) == Some(group) && rest.is_empty());
            assert!(Group::decode(&mut bytes.get(..bytes.len() - 1).unwrap()).is_none());
        }
    }

    /// Thesis Example 7: threshold 2, counts 5 5 6 9 10.
    #[test]
    fn the_groups_of_example_seven() {
        let mut group = Group::default();
        let marks: Vec<Mark> = [5, 5, 6, 9, 10]
            .iter()
            .map(|c| group.push(*c, 2, &NONE, &mut Silent))
            .collect();
        assert_eq!(marks, [Opened, Joined, Joined, Alone, Opened]);
    }

    /// A group of the greatest length and counts at both ends: the wide products, and closing unseen.
    #[test]
    fn the_longest_group_is_closed_unseen() {
        let half = LONGEST / 2;
        let mut group = Group {
            threshold: Some(0),
            runs: vec![(0, half), (LARGEST_COUNT, half - 1)],
            cursor: 1,
            size: LONGEST - 1,
            sum: LARGEST_COUNT * (half - 1),
            size_below: half,
            sum_below: 0,
        };
        group.insert(LARGEST_COUNT);
        // every count is 2³⁹ from the mean
        assert_eq!(group.deviation(), i128::from(LONGEST) << 39);
        assert_eq!(group.push(3, 0, &NONE, &mut Silent), Opened);
        assert_eq!((group.size, group.sum), (1, 3));
    }

    /// Hostile counts change nothing but the value: clamped, never an overflow.
    #[test]
    fn extreme_counts_are_clamped() {
        let mut group = Group::default();
        for c in [i64::MAX, i64::MIN, -1, 0, i64::MAX, 1] {
            group.push(c, i64::MAX, &NONE, &mut Silent);
        }
        assert_eq!(group.size, 6);
        assert_eq!(group.sum, LARGEST_COUNT * 2 + 1);
    }
}
