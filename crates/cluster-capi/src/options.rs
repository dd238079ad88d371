//! What a session is like, in C's terms.

use core::ffi::{CStr, c_char};
use core::mem::{MaybeUninit, offset_of};
use lockstead_cluster::{ClientOptions, ClusterError, SessionOptions, TlsFiles};
use std::time::Duration;

/// The options of C. Zeroes and null pointers are the defaults of [`SessionOptions`].
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lks_cluster_options {
    /// Its size in the program, of which later libraries know more fields.
    pub size: usize,
    /// The members to ask, `URL,…`.
    pub endpoints: *const c_char,
    /// A user of etcd.
    pub user: *const c_char,
    /// The password of that user.
    pub password: *const c_char,
    /// A file with certificates of authorities, PEM.
    pub cacert: *const c_char,
    /// A file with the certificate of this client, PEM.
    pub cert: *const c_char,
    /// A file with its key, PEM.
    pub key: *const c_char,
    /// The folder of the locks' keys in etcd.
    pub root: *const c_char,
    /// The length of the lease in whole seconds.
    pub lease_s: u64,
    /// The time by which the lease is called lost before etcd may, in nanoseconds.
    pub margin_ns: u64,
    /// The time that one member has for an answer, in nanoseconds.
    pub attempt_ns: u64,
    /// The time after which a request has failed, in nanoseconds.
    pub patience_ns: u64,
}

/// The size of the first library that had options: a program that is older does not exist.
const FIRST: usize = offset_of!(lks_cluster_options, patience_ns) + size_of::<u64>();

fn wrong<T>(what: &str) -> Result<T, ClusterError> {
    Err(ClusterError::Options(what.into()))
}

/// Reads a string; `None` for null.
///
/// # Safety
/// ABROAD-MEMORY holds.
pub(crate) unsafe fn text(
    string: *const c_char,
    what: &str,
) -> Result<Option<String>, ClusterError> {
    if string.is_null() {
        return Ok(None);
    }
    // SAFETY: ABROAD-MEMORY: not null, so it is a string; the caller keeps it.
    match unsafe { CStr::from_ptr(string) }.to_str() {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => wrong(&format!("{what} is not UTF-8")),
    }
}

/// Returns the options that a program gave; null gives the defaults.
///
/// # Safety
/// ABROAD-MEMORY holds, for the options and all strings that they lead to.
pub(crate) unsafe fn session(
    options: *const lks_cluster_options,
) -> Result<SessionOptions, ClusterError> {
    let mut made = SessionOptions::default();
    if options.is_null() {
        return Ok(made);
    }
    // SAFETY: ABROAD-MEMORY: options begin with their size; the caller keeps it.
    let size = unsafe { options.cast::<usize>().read() };
    if size < FIRST {
        return wrong("options begin as LKS_CLUSTER_OPTIONS_INIT makes them, with their size");
    }
    let mut own = MaybeUninit::<lks_cluster_options>::zeroed();
    // SAFETY: ABROAD-MEMORY: so many bytes are the program's options, and no more than ours are written.
    unsafe {
        let to = own.as_mut_ptr().cast::<u8>();
        to.copy_from_nonoverlapping(options.cast(), size.min(size_of::<lks_cluster_options>()));
    }
    // SAFETY: all bytes were written or are zeroes, and each field may have any value.
    let own = unsafe { own.assume_init() };
    let read = |string, what| {
        // SAFETY: ABROAD-MEMORY: null or a string, for all fields; the caller keeps it.
        unsafe { text(string, what) }
    };
    if let Some(endpoints) = read(own.endpoints, "endpoints")? {
        made.client = ClientOptions::of(&endpoints)?;
    }
    made.client.user = match (read(own.user, "user")?, read(own.password, "password")?) {
        (Some(user), Some(password)) => Some((user, password)),
        (None, None) => None,
        _ => return wrong("a user takes a password, and a password a user"),
    };
    let client = match (read(own.cert, "cert")?, read(own.key, "key")?) {
        (Some(cert), Some(key)) => Some((cert.into(), key.into())),
        (None, None) => None,
        _ => return wrong("a certificate takes its key, and a key its certificate"),
    };
    let authorities = read(own.cacert, "cacert")?.map(Into::into);
    made.client.tls = TlsFiles { authorities, client };
    if let Some(root) = read(own.root, "root")? {
        made.root = root;
    }
    let nanoseconds = |given: u64, usual: Duration| match given {
        0 => usual,
        given => Duration::from_nanos(given),
    };
    if own.lease_s != 0 {
        made.ttl = Duration::from_secs(own.lease_s);
    }
    made.margin = nanoseconds(own.margin_ns, made.margin);
    made.client.attempt = nanoseconds(own.attempt_ns, made.client.attempt);
    made.client.patience = nanoseconds(own.patience_ns, made.client.patience);
    Ok(made)
}
