//! A file system that is really full: a small in-memory one, where the system lets us mount it.

use std::fs;
use std::path::Path;
use std::process::Command;

use reticent_ledger::{Kind, Ledger};

use crate::support::{cost, identity, paid, want};

/// A mounted file system of this size; unmounted when dropped.
struct Small(tempfile::TempDir);

impl Small {
    fn mount(kilobytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "tmpfs"])
            .arg(folder.path())
            .output()
            .is_ok_and(|out| out.status.success());
        if !done {
            println!(
                "skipped: mounting a small file system needs more rights than this process has"
            );
        }
        done.then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

/// For every amount of room left: an operation either succeeds or says the disk is full; nothing
/// handed out is missing afterwards, and with space the ledger goes on.
#[test]
fn a_full_disk_is_refused_before_anything_leaves() {
    let Some(disk) = Small::mount(1024) else {
        return;
    };
    let mut failures = 0;
    for room in (0..200).step_by(8) {
        let path = disk.path().join(format!("survey-{room}.ledger"));
        drop(Ledger::create(&path, &identity("100")).unwrap());
        let filler = disk.path().join("filler");
        fill(&filler, room);
        let mut handed_out = Vec::new();
        match Ledger::open(&path) {
            Err(error) => {
                assert_eq!(error.kind(), Kind::DiskFull, "{error}");
                failures += 1;
            }
            Ok(mut ledger) => {
                for n in 0..8 {
                    let outcome = ledger
                        .reserve("ann", &[want(n, "1")])
                        .and_then(|slots| ledger.publish(paid(slots), &[b'x'; 5000]));
                    match outcome {
                        Ok(_) => handed_out.push(n),
                        Err(error) => {
                            assert_eq!(error.kind(), Kind::DiskFull, "{error}");
                            failures += 1;
                        }
                    }
                }
            }
        }
        empty(&filler);
        let mut ledger = Ledger::open(&path).unwrap();
        let spent = ledger
            .verify(None)
            .unwrap()
            .status
            .spent
            .add_remove
            .unwrap();
        assert!(cost(&handed_out.len().to_string()).within(&spent));
        for n in handed_out {
            assert!(ledger.lookup(&crate::support::id(n)).unwrap().is_some());
        }
        let slots = ledger.reserve("ann", &[want(99, "1")]).unwrap();
        ledger.publish(paid(slots), b"1").unwrap();
        drop(ledger);
        for file in fs::read_dir(disk.path())
            .unwrap()
            .flatten()
            .filter(|f| f.path().is_file())
        {
            fs::remove_file(file.path()).unwrap();
        }
    }
    assert!(failures > 20, "only {failures} operations met a full disk");
}

#[test]
fn registration_on_a_full_disk_leaves_nothing() {
    let Some(disk) = Small::mount(64) else { return };
    fill(&disk.path().join("filler"), 8);
    let path = disk.path().join("survey.ledger");
    let error = Ledger::create(&path, &identity("1")).err().unwrap();
    assert_eq!(error.kind(), Kind::DiskFull, "{error}");
    assert!(!path.exists());
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 1);
    empty(&disk.path().join("filler"));
    assert!(!path.exists());
}

/// Whoever reads the ledger reads the key of the fingerprint: its owner alone may, also the log beside it.
#[cfg(unix)]
#[test]
fn a_ledger_is_its_owners() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("survey.ledger");
    let ledger = Ledger::create(&path, &identity("1")).unwrap();
    let mut seen = 0;
    for suffix in ["", "-wal"] {
        if let Ok(facts) = fs::metadata(format!("{}{suffix}", path.display())) {
            assert_eq!(facts.permissions().mode() & 0o777, 0o600, "{suffix}");
            seen += 1;
        }
    }
    assert!(seen > 0);
    drop(ledger);
}

/// A file system that became read-only.
#[test]
fn a_read_only_ledger_says_so() {
    let Some(disk) = Small::mount(1024) else {
        return;
    };
    let path = disk.path().join("survey.ledger");
    drop(Ledger::create(&path, &identity("1")).unwrap());
    let remounted = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(disk.path())
        .status()
        .unwrap();
    assert!(remounted.success());
    let error = Ledger::open(&path).err().unwrap();
    assert_eq!(error.kind(), Kind::ReadOnly, "{error}");
}

/// Gives the space back at once, even while a child process that is being started still holds the
/// file.
fn empty(filler: &Path) {
    drop(fs::File::create(filler).unwrap());
    fs::remove_file(filler).unwrap();
}

/// Fills the file system but for so many kilobytes.
fn fill(filler: &Path, leave: usize) {
    use std::io::Write;
    let mut file = fs::File::create(filler).unwrap();
    while file.write_all(&[0; 1024]).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(u64::try_from(leave * 1024).unwrap()))
        .unwrap();
}
