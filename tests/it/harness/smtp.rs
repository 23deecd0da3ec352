//! A mail server, over real SMTP on this machine, that does what a test asks of it: accept, refuse, hang, cut.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mailparse::{MailHeaderMap, ParsedMail, parse_mail};
use order_service::outbox::Channel;
use order_service::outbox::connection::Wanted;

use super::relay::{SECRET, set};
use super::wait::until;
use super::world::World;

/// A test waits so long for a mail; far longer than any relay of the tests rests.
const SOON: Duration = Duration::from_secs(30);

/// The sender of the tests' mails.
pub const FROM: &str = "Müller & Söhne <orders@shop.example>";

/// What the server does with one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Takes the mail.
    Accept,
    /// Answers a command with this line, takes nothing and goes on.
    Say(Moment, &'static str),
    /// Cuts the connection instead of an answer, and takes nothing.
    Cut(Moment),
    /// Says nothing until [`FakeSmtp::release`], takes nothing, and cuts the connection.
    Hang(Moment),
    /// Takes the mail, and cuts the connection instead of an answer.
    AcceptThenCut,
    /// Takes the mail, says nothing until [`FakeSmtp::release`], and cuts the connection.
    AcceptThenHang,
}

/// A moment of a conversation: what the server is to answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The connection.
    Greeting,
    /// `AUTH`
    Login,
    /// `MAIL FROM`
    Sender,
    /// `RCPT TO`
    Recipient,
    /// `DATA`
    Data,
    /// The dot behind the mail.
    Content,
}

/// A mail that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// What `MAIL FROM` named.
    pub sender: String,
    /// What `RCPT TO` named, each.
    pub recipients: Vec<String>,
    /// The mail as it came, dots unstuffed.
    pub raw: String,
}

impl Mail {
    /// The values of a header, decoded.
    pub fn headers(&self, name: &str) -> Vec<String> {
        self.parsed().headers.get_all_values(name)
    }

    /// The value of a header that there is once, decoded.
    pub fn header(&self, name: &str) -> String {
        let mut values = self.headers(name);
        assert_eq!(values.len(), 1, "{name}: {}", self.raw);
        values.remove(0)
    }

    /// The text, decoded.
    pub fn text(&self) -> String {
        self.parsed().get_body().expect("a body that can be decoded").replace("\r\n", "\n")
    }

    fn parsed(&self) -> ParsedMail<'_> {
        parse_mail(self.raw.as_bytes()).expect("a mail of RFC 5322")
    }
}

/// The mail server. It hangs up and ends with this value.
pub struct FakeSmtp {
    address: SocketAddr,
    state: Arc<State>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    closed: AtomicBool,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    script: VecDeque<Step>,
    conversations: usize,
    mails: Vec<Mail>,
    logins: Vec<String>,
    released: u64,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_release(&self) {
        let inner = self.lock();
        let before = inner.released;
        let waited = self.changed.wait_while(inner, |inner| inner.released == before);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl FakeSmtp {
    /// A mail server on a free port that accepts everything.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(State::default());
        let served = Arc::clone(&state);
        let listening = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if served.closed.load(Ordering::SeqCst) {
                    return;
                }
                let state = Arc::clone(&served);
                // Whoever talks to it may hang up at any time, which is what some tests want.
                thread::spawn(move || {
                    let _ = converse(&state, stream);
                });
            }
        });
        Self { address, state, listening: Some(listening) }
    }

    /// Where it takes mails.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// What it does with the next conversations; afterwards it accepts.
    pub fn script(&self, steps: &[Step]) {
        self.state.lock().script.extend(steps);
    }

    /// Lets go on who hangs now.
    pub fn release(&self) {
        self.state.lock().released += 1;
        self.state.changed.notify_all();
    }

    /// The mails that it has taken.
    pub fn mails(&self) -> Vec<Mail> {
        self.state.lock().mails.clone()
    }

    /// How often it was connected to.
    pub fn conversations(&self) -> usize {
        self.state.lock().conversations
    }

    /// What it was told to let somebody in: name and password of `AUTH PLAIN`, after a NUL each.
    pub fn logins(&self) -> Vec<String> {
        self.state.lock().logins.clone()
    }

    /// Waits until it has taken so many mails.
    pub fn wait_for_mails(&self, count: usize) {
        until(SOON, "the mail server has the mail", || self.mails().len() >= count);
    }
}

impl Drop for FakeSmtp {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        self.release();
        // Wakes the thread that listens; when it has ended, the port is closed.
        let _ = TcpStream::connect(self.address);
        let ended = self.listening.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))) || thread::panicking(), "the thread that listens does not panic");
    }
}

/// Connects a tenant, which has a client already, to a mail server.
pub fn connect_mail(world: &World, tenant: &str, server: &FakeSmtp) {
    let (url, options) = (server.url(), serde_json::json!({"from": FROM, "user": "shop"}).to_string());
    let wanted = Wanted { kind: "smtp", url: Some(&url), secret_name: Some(SECRET.0), options: &options };
    set(world, tenant, Channel::Mail, &wanted);
}

/// One conversation, as RFC 5321 has it. `None`: somebody hung up.
fn converse(state: &State, stream: TcpStream) -> Option<()> {
    let step = {
        let mut inner = state.lock();
        inner.conversations += 1;
        inner.script.pop_front().unwrap_or(Step::Accept)
    };
    let mut talk = Talk { state, step, reader: BufReader::new(stream.try_clone().ok()?), stream };
    talk.answer(Moment::Greeting, "220 mail.test ESMTP")?;
    let (mut sender, mut recipients) = (String::new(), Vec::new());
    loop {
        let line = talk.line()?;
        let verb: String = line.chars().take(4).collect::<String>().to_ascii_uppercase();
        match verb.as_str() {
            "EHLO" => talk.say("250-mail.test\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN")?,
            "AUTH" => {
                let decoded = STANDARD.decode(line.rsplit(' ').next()?).ok()?;
                state.lock().logins.push(String::from_utf8(decoded).ok()?);
                talk.answer(Moment::Login, "235 welcome")?;
            }
            "MAIL" => {
                sender = within_brackets(&line)?;
                talk.answer(Moment::Sender, "250 ok")?;
            }
            "RCPT" => {
                recipients.push(within_brackets(&line)?);
                talk.answer(Moment::Recipient, "250 ok")?;
            }
            "DATA" => {
                if talk.answer(Moment::Data, "354 end with a dot")? {
                    let raw = talk.content()?;
                    talk.take(Mail { sender: sender.clone(), recipients: recipients.clone(), raw })?;
                }
            }
            "QUIT" => return talk.say("221 bye"),
            _ => talk.say("502 not here")?,
        }
    }
}

fn within_brackets(line: &str) -> Option<String> {
    Some(line.split_once('<')?.1.split_once('>')?.0.to_owned())
}

/// The server's side of a conversation.
struct Talk<'a> {
    state: &'a State,
    step: Step,
    reader: BufReader<TcpStream>,
    stream: TcpStream,
}

impl Talk<'_> {
    fn line(&mut self) -> Option<String> {
        // Who speaks TLS to a server that does not is no reason to hang up.
        let mut line = Vec::new();
        if self.reader.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        Some(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned())
    }

    /// The mail up to its dot.
    fn content(&mut self) -> Option<String> {
        let mut raw = String::new();
        loop {
            let line = self.line()?;
            if line == "." {
                return Some(raw);
            }
            raw.push_str(line.strip_prefix('.').unwrap_or(&line));
            raw.push_str("\r\n");
        }
    }

    fn say(&mut self, text: &str) -> Option<()> {
        self.stream.write_all(format!("{text}\r\n").as_bytes()).ok()
    }

    fn cut(&self) -> Option<()> {
        let _ = self.stream.shutdown(Shutdown::Both);
        None
    }

    /// Answers as usual, or as the script wants it at this moment. Whether it was the usual answer.
    fn answer(&mut self, moment: Moment, usual: &str) -> Option<bool> {
        match self.step {
            Step::Say(at, text) if at == moment => self.say(text).map(|()| false),
            Step::Cut(at) if at == moment => self.cut().map(|()| false),
            Step::Hang(at) if at == moment => {
                self.state.wait_for_release();
                self.cut().map(|()| false)
            }
            _ => self.say(usual).map(|()| true),
        }
    }

    /// What becomes of a mail that has come to its dot.
    fn take(&mut self, mail: Mail) -> Option<()> {
        let taken = matches!(self.step, Step::Accept | Step::AcceptThenCut | Step::AcceptThenHang);
        if taken {
            self.state.lock().mails.push(mail);
        }
        match self.step {
            Step::AcceptThenCut => self.cut(),
            Step::AcceptThenHang => {
                self.state.wait_for_release();
                self.cut()
            }
            _ => self.answer(Moment::Content, "250 taken").map(|_| ()),
        }
    }
}
