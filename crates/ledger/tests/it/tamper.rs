//! Edited, truncated, older, foreign and newer files are refused with the right kind.

use std::fs;
use std::path::Path;

use reticent_ledger::{AgainstRelease, Kind, Ledger};
use rusqlite::Connection;

use crate::support::{beside, create, identity, path, price, release, want};

/// A closed ledger with three releases.
fn three_releases(folder: &tempfile::TempDir) {
    let mut ledger = create(folder, "1");
    for n in 1..=3 {
        release(&mut ledger, n, "0.1", format!("value {n}").as_bytes());
    }
}

fn edit(path: &Path, sql: &str) {
    let db = Connection::open(path).unwrap();
    assert!(db.execute(sql, []).unwrap() > 0, "{sql} changed nothing");
}

fn refused(path: &Path) -> Kind {
    let error = Ledger::open(path)
        .err()
        .expect("the ledger must be refused");
    assert!(error.to_string().contains("survey.ledger"), "{error}");
    error.kind()
}

#[test]
fn edited_rows_are_refused() {
    for sql in [
        "UPDATE entries SET body = replace(body, '\"0.1\"', '\"0.0\"') WHERE sequence = 3",
        "UPDATE entries SET body = replace(body, '\"amount\":\"1\"', '\"amount\":\"9\"') WHERE sequence = 0",
        "UPDATE entries SET head = zeroblob(32) WHERE sequence = 2",
        "DELETE FROM entries WHERE sequence = 2",
        "DELETE FROM entries WHERE sequence = 0",
        "UPDATE entries SET sequence = 100 WHERE sequence = 6",
        "INSERT INTO entries SELECT 7, body, head FROM entries WHERE sequence = 6",
    ] {
        let folder = tempfile::tempdir().unwrap();
        three_releases(&folder);
        edit(&path(&folder), sql);
        let kind = refused(&path(&folder));
        assert!(
            matches!(kind, Kind::Damaged | Kind::RolledBack),
            "{sql}: {kind:?}"
        );
    }
}

#[test]
fn a_removed_last_entry_is_a_rollback() {
    let folder = tempfile::tempdir().unwrap();
    three_releases(&folder);
    edit(&path(&folder), "DELETE FROM entries WHERE sequence = 6");
    assert_eq!(refused(&path(&folder)), Kind::RolledBack);
}

#[test]
fn an_older_copy_is_a_rollback() {
    let folder = tempfile::tempdir().unwrap();
    three_releases(&folder);
    let old = beside(&path(&folder), ".old");
    fs::copy(path(&folder), &old).unwrap();
    release(
        &mut Ledger::open(path(&folder)).unwrap(),
        4,
        "0.1",
        b"value 4",
    );
    fs::copy(&old, path(&folder)).unwrap();
    assert_eq!(refused(&path(&folder)), Kind::RolledBack);
}

#[test]
fn a_different_history_is_a_rollback() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    three_releases(&folder);
    let mut other = create(&elsewhere, "1");
    for n in 1..=4 {
        release(&mut other, n, "0.1", format!("other {n}").as_bytes());
    }
    drop(other);
    fs::copy(path(&elsewhere), path(&folder)).unwrap();
    assert_eq!(refused(&path(&folder)), Kind::RolledBack);
}

#[test]
fn an_open_handle_notices_a_rollback() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = create(&folder, "1");
    release(&mut ledger, 1, "0.1", b"1");
    edit(&path(&folder), "DELETE FROM entries WHERE sequence = 2");
    assert_eq!(
        ledger.reserve("ann", &[want(2, "0.1")]).unwrap_err().kind(),
        Kind::RolledBack
    );
    assert_eq!(ledger.status().unwrap_err().kind(), Kind::RolledBack);
}

#[test]
fn changed_values_are_found() {
    for sql in [
        "UPDATE payloads SET payload = CAST('value 9' AS BLOB) WHERE payload = CAST('value 2' AS BLOB)",
        "DELETE FROM payloads WHERE payload = CAST('value 2' AS BLOB)",
        "INSERT INTO payloads VALUES (zeroblob(32), zeroblob(1))",
    ] {
        let folder = tempfile::tempdir().unwrap();
        three_releases(&folder);
        edit(&path(&folder), sql);
        let mut ledger = Ledger::open(path(&folder)).unwrap();
        assert_eq!(
            ledger.verify(None).unwrap_err().kind(),
            Kind::Damaged,
            "{sql}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    three_releases(&folder);
    edit(
        &path(&folder),
        "UPDATE payloads SET payload = zeroblob(3) WHERE payload = CAST('value 2' AS BLOB)",
    );
    let ledger = Ledger::open(path(&folder)).unwrap();
    assert_eq!(
        ledger.lookup(&crate::support::id(2)).unwrap_err().kind(),
        Kind::Damaged
    );
}

/// A truncation is refused as damage, or (where only unused bytes went) everything still verifies;
/// none is a panic or a quiet loss.
#[test]
fn truncated_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    three_releases(&folder);
    let whole = fs::read(path(&folder)).unwrap();
    let mut refused = 0;
    let lengths = [
        0,
        1,
        15,
        16,
        99,
        100,
        512,
        4095,
        4096,
        4097,
        whole.len() / 2,
        whole.len() - 4096,
        whole.len() - 1,
    ];
    for length in lengths {
        fs::write(path(&folder), &whole[..length]).unwrap();
        match Ledger::open(path(&folder)).and_then(|mut ledger| ledger.verify(None)) {
            Ok(report) => {
                assert!(length + 4096 > whole.len(), "{length} bytes were accepted");
                assert_eq!((report.entries, report.values), (7, 3));
            }
            Err(error) => {
                assert!(
                    matches!(error.kind(), Kind::Damaged | Kind::RolledBack),
                    "{length}: {error}"
                );
                refused += 1;
            }
        }
    }
    assert!(refused >= lengths.len() - 1);
    fs::write(path(&folder), &whole).unwrap();
    Ledger::open(path(&folder)).unwrap().verify(None).unwrap();
}

#[test]
fn foreign_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(path(&folder), "id,age\n1,2\n".repeat(200)).unwrap();
    assert_eq!(refused(&path(&folder)), Kind::Damaged);
    fs::remove_file(path(&folder)).unwrap();
    Connection::open(path(&folder))
        .unwrap()
        .execute_batch("CREATE TABLE t (x)")
        .unwrap();
    assert_eq!(refused(&path(&folder)), Kind::Damaged);
    assert_eq!(
        refused(&folder.path().join("no survey.ledger")),
        Kind::Missing
    );
    fs::create_dir(folder.path().join("folder survey.ledger")).unwrap();
    assert_eq!(
        refused(&folder.path().join("folder survey.ledger")),
        Kind::Damaged
    );
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    three_releases(&folder);
    let error = Ledger::create(path(&folder), &identity("1")).err().unwrap();
    assert_eq!(error.kind(), Kind::Exists);
    // A ledger that was deleted to start afresh left its head file behind.
    fs::remove_file(path(&folder)).unwrap();
    let error = Ledger::create(path(&folder), &identity("1")).err().unwrap();
    assert_eq!(error.kind(), Kind::RolledBack);
    let left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|f| f.unwrap().file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().contains(".new")),
        "{left:?}"
    );
}

#[test]
fn the_head_file_is_needed_but_may_lag() {
    let folder = tempfile::tempdir().unwrap();
    let head = beside(&path(&folder), ".head");
    drop(create(&folder, "1"));
    // Registration cut before its head file was written.
    let first = fs::read(&head).unwrap();
    fs::remove_file(&head).unwrap();
    release(&mut Ledger::open(path(&folder)).unwrap(), 1, "0.1", b"1");
    let second = fs::read(&head).unwrap();
    assert_ne!(first, second);
    // A crash between commit and head file.
    fs::write(&head, &first).unwrap();
    release(&mut Ledger::open(path(&folder)).unwrap(), 2, "0.1", b"2");
    fs::write(&head, "reticent ledger head 1\n4 zz\n").unwrap();
    assert_eq!(refused(&path(&folder)), Kind::Damaged);
    fs::write(&head, [0xff, 0xfe]).unwrap();
    assert_eq!(refused(&path(&folder)), Kind::Damaged);
    fs::remove_file(&head).unwrap();
    assert_eq!(refused(&path(&folder)), Kind::Damaged);
}

#[test]
fn a_release_is_found_on_its_chain_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = create(&folder, "1");
    let stored = release(&mut ledger, 1, "0.1", b"1");
    release(&mut ledger, 2, "0.1", b"2");
    let mine = AgainstRelease {
        sequence: stored.sequence,
        head: stored.head,
    };
    let report = ledger.verify(Some(&mine)).unwrap();
    assert_eq!(
        (report.entries, report.values, report.against),
        (5, 2, Some(mine))
    );
    assert_eq!(report.status.spent, price("0.2"));
    for other in [
        AgainstRelease {
            head: [0; 32],
            ..mine
        },
        AgainstRelease {
            sequence: 99,
            ..mine
        },
        AgainstRelease {
            sequence: u64::MAX,
            ..mine
        },
    ] {
        let error = ledger.verify(Some(&other)).unwrap_err();
        assert_eq!(error.kind(), Kind::RolledBack, "{error}");
    }
}

/// Format 0 had no table of reservations' owners.
#[test]
fn format_0_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = create(&folder, "1");
    release(&mut ledger, 1, "0.1", b"1");
    let waiting = ledger.reserve("ann", &[want(2, "0.2")]).unwrap();
    drop(ledger);
    drop(waiting);
    let db = Connection::open(path(&folder)).unwrap();
    db.execute_batch("DROP TABLE claims; PRAGMA user_version = 0;")
        .unwrap();
    drop(db);
    let mut ledger = Ledger::open(path(&folder)).unwrap();
    let report = ledger.verify(None).unwrap();
    assert_eq!((report.entries, report.values), (4, 1));
    // What format 0 left unpublished serves a new draw at no cost.
    let slot = crate::support::paid(ledger.reserve("ann", &[want(2, "0.2")]).unwrap());
    ledger.publish(slot, b"2").unwrap();
    assert_eq!(ledger.status().unwrap().spent, price("0.3"));
    let db = Connection::open(path(&folder)).unwrap();
    let version: i64 = db
        .pragma_query_value(None, "user_version", |r| r.get(0))
        .unwrap();
    assert_eq!(version, 1);
}

#[test]
fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(create(&folder, "1"));
    Connection::open(path(&folder))
        .unwrap()
        .execute_batch("PRAGMA user_version = 2")
        .unwrap();
    let error = Ledger::open(path(&folder)).err().unwrap();
    assert_eq!(error.kind(), Kind::Version, "{error}");
    assert!(error.to_string().contains("format version 2"), "{error}");
}

/// The key of the fingerprint does not appear where identities are printed.
#[test]
fn debug_output_holds_no_key() {
    let text = format!("{:?}", identity("1"));
    assert!(text.contains("survey") && !text.contains('7'), "{text}");
}
