use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::error::{KernelError, system};
use super::object::{FUNCTION, Object, Program, RELOCATION};
use super::system::{Arguments, Request};
use super::types::{Structure, TypeReader, put, word};

/// How long an algorithm stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Until it is removed or the kernel ends.
    UntilRemoved,
    /// As long as its descriptor, which Linux 6.4 has; `open` to all users and namespaces.
    OfDescriptor { open: bool },
}

/// The types of the running kernel.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The structure of an algorithm, and the one in which a map holds it.
const OPERATIONS: &str = "tcp_congestion_ops";
const VALUE: &str = "bpf_struct_ops_tcp_congestion_ops";
/// "BPF_PROG_TYPE_STRUCT_OPS", "BPF_MAP_TYPE_STRUCT_OPS", "BPF_STRUCT_OPS" and "BPF_F_LINK".
const PROGRAM: u32 = 27;
const MAP: u32 = 26;
const ATTACH: u32 = 44;
const LINK: u32 = 1 << 13;
/// "TCP_CONG_NON_RESTRICTED".
const OPEN: u32 = 1;
/// "TCP_CA_NAME_MAX", with the zero at the end.
const NAME: usize = 16;
/// The state of a map whose algorithm is registered ("BPF_STRUCT_OPS_STATE_INUSE").
const IN_USE: u32 = 1;
/// Bytes of the description of a map (`struct bpf_map_info`) that are read.
const INFO: usize = 80;
const LOG: usize = 64 << 10;

/// The structures of the kernel that registration needs.
struct Kernel {
    operations: Structure,
    value: Structure,
    /// Where the operations begin in the value.
    start: u32,
}

impl Kernel {
    fn read() -> Result<Self, KernelError> {
        let bytes = fs::read(TYPES).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => KernelError::Unsupported(format!("there is no {TYPES}")),
            _ => system("read the kernel's types")(error),
        })?;
        let unreadable = |_| KernelError::Unsupported(format!("{TYPES} has an unknown form"));
        let reader = TypeReader::new(&bytes).map_err(unreadable)?;
        let [operations, value] = reader.structures([OPERATIONS, VALUE]).map_err(unreadable)?;
        let missing = |name: &str| KernelError::Unsupported(format!("it has no struct {name}"));
        let operations = operations.ok_or_else(|| missing(OPERATIONS))?;
        let value = value.ok_or_else(|| missing(VALUE))?;
        let start = value.place("data").ok_or_else(|| missing(VALUE))?;
        Ok(Self { operations, value, start })
    }
}

/// Gives an algorithm to the kernel under a name; the descriptor of which it depends, if it does.
pub(super) fn register(
    object: &Object<'_>,
    name: &str,
    life: Life,
) -> Result<Option<OwnedFd>, KernelError> {
    let kernel = Kernel::read()?;
    let types = Arguments::new()
        .input(0, &object.types)
        .number(16, object.types.len() as u32)
        .open(Request::LoadTypes)
        .map_err(system("load types into the kernel"))?;
    let mut value = vec![0; kernel.value.size as usize];
    let mut programs = Vec::new();
    for program in &object.programs {
        let (number, place) = hook(&kernel, program.hook)?;
        let loaded = load(&kernel, object, program, number, types.as_fd())?;
        put(&mut value, (kernel.start + place) as usize, loaded.as_raw_fd() as u32);
        programs.push(loaded);
    }
    let (_, place) = hook(&kernel, "name")?;
    let place = (kernel.start + place) as usize;
    for (to, from) in value[place..place + NAME - 1].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    if life == (Life::OfDescriptor { open: true }) {
        let (_, place) = hook(&kernel, "flags")?;
        put(&mut value, (kernel.start + place) as usize, OPEN);
    }
    let flags = if life == Life::UntilRemoved { 0 } else { LINK };
    let map = Arguments::new()
        .number(0, MAP)
        .number(4, 4)
        .number(8, kernel.value.size)
        .number(12, 1)
        .number(16, flags)
        .name(28, name)
        .descriptor(48, types.as_fd())
        .number(60, kernel.value.id)
        .open(Request::CreateMap)
        .map_err(system("make a map of the algorithm"))?;
    let key = [0; 4];
    let update = Arguments::new().descriptor(0, map.as_fd()).input(8, &key).input(16, &value);
    update.run(Request::Update).map_err(|error| match error.raw_os_error() {
        Some(libc::EEXIST) => KernelError::Loaded(name.to_owned()),
        _ => system("register the algorithm")(error),
    })?;
    if life == Life::UntilRemoved {
        return Ok(None);
    }
    let link = Arguments::new().descriptor(0, map.as_fd()).number(8, ATTACH);
    link.open(Request::CreateLink).map(Some).map_err(|error| match error.raw_os_error() {
        Some(libc::EEXIST) => KernelError::Loaded(name.to_owned()),
        _ => system("register the algorithm")(error),
    })
}

/// The number and the place of a member of the operations.
fn hook(kernel: &Kernel, name: &str) -> Result<(u32, u32), KernelError> {
    let members = &kernel.operations.members;
    let number = members.iter().position(|(member, _)| member == name).ok_or_else(|| {
        KernelError::Unsupported(format!("its struct {OPERATIONS} has no member {name}"))
    })?;
    Ok((number as u32, members[number].1))
}

fn load(
    kernel: &Kernel,
    object: &Object<'_>,
    program: &Program<'_>,
    number: u32,
    types: BorrowedFd<'_>,
) -> Result<OwnedFd, KernelError> {
    let license = format!("{}\0", object.license);
    let arguments = || {
        Arguments::new()
            .number(0, PROGRAM)
            .number(4, (program.code.len() / 8) as u32)
            .input(8, program.code)
            .input(16, license.as_bytes())
            .name(48, program.hook)
            .number(68, number)
            .descriptor(72, types)
            .number(76, FUNCTION as u32)
            .input(80, &program.function)
            .number(88, (program.function.len() / FUNCTION) as u32)
            .number(108, kernel.operations.id)
            .number(116, (program.relocations.len() / RELOCATION) as u32)
            .input(128, &program.relocations)
            .number(136, RELOCATION as u32)
    };
    arguments().open(Request::LoadProgram).or_else(|error| {
        if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) {
            return Err(system("load a program into the kernel")(error));
        }
        // Once more for the reasons.
        let mut log = vec![0; LOG];
        let again = arguments().number(24, 1).number(28, LOG as u32).output(32, &mut log);
        again.open(Request::LoadProgram).map_err(|source| {
            let text: Vec<u8> = log.iter().copied().take_while(|byte| *byte != 0).collect();
            let text = String::from_utf8_lossy(&text);
            let last: Vec<&str> = text.lines().rev().take(3).collect();
            let log = last.into_iter().rev().collect::<Vec<_>>().join("; ");
            KernelError::Refused { program: program.hook.to_owned(), source, log }
        })
    })
}

/// The map of a registered algorithm.
pub(super) fn find(name: &str) -> Result<Option<OwnedFd>, KernelError> {
    let list = system("list the kernel's maps");
    let mut id = 0;
    loop {
        match Arguments::new().number(0, id).ask(Request::NextMap, 4) {
            Ok(next) => id = next,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
            Err(error) => return Err(list(error)),
        }
        // It may have gone meanwhile.
        let Ok(map) = Arguments::new().number(0, id).open(Request::MapById) else { continue };
        if is_algorithm(&map, name) {
            return Ok(Some(map));
        }
    }
}

fn is_algorithm(map: &OwnedFd, name: &str) -> bool {
    let mut info = [0; INFO];
    let ask = Arguments::new().descriptor(0, map.as_fd()).number(4, INFO as u32);
    if ask.output(8, &mut info).run(Request::Info).is_err() || word(&info, 0) != Some(MAP) {
        return false;
    }
    let own: Vec<u8> = info[24..40].iter().copied().take_while(|byte| *byte != 0).collect();
    if own != name.as_bytes() {
        return false;
    }
    let (key, mut value) = ([0; 4], vec![0; word(&info, 12).unwrap_or(0) as usize]);
    let look = Arguments::new().descriptor(0, map.as_fd()).input(8, &key);
    let is_read = look.output(16, &mut value).run(Request::Lookup).is_ok();
    is_read && word(&value, 4) == Some(IN_USE)
}

/// Removes a registered algorithm.
pub(super) fn remove(map: &OwnedFd) -> Result<(), KernelError> {
    let key = [0; 4];
    let delete = Arguments::new().descriptor(0, map.as_fd()).input(8, &key);
    delete.run(Request::Delete).map_err(system("remove the algorithm"))
}
