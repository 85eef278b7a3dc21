//! Which files of an archive's folder count: those that the ledger names by their SHA-256, and
//! those that a trusted key signs. Others may be of any origin, whatever their names.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use numbering::hexadecimal;

use super::folder::{Folder, sha256_of};
use super::looking::files;
use super::manifest::Manifest;
use crate::engine::sealing::PublicKey;
use crate::ledger::SharedLedger;

/// The files of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The files that count, by name, each with its SHA-256 in hexadecimal.
    pub files: Vec<(String, String)>,
    /// Files that neither the ledger names nor a trusted key signs.
    pub others: Vec<String>,
    /// Files that the ledger names, and that are missing or replaced by something else.
    pub replaced: Vec<String>,
}

impl Counted {
    /// Every file in a folder that matches its manifest, whatever its origin: for callers who
    /// created the folder and compare it with more than a ledger knows.
    ///
    /// # Errors
    /// A folder or a manifest that cannot be read.
    pub fn all(folder: &Folder) -> anyhow::Result<Self> {
        let mut counted = Counted::default();
        for name in folder.described()? {
            let text = fs::read_to_string(folder.manifest(&name))?;
            counted.files.push((name.clone(), Manifest::read(&text, &name, &[])?.sha256));
        }
        Ok(counted)
    }

    /// Examines a folder. Without trusted keys only the ledger decides what counts.
    ///
    /// # Errors
    /// A ledger or a folder that cannot be read.
    pub async fn of(
        ledger: &SharedLedger,
        folder: &Folder,
        trusted: &[PublicKey],
    ) -> anyhow::Result<Self> {
        // Read before the ledger: an archiver reports a file to the ledger first.
        let names = folder.all()?;
        let known: HashMap<String, String> = files(ledger)
            .await?
            .into_iter()
            .filter(|file| file.deleted_at_us.is_none() || folder.has(&file.file.name))
            .map(|file| (file.file.name, hexadecimal(&file.file.sha256)))
            .collect();
        let named: BTreeSet<&str> = known.values().map(String::as_str).collect();
        let mut counted = Counted::default();
        for name in names {
            let said = fs::read_to_string(folder.manifest(&name)).ok();
            let manifest = said.as_deref().map(|text| Manifest::read(text, &name, &[]));
            let signed = said.as_deref().filter(|_| !trusted.is_empty());
            let is_signed = signed.is_some_and(|text| Manifest::read(text, &name, trusted).is_ok());
            let sha256 = match manifest {
                Some(Ok(manifest)) => Some(manifest.sha256),
                // A look-up does not need a lost or forged manifest.
                _ => sha256_of(&folder.file(&name)).ok().map(|sha256| hexadecimal(&sha256)),
            };
            match sha256 {
                Some(sha256) if is_signed || named.contains(sha256.as_str()) => {
                    counted.files.push((name, sha256));
                }
                _ if known.contains_key(&name) => counted.replaced.push(name),
                _ => counted.others.push(name),
            }
        }
        Ok(counted)
    }
}

/// Files of a folder that the ledger does not name by their SHA-256.
///
/// # Errors
/// A ledger or a folder that cannot be read.
pub async fn unnamed(ledger: &SharedLedger, folder: &Folder) -> anyhow::Result<Vec<String>> {
    let names = folder.all()?;
    let known: BTreeSet<String> =
        files(ledger).await?.into_iter().map(|file| file.file.name).collect();
    Ok(names.into_iter().filter(|name| !known.contains(name)).collect())
}
