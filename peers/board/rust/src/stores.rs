//! The libraries under test, each as a log of records.

use crate::{Outcome, RecordLog};
use mrecordlog::MultiRecordLog;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::{json, Value};
use std::path::Path;
use tokio::runtime::Runtime;

/// Open the store `name` in a directory.
pub fn open(name: &str, _mode: &str, directory: &Path) -> Outcome<Box<dyn RecordLog>> {
    match name {
        "fjall" => FjallLog::open(directory),
        "mrecordlog" => MultiLog::open(directory),
        "redb" => RedbLog::open(directory),
        "sled" => SledLog::open(directory),
        _ => Err(format!("no store {name:?}").into()),
    }
}

/// Return the promises of a mode of a store.
pub fn promises(_name: &str, _mode: &str) -> Value {
    json!({"durable": "put", "kill": "put", "recovered": false, "offsets": false, "queues": true, "index": false})
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

// ---- redb -----------------------------------------------------------------------------------------------------------

const RECORDS: TableDefinition<u64, &str> = TableDefinition::new("records");

struct RedbLog(Database);

impl RedbLog {
    fn open(directory: &Path) -> Outcome<Box<dyn RecordLog>> {
        Ok(Box::new(RedbLog(Database::create(directory.join("log.redb"))?)))
    }
}

impl RecordLog for RedbLog {
    fn all(&mut self) -> Outcome<Vec<String>> {
        let reading = self.0.begin_read()?;
        let table = match reading.open_table(RECORDS) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut records = Vec::new();
        for row in table.iter()? {
            records.push(row?.1.value().to_string());
        }
        Ok(records)
    }

    fn push(&mut self, n: u64, record: &str) -> Outcome<()> {
        let writing = self.0.begin_write()?;
        writing.open_table(RECORDS)?.insert(n, record)?;
        Ok(writing.commit()?)
    }

    fn flush(&mut self) -> Outcome<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}

// ---- sled -----------------------------------------------------------------------------------------------------------

struct SledLog(sled::Db);

impl SledLog {
    fn open(directory: &Path) -> Outcome<Box<dyn RecordLog>> {
        let config = sled::Config::new().path(directory.join("sled")).cache_capacity(1 << 20).flush_every_ms(None);
        Ok(Box::new(SledLog(config.open()?)))
    }
}

impl RecordLog for SledLog {
    fn all(&mut self) -> Outcome<Vec<String>> {
        let mut records = Vec::new();
        for row in self.0.iter() {
            records.push(text(&row?.1));
        }
        Ok(records)
    }

    fn push(&mut self, n: u64, record: &str) -> Outcome<()> {
        self.0.insert(n.to_be_bytes(), record)?;
        self.0.flush()?;
        Ok(())
    }

    fn flush(&mut self) -> Outcome<()> {
        self.0.flush()?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.0.flush()?;
        Ok(())
    }
}

// ---- fjall ----------------------------------------------------------------------------------------------------------

struct FjallLog {
    keyspace: fjall::Keyspace,
    records: fjall::PartitionHandle,
}

impl FjallLog {
    fn open(directory: &Path) -> Outcome<Box<dyn RecordLog>> {
        let keyspace = fjall::Config::new(directory.join("fjall")).fsync_ms(None).open()?;
        let records = keyspace.open_partition("log", fjall::PartitionCreateOptions::default())?;
        Ok(Box::new(FjallLog { keyspace, records }))
    }
}

impl RecordLog for FjallLog {
    fn all(&mut self) -> Outcome<Vec<String>> {
        let mut records = Vec::new();
        for row in self.records.iter() {
            records.push(text(&row?.1));
        }
        Ok(records)
    }

    fn push(&mut self, n: u64, record: &str) -> Outcome<()> {
        self.records.insert(n.to_be_bytes(), record)?;
        Ok(self.keyspace.persist(fjall::PersistMode::SyncAll)?)
    }

    fn flush(&mut self) -> Outcome<()> {
        Ok(self.keyspace.persist(fjall::PersistMode::SyncAll)?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}

// ---- mrecordlog -----------------------------------------------------------------------------------------------------

const QUEUE: &str = "log";

struct MultiLog {
    log: MultiRecordLog,
    runtime: Runtime,
}

impl MultiLog {
    fn open(directory: &Path) -> Outcome<Box<dyn RecordLog>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let mut log = runtime.block_on(MultiRecordLog::open(directory))?;
        if !log.queue_exists(QUEUE) {
            runtime.block_on(log.create_queue(QUEUE))?;
        }
        Ok(Box::new(MultiLog { log, runtime }))
    }
}

impl RecordLog for MultiLog {
    fn all(&mut self) -> Outcome<Vec<String>> {
        match self.log.range(QUEUE, ..) {
            Ok(rows) => Ok(rows.map(|(_, payload)| text(&payload)).collect()),
            Err(_) => Err("the queue is missing".into()),
        }
    }

    fn push(&mut self, _: u64, record: &str) -> Outcome<()> {
        self.runtime.block_on(self.log.append_record(QUEUE, None, record.as_bytes()))?;
        Ok(())
    }

    fn flush(&mut self) -> Outcome<()> {
        Ok(self.runtime.block_on(self.log.sync())?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}
