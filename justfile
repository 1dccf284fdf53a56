# `just` lists these; every recipe is also a plain command in README.md or docs/.
default:
    @just --list

# What CI runs.
ci:
    bash .ci/run

# All tests.
test:
    cargo test --workspace --release

# The main job on real data.
demo:
    cargo run --release -- run examples/adult/plan.toml

# One parser under fuzzing for a minute: `just fuzz plan` (needs cargo-fuzz and a nightly toolchain; fuzz/README.md).
fuzz target:
    cargo +nightly fuzz run {{target}} -- -max_total_time=60
