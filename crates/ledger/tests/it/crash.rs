//! SIGKILL at random moments under two concurrent clients (lessons row 43).
//!
//! The number of kills is 40, or `RETICENT_KILLS`; the full run is
//! `RETICENT_KILLS=500 cargo test --release -p reticent-ledger kills -- --nocapture`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reticent_accounting::Rational;
use reticent_ledger::{Kind, Ledger, LedgerError, Slot, Wanted};

use crate::support::{cost, create, id, path, want, want_in};

/// Names the ledger, the client's log and its seed for the child process.
const CHILD: &str = "RETICENT_TORTURE_CLIENT";

/// How many different requests the clients know.
const REQUESTS: u64 = 3_000;

/// A cap that a long run reaches.
const CAP: &str = "30";

/// A child that does not outlive the test.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// xorshift64*: the same moments on every run, whatever the machine makes of them.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

/// Not a test by itself: the body of the child processes that the next test starts.
#[test]
fn client_of_the_kill_test() {
    let Ok(orders) = std::env::var(CHILD) else {
        return;
    };
    let mut words = orders.split('|');
    let mut next = || words.next().unwrap().to_owned();
    let (ledger, log, seed) = (
        PathBuf::from(next()),
        PathBuf::from(next()),
        next().parse().unwrap(),
    );
    let mut log = OpenOptions::new()
        .append(true)
        .create(true)
        .open(log)
        .unwrap();
    let mut dice = Dice(seed);
    let mut ledger = Ledger::open(ledger).unwrap();
    loop {
        // Drawing noise takes a moment too; it gives the other client its turn.
        std::thread::sleep(Duration::from_micros(dice.roll(1_500)));
        // The requests are shared by both clients, so they meet reserved and answered ones.
        let batch: BTreeSet<u64> = (0..=dice.roll(3)).map(|_| dice.roll(REQUESTS)).collect();
        let wanted: Vec<Wanted> = batch.iter().map(|n| order(*n)).collect();
        let slots = match ledger.reserve("ann", &wanted) {
            Ok(slots) => slots,
            Err(error) if matches!(error.kind(), Kind::InProgress | Kind::Refused) => continue,
            Err(error) => panic!("{error}"),
        };
        for (n, slot) in batch.iter().zip(slots) {
            let stored = match slot {
                Slot::Stored(stored) => stored,
                Slot::Paid(paid) => {
                    let value = format!("{seed}-{}", dice.roll(u64::MAX));
                    match ledger.publish(paid, value.as_bytes()) {
                        Ok(stored) => stored,
                        Err(LedgerError::StalePayment { .. }) => {
                            panic!("a live payment was taken over")
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            };
            // Handed out: one write, so that a killed client leaves a whole line or a cut one.
            log.write_all(
                format!("{n} {}\n", String::from_utf8(stored.payload).unwrap()).as_bytes(),
            )
            .unwrap();
        }
    }
}

/// The price and part of a request: known to everyone.
fn order(n: u64) -> Wanted {
    match n % 3 {
        0 => want(n, "0.01"),
        1 => want_in(n, "0.02", "train"),
        _ => want_in(n, "0.03", "test"),
    }
}

fn start(ledger: &Path, client: usize, seed: u64) -> Client {
    let log = ledger.with_extension(format!("client-{client}"));
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crash::client_of_the_kill_test",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(
            CHILD,
            format!("{}|{}|{seed}", ledger.display(), log.display()),
        )
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Client(child.unwrap())
}

/// # Claim
/// After each kill the ledger opens and verifies; what is recorded as spent covers every value that
/// any client handed out; no request has two values; the cap holds.
#[test]
fn survives_kills_under_two_clients() {
    let kills: u64 = std::env::var("RETICENT_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(40);
    let folder = tempfile::tempdir().unwrap();
    let ledger = path(&folder);
    drop(create(&folder, CAP));
    let mut dice = Dice(20_180_417);
    let mut clients = [start(&ledger, 0, 1), start(&ledger, 1, 2)];
    let began = Instant::now();
    for kill in 0..kills {
        std::thread::sleep(Duration::from_micros(2_000 + dice.roll(60_000)));
        let client = usize::try_from(dice.roll(2)).unwrap();
        // A client that ended by itself has panicked.
        assert!(
            clients[client].0.try_wait().unwrap().is_none(),
            "client {client} failed before kill {kill}"
        );
        clients[client].0.kill().unwrap();
        clients[client].0.wait().unwrap();
        check(&ledger);
        clients[client] = start(&ledger, client, 1_000 + kill);
    }
    drop(clients);
    let (handed_out, spent) = check(&ledger);
    println!(
        "{kills} kills in {:?}: {handed_out} requests answered, {spent} spent",
        began.elapsed()
    );
    assert!(handed_out > 0, "no client ever handed out a value");
}

/// How many requests were answered to clients, and the total on disk.
fn check(path: &Path) -> (usize, String) {
    let mut handed_out: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for client in 0..2 {
        let text =
            fs::read_to_string(path.with_extension(format!("client-{client}"))).unwrap_or_default();
        for line in text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            let (n, value) = line.trim_end().split_once(' ').unwrap();
            handed_out
                .entry(n.parse().unwrap())
                .or_default()
                .insert(value.to_owned());
        }
    }
    // The logs were read first: everything in them must be in the ledger now.
    let mut ledger = Ledger::open(path).unwrap();
    let status = ledger.verify(None).unwrap().status;
    let (mut whole, mut train, mut test) = (Rational::ZERO, Rational::ZERO, Rational::ZERO);
    for (n, values) in &handed_out {
        assert_eq!(values.len(), 1, "request {n} was answered with {values:?}");
        let stored = ledger
            .lookup(&id(*n))
            .unwrap()
            .expect("a value left that is not stored");
        assert_eq!(
            Some(stored.payload),
            values.first().map(|v| v.clone().into_bytes())
        );
        let slot = [&mut whole, &mut train, &mut test]
            .into_iter()
            .nth(usize::try_from(n % 3).unwrap())
            .unwrap();
        *slot += order(*n).price.add_remove.unwrap().amount;
    }
    let least = whole + train.max(test);
    let spent = status.spent.add_remove.unwrap();
    assert!(
        spent.amount >= least,
        "spent {} but {least} left",
        spent.amount
    );
    assert!(spent.within(&cost(CAP)));
    (handed_out.len(), spent.describe(status.currency))
}
