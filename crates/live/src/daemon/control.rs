//! Orders to a running daemon, and questions: a line in, a line of JSON out.
//!
//! They come through a Unix stream socket, or from whoever started the daemon through its standard
//! input: then the daemon writes `ready` when it has taken over, ends when its input does, and
//! answers questions only. Threads wait for the lines, so that nobody who is slow holds up packets,
//! and put long answers into words.

use super::config::Mode;
use super::listing::{Recent, Row};
use anyhow::{Context, Result, bail, ensure};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use sansio::{Instant, Notice, Side};
use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// Where orders come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Nowhere.
    Nobody,
    /// Standard input.
    Standard,
    /// A Unix stream socket made at this path.
    Socket(PathBuf),
}

/// An order, or a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// To pass on to the engine.
    Notice(Notice),
    /// Do this from now on.
    Mode(Mode),
    /// Read the configuration file again.
    Reload,
    /// Say what happened so far.
    Statistics,
    /// Say what is known of this many flows, the most recently active first.
    Flows(usize),
    /// End.
    Stop,
}

impl Order {
    /// Flows in an answer if nobody says how many.
    pub const FLOWS_USUAL: usize = 100;
    /// Flows in an answer at most.
    pub const FLOWS_MAX: usize = 10_000;
    /// What may be ordered, for those who ask and those who err.
    pub const EXPECTED: &str = "mode off|observe|help, flows [COUNT], stats, reload, link \
                                down|up|maybe-up, mobile ADDRESS down|up, forget or stop";

    /// The order of a line.
    ///
    /// # Errors
    /// If it is none; the message says what was expected.
    pub fn parse(line: &str) -> Result<Order> {
        let words: Vec<&str> = line.split_whitespace().collect();
        Ok(match words.as_slice() {
            ["link", "down"] => Order::Notice(Notice::LinkDown(Side::RADIO)),
            ["link", "up"] => Order::Notice(Notice::LinkUp(Side::RADIO)),
            ["link", "maybe-up"] => Order::Notice(Notice::LinkMayBeUp(Side::RADIO)),
            ["mobile", address, stage @ ("down" | "up")] => {
                let address = address
                    .parse()
                    .with_context(|| format!("mobile {address}: expected an IP address"))?;
                Order::Notice(match *stage {
                    "down" => Notice::MobileDown(address),
                    _ => Notice::MobileUp(address),
                })
            }
            ["forget"] => Order::Notice(Notice::Forget),
            ["mode", name] => match Mode::named(name) {
                Some(mode) => Order::Mode(mode),
                None => bail!("mode {name}: expected off, observe or help"),
            },
            ["flows"] => Order::Flows(Order::FLOWS_USUAL),
            ["flows", count] => match count.parse() {
                Ok(count) if count <= Order::FLOWS_MAX => Order::Flows(count),
                _ => bail!("flows {count}: expected a number up to {}", Order::FLOWS_MAX),
            },
            ["stats"] => Order::Statistics,
            ["reload"] => Order::Reload,
            ["stop"] => Order::Stop,
            _ => bail!("`{}` is no order; expected {}", line.trim(), Order::EXPECTED),
        })
    }

    fn is_question(self) -> bool {
        matches!(self, Order::Statistics | Order::Flows(_))
    }
}

/// What somebody asked for.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) order: Order,
    asker: Sender<Answer>,
}

/// What came of it, or a part of that.
#[derive(Debug)]
enum Answer {
    Line(Result<String>),
    /// Some of the flows.
    Rows(Vec<Row>),
    /// That were all, by then.
    NoMoreRows(Instant),
}

impl Request {
    fn new(order: Order) -> (Request, Receiver<Answer>) {
        let (asker, answers) = channel();
        (Request { order, asker }, answers)
    }

    /// Says to whoever asked what came of it.
    pub(super) fn answer(self, line: Result<String>) {
        let _gone = self.asker.send(Answer::Line(line));
    }

    /// Says what is known of some flows; false if nobody hears it any more.
    pub(super) fn list(&self, rows: Vec<Row>) -> bool {
        self.asker.send(Answer::Rows(rows)).is_ok()
    }

    /// Says that these were all flows.
    pub(super) fn end_list(self, now: Instant) {
        let _gone = self.asker.send(Answer::NoMoreRows(now));
    }
}

/// Waits for all of an answer, no longer than so for each part; `None` if none comes.
fn answer_of(
    order: Order,
    answers: &Receiver<Answer>,
    patience: Duration,
) -> Option<Result<String>> {
    let most = if let Order::Flows(most) = order { most } else { 0 };
    let mut recent = Recent::new(most);
    loop {
        match answers.recv_timeout(patience).ok()? {
            Answer::Line(line) => return Some(line),
            Answer::Rows(rows) => recent.add(&rows),
            Answer::NoMoreRows(now) => return Some(Ok(recent.text(now))),
        }
    }
}

fn complaint(message: impl Display) -> String {
    serde_json::json!({ "error": message.to_string() }).to_string()
}

/// Writes a line to the standard output.
pub(super) fn say(line: &str) -> Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).context("answer")
}

/// The source of orders.
#[derive(Debug)]
pub(super) struct Orders {
    requests: Receiver<Request>,
    /// Readable while requests wait.
    wake: Arc<OwnedFd>,
    socket: Option<Socket>,
}

/// The way of threads to the loop.
#[derive(Clone, Debug)]
struct Way {
    requests: SyncSender<Request>,
    wake: Arc<OwnedFd>,
}

/// The socket's place; dropping it ends the thread that listens there.
#[derive(Debug)]
struct Socket {
    path: PathBuf,
    stop: Arc<AtomicBool>,
}

/// An order is short.
const LINE_BYTES_MAX: u64 = 256;
/// Requests that wait at most; whoever has more to ask waits, too.
const WAITING_MAX: usize = 64;
/// Connections at a time.
const CONNECTIONS_MAX: usize = 16;
/// How long a connection waits for its answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

impl Orders {
    /// Begins to listen.
    ///
    /// # Errors
    /// If another daemon answers at the socket's path, or the socket cannot be made.
    pub(super) fn open(control: &Control) -> Result<Self> {
        let (requests, waiting) = sync_channel(WAITING_MAX);
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = Arc::new(eventfd(0, flags).context("make a descriptor for orders")?);
        let way = Way { requests, wake: wake.clone() };
        let socket = match control {
            Control::Nobody => None,
            Control::Standard => {
                std::thread::spawn(move || way.listen_to_standard_input());
                None
            }
            Control::Socket(path) => Some(Socket::open(path, way)?),
        };
        Ok(Orders { requests: waiting, wake, socket })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The next request that has come; `None` if none waits.
    pub(super) fn next(&mut self) -> Option<Request> {
        if let Ok(request) = self.requests.try_recv() {
            return Some(request);
        }
        // Nothing to read is fine. What comes from here on wakes the loop again.
        let _count = rustix::io::read(&*self.wake, &mut [0_u8; 8]);
        self.requests.try_recv().ok()
    }
}

impl Way {
    fn pass(&self, request: Request) -> bool {
        let passed = self.requests.send(request).is_ok();
        // A full counter wakes as well as one more would.
        let _written = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        passed
    }

    fn listen_to_standard_input(&self) {
        for line in io::stdin().lines().map_while(Result::ok) {
            match Order::parse(&line) {
                Ok(order) => {
                    let (request, answers) = Request::new(order);
                    if !self.pass(request) {
                        return;
                    }
                    // Whoever asked may be gone.
                    let _written = match answer_of(order, &answers, Duration::MAX) {
                        Some(Ok(line)) if order.is_question() => say(&line),
                        Some(Err(error)) => say(&complaint(format!("{error:#}"))),
                        _ => Ok(()),
                    };
                }
                Err(error) => {
                    let _written = say(&complaint(error));
                }
            }
        }
        self.pass(Request::new(Order::Stop).0);
    }

    /// Serves one who has connected, until that one leaves.
    fn serve(&self, connection: &UnixStream) -> io::Result<()> {
        let mut lines = BufReader::new(connection);
        loop {
            let mut line = Vec::new();
            (&mut lines).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(());
            }
            let order = Order::parse(&String::from_utf8_lossy(&line));
            let answer = match order {
                Ok(order) => {
                    let (request, answers) = Request::new(order);
                    self.pass(request);
                    match answer_of(order, &answers, ANSWER_MAX) {
                        Some(Ok(line)) => line,
                        Some(Err(error)) => complaint(format!("{error:#}")),
                        None => complaint("the daemon does not answer"),
                    }
                }
                Err(error) => complaint(error),
            };
            writeln!(&mut &*connection, "{answer}")?;
        }
    }
}

impl Socket {
    fn open(path: &Path, way: Way) -> Result<Self> {
        let shown = path.display();
        check_place(path)?;
        if path.exists() {
            fs::remove_file(path).with_context(|| format!("remove the old socket {shown}"))?;
        }
        let attempt = || format!("make the control socket {shown}");
        let listener = UnixListener::bind(path).with_context(attempt)?;
        let stop = Arc::new(AtomicBool::new(false));
        let socket = Socket { path: path.to_owned(), stop: stop.clone() };
        fs::set_permissions(path, Permissions::from_mode(0o660)).with_context(attempt)?;
        std::thread::spawn(move || {
            let serving = Arc::new(AtomicUsize::new(0));
            for connection in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(connection) = connection else { continue };
                if serving.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
                    serving.fetch_sub(1, Ordering::SeqCst);
                    let message = complaint("too many connections; close one");
                    let _written = writeln!(&mut &connection, "{message}");
                    continue;
                }
                let (way, serving) = (way.clone(), serving.clone());
                std::thread::spawn(move || {
                    // Whoever broke the connection knows.
                    let _ended = way.serve(&connection);
                    serving.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Ok(socket)
    }
}

/// Looks whether a control socket can be made there, and makes nothing.
///
/// # Errors
/// If somebody answers there, or something else than a socket is there, or there is no such folder.
pub(super) fn check_place(path: &Path) -> Result<()> {
    let shown = path.display();
    ensure!(
        UnixStream::connect(path).is_err(),
        "control = {shown}: a daemon answers there: stop it, or choose another path"
    );
    if let Ok(found) = fs::symlink_metadata(path) {
        ensure!(
            found.file_type().is_socket(),
            "control = {shown}: this is no socket: choose another path"
        );
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    ensure!(
        folder.is_dir(),
        "control = {shown}: there is no folder {}: make it, or choose another path",
        folder.display()
    );
    Ok(())
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _woken = UnixStream::connect(&self.path);
        let _removed = fs::remove_file(&self.path);
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        drop(self.socket.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(orders: &mut Orders) -> Request {
        for _ in 0..500 {
            if let Some(request) = orders.next() {
                return request;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no order came");
    }

    #[test]
    fn a_socket_gives_orders_and_gets_answers() {
        let path = std::env::temp_dir().join(format!("lasthop-{}-control", std::process::id()));
        // A killed daemon left its socket here.
        drop(UnixListener::bind(&path).expect("a socket"));
        let control = Control::Socket(path.clone());
        let mut orders = Orders::open(&control).expect("it takes over");
        let refused = Orders::open(&control).expect_err("somebody answers there");
        assert!(refused.to_string().contains("stop it, or choose another path"), "{refused}");
        let client = UnixStream::connect(&path).expect("a connection");
        let mut answers = BufReader::new(&client).lines();
        let mut answer = move || answers.next().expect("an answer").expect("a line");
        write!(&client, "link up\nrubbish\nflows 7\n").expect("sent");
        let first = next(&mut orders);
        assert_eq!(first.order, Order::Notice(Notice::LinkUp(Side::RADIO)));
        first.answer(Ok("{}".into()));
        assert_eq!(answer(), "{}");
        assert!(answer().contains("`rubbish` is no order; expected mode off"));
        let second = next(&mut orders);
        assert_eq!(second.order, Order::Flows(7));
        second.answer(Err(anyhow::anyhow!("no")));
        assert_eq!(answer(), r#"{"error":"no"}"#);
        assert!(orders.next().is_none());
        drop(orders);
        assert!(!path.exists(), "it is removed");
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let path = std::env::temp_dir().join(format!("lasthop-{}-file", std::process::id()));
        fs::write(&path, "precious").expect("written");
        let refused = Orders::open(&Control::Socket(path.clone())).expect_err("no socket");
        assert!(refused.to_string().contains("this is no socket"), "{refused}");
        assert_eq!(fs::read(&path).expect("it is there"), b"precious");
        fs::remove_file(&path).expect("removed");
        let refused = check_place(Path::new("/nowhere/at/all")).expect_err("no folder");
        assert!(refused.to_string().contains("there is no folder /nowhere/at"), "{refused}");
    }

    #[test]
    fn orders_are_read_and_anything_else_is_none() {
        let down = Order::Notice(Notice::LinkDown(Side::RADIO));
        assert_eq!(Order::parse("link down\n").expect("an order"), down);
        assert_eq!(Order::parse("  stats ").expect("an order"), Order::Statistics);
        assert_eq!(Order::parse("mode help").expect("an order"), Order::Mode(Mode::Help));
        assert_eq!(Order::parse("flows").expect("an order"), Order::Flows(Order::FLOWS_USUAL));
        let gone = Order::Notice(Notice::MobileDown([10, 0, 2, 9].into()));
        assert_eq!(Order::parse("mobile 10.0.2.9 down").expect("an order"), gone);
        for nothing in [
            "",
            "link",
            "mobile 10.0.2 down",
            "mobile 10.0.2.9",
            "LINK DOWN",
            "stop now",
            "mode on",
            "flows 10001",
            "flows -1",
        ] {
            assert!(Order::parse(nothing).is_err(), "{nothing}");
        }
    }
}
