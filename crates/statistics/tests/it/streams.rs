//! Smoothers against the reference values (`pegasus_examples.json`, `james_stein.json`), marks from the shipped grouper.

use reticent_laws::Silent;
use reticent_mechanisms::stream::{Group, GroupNoise, Mark};
use reticent_noise::{Lattice, Scale};
use reticent_statistics::streams::{GroupSmoother, Smoother, Towards, efron_morris};

fn marks(counts: &[i64], theta: i64) -> Vec<Mark> {
    let none = GroupNoise {
        threshold: Lattice::Laplace(Scale::ZERO),
        deviation: Lattice::Laplace(Scale::ZERO),
    };
    let mut group = Group::default();
    counts
        .iter()
        .map(|c| group.push(*c, theta, &none, &mut Silent))
        .collect()
}

fn smooth(marks: &[Mark], noisy: &[f64], how: Smoother) -> Vec<f64> {
    let mut smoother = GroupSmoother::new(how);
    marks
        .iter()
        .zip(noisy)
        .map(|(m, z)| smoother.push(*m, *z))
        .collect()
}

fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() < 1e-12 * (1.0 + w.abs()), "{got:?} {want:?}");
    }
}

/// Thesis, Examples 7 and 8, and a longer example.
#[test]
fn examples_of_the_thesis() {
    use Mark::{Alone, Joined, Opened};
    let thesis = marks(&[5, 5, 6, 9, 10], 2);
    assert_eq!(thesis, [Opened, Joined, Joined, Alone, Opened]);
    let noisy = [5.6, 4.4, 6.7, 9.5, 10.2];
    close(
        &smooth(&thesis, &noisy, Smoother::Median),
        &[5.6, 5.0, 5.6, 9.5, 10.2],
    );
    close(
        &smooth(&thesis, &noisy, Smoother::Average),
        &[5.6, 5.0, 5.566_666_666_666_666, 9.5, 10.2],
    );
    let own = marks(&[3, 3, 4, 3, 20, 21, 0, 0, 0, 1, 0, 7], 3);
    let expected = [
        Opened, Joined, Joined, Joined, Alone, Opened, Alone, Opened, Joined, Joined, Joined, Alone,
    ];
    assert_eq!(own, expected);
    let noisy = [
        2.5, 3.9, 4.4, 2.2, 19.1, 22.3, 0.4, -0.8, 0.3, 1.2, -0.1, 6.6,
    ];
    close(
        &smooth(&own, &noisy, Smoother::Median),
        &[
            2.5, 3.2, 3.9, 3.2, 19.1, 22.3, 0.4, -0.8, -0.25, 0.3, 0.1, 6.6,
        ],
    );
    close(
        &smooth(&own, &noisy, Smoother::Average),
        &[
            2.5,
            3.2,
            3.6,
            3.25,
            19.1,
            22.3,
            0.4,
            -0.8,
            -0.25,
            0.233_333_333_333_333_3,
            0.15,
            6.6,
        ],
    );
}

/// James–Stein: the last value of a group by both readings of (5.7), and whole groups.
#[test]
fn james_stein_reference_values() {
    let cases: [(&[f64], f64, [f64; 3]); 3] = [
        (
            &[5.6, 4.4, 6.7, 9.5, 10.2],
            0.5,
            [
                12.885_537_176_810_661,
                9.965_537_176_810_663,
                9.965_537_176_810_663,
            ],
        ),
        (
            &[10.0, 12.0, 9.0, 11.0, 10.0, 14.0, 8.0],
            2.0,
            [
                6.729_776_247_848_538,
                9.301_204_819_277_109,
                9.301_204_819_277_109,
            ],
        ),
        (
            &[1.0, 1.1, 0.9, 1.05],
            1.0,
            [-4.055_357_142_857_152, -4.092_857_142_857_151, 1.0125],
        ),
    ];
    for (values, variance, want) in cases {
        let mut group = vec![Mark::Joined; values.len()];
        group[0] = Mark::Opened;
        let readings = [
            (Towards::Printed, false),
            (Towards::Mean, false),
            (Towards::Mean, true),
        ];
        for ((towards, positive_part), want) in readings.into_iter().zip(want) {
            let how = Smoother::JamesStein {
                variance,
                towards,
                positive_part,
            };
            let got = smooth(&group, values, how);
            let last = got.last().copied().unwrap();
            assert!((last - want).abs() < 1e-9, "{towards:?} {last} {want}");
        }
    }
    close(
        &efron_morris(&[5.6, 4.4, 6.7, 9.5, 10.2], 0.5, false),
        &[
            5.667_448_209_410_631,
            4.515_625_501_846_797,
            6.723_285_691_344_147,
            9.410_872_008_993_096,
            10.082_768_588_405_331,
        ],
    );
    close(
        &efron_morris(&[1.0, 1.1, 0.9, 1.05], 1.0, true),
        &[1.0125; 4],
    );
}
