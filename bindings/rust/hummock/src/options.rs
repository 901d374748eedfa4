//! Options at run time.

use core::ffi::{c_char, CStr};
use core::fmt;

use hummock_sys as sys;

/// Longer than any option's name or value; that of `log` is a path.
const ROOM: usize = 512;

/// An option's value as text.
#[derive(Clone, Copy)]
pub struct OptionValue {
    text: [u8; ROOM],
}

impl OptionValue {
    /// The value, as it would be written in `HUMMOCK_CONF`.
    pub fn as_str(&self) -> &str {
        CStr::from_bytes_until_nul(&self.text).ok().and_then(|text| text.to_str().ok()).unwrap_or("")
    }
}

impl fmt::Debug for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// Why an option was not read or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionError {
    /// There is no option of that name.
    Unknown,
    /// The option cannot have that value.
    BadValue,
    /// The option can be given only before the program starts: in `HUMMOCK_CONF` or by [`conf!`](crate::conf).
    OnlyAtStart,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OptionError::Unknown => "no such option",
            OptionError::BadValue => "the option cannot have this value",
            OptionError::OnlyAtStart => "the option can be given only before the program starts",
        })
    }
}

impl core::error::Error for OptionError {}

/// As the C functions want it; None when it is too long or has a NUL within.
fn c_text(text: &str) -> Option<[u8; ROOM]> {
    let bytes = text.as_bytes();
    if bytes.len() >= ROOM || bytes.contains(&0) {
        return None;
    }
    let mut copy = [0; ROOM];
    copy[..bytes.len()].copy_from_slice(bytes);
    Some(copy)
}

fn start(text: &[u8; ROOM]) -> *const c_char {
    text.as_ptr().cast()
}

/// The value an option has now.
///
/// ```
/// assert_eq!(hummock::option("checked").unwrap().as_str(), "off");
/// assert_eq!(hummock::option("cheked").unwrap_err(), hummock::OptionError::Unknown);
/// ```
pub fn option(name: &str) -> Result<OptionValue, OptionError> {
    let name = c_text(name).ok_or(OptionError::Unknown)?;
    let mut text = [0; ROOM];
    // SAFETY: texts that end, room as said.
    match unsafe { sys::hummock_option_get(start(&name), text.as_mut_ptr().cast(), ROOM) } {
        0 => Ok(OptionValue { text }),
        _ => Err(OptionError::Unknown),
    }
}

/// Gives an option a value.
///
/// ```
/// hummock::set_option("decay_ms", "500").unwrap();
/// assert_eq!(hummock::set_option("checked", "on"), Err(hummock::OptionError::OnlyAtStart));
/// ```
pub fn set_option(name: &str, value: &str) -> Result<(), OptionError> {
    const EPERM: i32 = 1;
    const ENOENT: i32 = 2;
    let name = c_text(name).ok_or(OptionError::Unknown)?;
    let value = c_text(value).ok_or(OptionError::BadValue)?;
    // SAFETY: texts that end.
    match unsafe { sys::hummock_option_set(start(&name), start(&value)) } {
        0 => Ok(()),
        ENOENT => Err(OptionError::Unknown),
        EPERM => Err(OptionError::OnlyAtStart),
        _ => Err(OptionError::BadValue),
    }
}
