//! What the daemon says on its standard error, a line for each: `key=value` or JSON.
//!
//! A thread writes, so that a slow reader holds up no packets; what finds no room is counted and
//! told later. Interventions, one line each, are bounded by number in a second.

use super::config::{Format, Level, Log};
use sansio::{Duration, Instant};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A log; dropping it writes what is left.
#[derive(Debug)]
pub(super) struct Journal {
    log: Log,
    /// The way to the thread that writes, and what it says when it has written all.
    writer: Option<(SyncSender<String>, Receiver<()>)>,
    /// Lines that found no room, or were too many, since it was last told.
    left_out: u64,
    /// The second in which interventions are counted, and how many there were.
    second: (Instant, u32),
}

/// Lines that wait to be written.
const WAITING_MAX: usize = 1_024;
/// How long the last lines may take.
const FAREWELL_MAX: std::time::Duration = std::time::Duration::from_secs(1);
/// Interventions told in a second.
pub(super) const INTERVENTIONS_PER_SECOND: u32 = 50;

impl Journal {
    /// A log on the standard error.
    pub(super) fn open(log: Log) -> Self {
        Self::to(log, std::io::stderr())
    }

    fn to(log: Log, mut output: impl Write + Send + 'static) -> Self {
        let (lines, waiting) = sync_channel::<String>(WAITING_MAX);
        let (done, written) = sync_channel(1);
        std::thread::spawn(move || {
            for line in waiting {
                // Nobody may read any more; the daemon goes on.
                let _written = output.write_all(line.as_bytes());
            }
            let _gone = done.send(());
        });
        let second = (Instant::ZERO, 0);
        Journal { log, writer: Some((lines, written)), left_out: 0, second }
    }

    /// Says more or less from here on.
    pub(super) fn set(&mut self, log: Log) {
        self.log = log;
    }

    /// True if something of this importance is said at all.
    pub(super) fn wants(&self, level: Level) -> bool {
        level <= self.log.level
    }

    /// Says that something happened, with what belongs to it.
    pub(super) fn say(
        &mut self,
        level: Level,
        event: &str,
        fields: &[(&str, Value)],
        now: Instant,
    ) {
        if !self.wants(level) {
            return;
        }
        self.tell_left_out(now);
        self.write(level, event, fields, now);
    }

    /// The same, of something that happens often: no more than a bounded number in a second.
    pub(super) fn say_often(
        &mut self,
        level: Level,
        event: &str,
        fields: impl FnOnce() -> Vec<(&'static str, Value)>,
        now: Instant,
    ) {
        if !self.wants(level) {
            return;
        }
        if now.since(self.second.0) >= Duration::from_secs(1) {
            self.second = (now, 0);
            self.tell_left_out(now);
        }
        self.second.1 += 1;
        if self.second.1 > INTERVENTIONS_PER_SECOND {
            self.left_out += 1;
            return;
        }
        self.write(level, event, &fields(), now);
    }

    /// Says how many lines were left out, if any were.
    pub(super) fn tell_left_out(&mut self, now: Instant) {
        if self.left_out > 0 {
            let lines = std::mem::take(&mut self.left_out);
            self.write(Level::Warn, "left-out", &[("lines", json!(lines))], now);
        }
    }

    fn write(&mut self, level: Level, event: &str, fields: &[(&str, Value)], now: Instant) {
        let seconds = (now.as_secs_f64() * 1e3).round() / 1e3;
        let first = [("level", json!(level)), ("seconds", json!(seconds)), ("event", json!(event))];
        let all = first.iter().chain(fields);
        let mut line = match self.log.format {
            Format::Json => {
                let object: Map<String, Value> =
                    all.map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
                Value::Object(object).to_string()
            }
            Format::Text => {
                let words: Vec<String> =
                    all.map(|(key, value)| format!("{key}={}", plain(value))).collect();
                words.join(" ")
            }
        };
        line.push('\n');
        if let Some((lines, _)) = &self.writer
            && lines.try_send(line).is_err()
        {
            self.left_out += 1;
        }
    }
}

/// A value without quotes where it can do without.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    let odd = |byte: u8| !byte.is_ascii_graphic() || matches!(byte, b'"' | b'=' | b'\\');
    !text.is_empty() && !text.bytes().any(odd)
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some((lines, written)) = self.writer.take() {
            drop(lines);
            // Somebody who reads no more does not keep the daemon from ending.
            let _late = written.recv_timeout(FAREWELL_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// An output that can be looked at.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines(log: Log, work: impl FnOnce(&mut Journal)) -> Vec<String> {
        let output = Shared::default();
        let mut journal = Journal::to(log, output.clone());
        work(&mut journal);
        drop(journal);
        let bytes = output.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("UTF-8").lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_is_words_or_json_and_only_what_is_wanted_is_said() {
        let now = Instant::ZERO + Duration::from_millis(1_500);
        let say = |journal: &mut Journal| {
            journal.say(Level::Info, "mode", &[("why", json!("an order")), ("n", json!(3))], now);
            journal.say(Level::Debug, "rule", &[], now);
        };
        let said = lines(Log { level: Level::Info, format: Format::Text }, say);
        assert_eq!(said, ["level=info seconds=1.5 event=mode why=\"an order\" n=3"]);
        let said = lines(Log { level: Level::Debug, format: Format::Json }, say);
        let parsed: Value = serde_json::from_str(&said[0]).expect("JSON");
        assert_eq!((&parsed["event"], &parsed["n"]), (&json!("mode"), &json!(3)));
        assert_eq!(said.len(), 2);
    }

    #[test]
    fn what_happens_too_often_is_counted_and_told() {
        let log = Log { level: Level::Debug, format: Format::Text };
        let said = lines(log, |journal| {
            for millis in 0..1_001 {
                let now = Instant::ZERO + Duration::from_millis(millis);
                journal.say_often(Level::Debug, "rule", Vec::new, now);
            }
        });
        let rules = said.iter().filter(|line| line.contains("event=rule")).count();
        assert_eq!(rules, INTERVENTIONS_PER_SECOND as usize + 1);
        let told: Vec<&String> = said.iter().filter(|line| line.contains("left-out")).collect();
        assert_eq!(told.len(), 1);
        assert!(told[0].ends_with("lines=950"), "{}", told[0]);
    }
}
