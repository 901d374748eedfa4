//! Builds Hummock's core, the `hummock_*` functions only: the C library keeps its malloc.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// These take over the C library's and C++'s names.
const OVERRIDES: [&str; 3] = ["libc.cc", "operators.cc", "dlopen.cc"];

/// These are Windows's alone, folders and files.
fn is_of_windows(name: &str) -> bool {
    name.starts_with("windows") || name == "bohemia.cc" || name == "served_absent.cc"
}
/// The one file that catches exceptions.
const CATCHES: &str = "quiet_call.cc";

/// As cmake/flags.cmake in Hummock's sources.
const FLAGS: [&str; 14] = [
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-plt",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-ftls-model=initial-exec",
    "-fno-builtin-malloc",
    "-fno-builtin-free",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-aligned_alloc",
    "-fno-builtin-memalign",
    "-fno-builtin-posix_memalign",
    "-fno-builtin-valloc",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("hummock-sys: cannot read {}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_of_windows(&name) || OVERRIDES.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".cc") {
            found.push(path);
        }
    }
}

fn compiler(csrc: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("gnu++20")
        .cpp_link_stdlib(None) // nothing of it is needed at run time
        .cargo_metadata(false)
        .define("NDEBUG", None)
        .opt_level(2) // in debug builds, too: every allocation of the program goes through it
        .include(csrc.join("src"))
        .include(csrc.join("include"));
    for flag in FLAGS {
        build.flag(flag);
    }
    build
}

fn main() {
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    assert!(os == "linux", "hummock-sys supports Linux only, not {os}");
    let csrc = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("csrc");
    let mut files = Vec::new();
    sources(&csrc.join("src"), &mut files);
    files.sort();
    let (catches, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.ends_with(CATCHES));
    let objects = compiler(&csrc).flag("-fexceptions").files(catches).compile_intermediates();
    compiler(&csrc).flag("-fno-exceptions").files(others).objects(objects).compile("hummock_core");

    // Whole: what runs at the start and at the end of the program is referred to by nobody.
    let out = env::var("OUT_DIR").expect("set by cargo");
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static:+whole-archive=hummock_core");
    println!("cargo:include={}", csrc.join("include").display());
    println!("cargo:rerun-if-changed=csrc/src");
    println!("cargo:rerun-if-changed=csrc/include");
}
