//! Adapters of the board for stores in Rust: `board STORE MODE DIRECTORY`.
//!
//! Each adapter keeps one log of records in a library. The program speaks the JSON lines protocol of tornpage
//! (docs/test-your-store.md) on standard input and output.

mod stores;

use serde_json::{json, Value};
use std::collections::HashMap;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::Path;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// An ordered log of texts in a directory.
pub trait RecordLog {
    /// Return every record of the store, oldest first.
    fn all(&mut self) -> Outcome<Vec<String>>;
    /// Store record number `n`, counted from 0.
    fn push(&mut self, n: u64, record: &str) -> Outcome<()>;
    /// Make earlier records durable.
    fn flush(&mut self) -> Outcome<()>;
    /// Close the store cleanly.
    fn close(self: Box<Self>) -> Outcome<()>;
}

/// The messages of queues as records of a log.
struct QueueStore {
    log: Box<dyn RecordLog>,
    queues: HashMap<String, Vec<String>>,
    count: u64,
}

impl QueueStore {
    fn open(name: &str, mode: &str, directory: &Path) -> Outcome<QueueStore> {
        let mut log = stores::open(name, mode, directory)?;
        let records = log.all()?;
        let mut store = QueueStore { log, queues: HashMap::new(), count: 0 };
        for record in records {
            store.remember(&record);
        }
        Ok(store)
    }

    /// Add a record to the tables and return its number in its queue.
    fn remember(&mut self, record: &str) -> usize {
        let (queue, body) = record.rsplit_once(' ').unwrap_or((record, ""));
        let bodies = self.queues.entry(queue.to_string()).or_default();
        bodies.push(body.to_string());
        self.count += 1;
        bodies.len() - 1
    }

    fn answer(&mut self, name: &str, mode: &str, ask: &Value) -> Outcome<Value> {
        let queue = format!("{} {}", ask["topic"].as_str().unwrap_or(""), ask["queue"]);
        match ask["do"].as_str().unwrap_or("") {
            "hello" => Ok(json!({"tornpage": 1, "name": name, "promises": stores::promises(name, mode)})),
            "put" => {
                let record = format!("{queue} {}", ask["body"].as_str().unwrap_or(""));
                let offset = self.count;
                self.log.push(offset, &record)?;
                Ok(json!({"offset": offset, "number": self.remember(&record)}))
            }
            "read" => {
                let number = ask["number"].as_u64().unwrap_or(0) as usize;
                Ok(json!({"body": self.queues.get(&queue).and_then(|bodies| bodies.get(number))}))
            }
            "flush" => self.log.flush().map(|()| json!({})),
            other => Err(format!("no request {other:?}").into()),
        }
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, mode, directory] = &arguments[..] else {
        return Err("usage: board STORE MODE DIRECTORY".into());
    };
    let mut store = QueueStore::open(name, mode, Path::new(directory))?;
    for line in io::stdin().lock().lines() {
        let ask: Value = serde_json::from_str(&line?)?;
        if ask["do"] == "close" {
            let answer = match store.log.close() {
                Ok(()) => json!({}),
                Err(error) => json!({"error": error.to_string()}),
            };
            println!("{answer}");
            return Ok(());
        }
        let answer = store.answer(name, mode, &ask).unwrap_or_else(|error| json!({"error": error.to_string()}));
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}
