"""A kernel of Debian's in a guest, with a network between it and this host: for scripts that talk
to protocols of the kernel. Needs root, on Debian; what is missing is fetched by apt.
"""

import atexit
import contextlib
import gzip
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "target")).resolve()
SCRIPTS = Path(__file__).resolve().parent
NAMESPACE = f"fontis-guest-{os.getpid()}"
HOST, GATE, GUEST = "10.77.0.1", "10.77.0.2", "10.77.1.2"


@dataclass(frozen=True)
class Setup:
    """What a guest is made of: a folder for it, modules of the kernel in the order of dependence,
    lines of its init, and the program in C that it has."""

    home: Path
    modules: list[str]
    lines: str
    code: Path


INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /run /var/run /tmp /dev
/bin/busybox --install -s /bin
export PATH=/usr/sbin:/sbin:/usr/bin:/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t tmpfs tmpfs /var/run
mount -t devtmpfs dev /dev
stty raw -echo
for module in $(cat /modules/order); do insmod /modules/$module; done
device=$(ls /sys/class/net | grep -E '^(eth|vec)' | head -n 1)
/sbin/ip link set lo up
/sbin/ip address add GATE/24 dev $device; /sbin/ip link set $device up
/sbin/ip netns add inner
/sbin/ip link add outer type veth peer name inner netns inner
/sbin/ip address add 10.77.1.1/24 dev outer; /sbin/ip link set outer up
inner() { /sbin/ip netns exec inner "$@"; }
inner /sbin/ip link set lo up
inner /sbin/ip address add GUEST/24 dev inner; inner /sbin/ip link set inner up
inner /sbin/ip route add default via 10.77.1.1
echo 1 > /proc/sys/net/ipv4/ip_forward
LINESnetem() { /sbin/tc qdisc replace dev outer root netem $*; /sbin/tc qdisc replace dev $device root netem $*; }
echo; echo @@ready
while read -r line; do eval "$line"; echo "@@done $?"; done
poweroff -f
""".replace("GATE", GATE).replace("GUEST", GUEST)


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, **more)


def output(*command):
    return run(*command, stdout=subprocess.PIPE, text=True).stdout


def fetch(home, package):
    """Unpacks a package of Debian's, and returns where it is."""
    place = home / package
    if not place.is_dir():
        part = home / f"{package}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        # apt reads it as another user, who may not see this folder: that is a warning.
        run("apt-get", "download", "-qq", package, cwd=part, stderr=subprocess.DEVNULL)
        archive, = part.glob("*.deb")
        run("dpkg-deb", "-x", archive, part)
        archive.unlink()
        part.rename(place)
    return place


def initrd(setup, kind, kernel):
    """Makes the first file system of the guest."""
    home = setup.home
    root = home / f"{kind}-root"
    shutil.rmtree(root, ignore_errors=True)
    (root / "bin").mkdir(parents=True)
    (root / "modules").mkdir()
    busybox = fetch(home, "busybox-static") / "bin" / "busybox"
    shutil.copy(busybox, root / "bin")
    for tool in ("/sbin/ip", "/sbin/tc"):
        libraries = [word for word in output("ldd", tool).split() if word.startswith("/")]
        for file in [tool, *libraries]:
            copy = root / file.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
    order = []
    for module in setup.modules:
        for file in kernel.rglob(f"kernel/{module}.ko"):
            shutil.copy(file, root / "modules")
            order.append(file.name)
    (root / "modules" / "order").write_text("\n".join(order))
    program = root / "bin" / setup.code.stem
    run("cc", "-O2", "-Wall", "-Werror", "-static", "-o", program, setup.code, "-lm")
    (root / "init").write_text(INIT.replace("LINES", setup.lines))
    (root / "init").chmod(0o755)
    names = output("sh", "-c", f"cd {shlex.quote(str(root))} && find .")
    cpio = [busybox, "cpio", "-o", "-H", "newc"]
    archive = run(*cpio, cwd=root, input=names.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    image = home / f"{kind}.initrd"
    image.write_bytes(gzip.compress(archive.stdout, 1))
    return image


def command_of(setup, kind):
    """The command that boots the guest with its network at `tap0`."""
    if kind == "uml":
        place = fetch(setup.home, "user-mode-linux")
        network = "vec0:transport=tap,ifname=tap0,depth=128"
        return [place / "usr/bin/linux.uml", "mem=256M", f"initrd={initrd(setup, kind, place)}", network,
                "con=null", "con0=fd:0,fd:1", "quiet"]  # fmt: skip
    run(SCRIPTS / "require.sh", "qemu-system-x86_64=qemu-system-x86")
    depends = output("apt-cache", "depends", "linux-image-amd64").split()
    place = fetch(setup.home, next(word for word in depends if word.startswith("linux-image-")  and word != "linux-image-amd64"))
    kernel, = (place / "boot").glob("vmlinuz-*")
    return ["qemu-system-x86_64", "-m", "512", "-nographic", "-no-reboot", "-nic",
            "tap,ifname=tap0,script=no,downscript=no,model=e1000", "-kernel", kernel,
            "-initrd", initrd(setup, kind, place), "-append", "console=ttyS0 quiet"]  # fmt: skip


class Guest:
    """A booted kernel, which runs a line of its shell at a time."""

    def __init__(self, setup, kind):
        command = [str(part) for part in within(command_of(setup, kind))]
        pipe = subprocess.PIPE
        (setup.home / "shm").mkdir(exist_ok=True)
        environment = os.environ | {"TMPDIR": "/dev/shm"}
        # User-mode Linux is several processes, which form a group of their own.
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT,
                                        env=environment, start_new_session=True)  # fmt: skip
        atexit.register(self.kill)
        begin = time.monotonic()
        self.until("@@ready")
        print(f"{kind}: {self.run('uname -sr')[0]} booted in {time.monotonic() - begin:.1f} s", flush=True)

    def until(self, mark):
        """The lines before one that begins with `mark`."""
        lines = []
        for line in self.process.stdout:
            text = line.decode(errors="replace").strip()
            if text.startswith(mark):
                return lines
            if os.environ.get("FONTIS_VERBOSE"):
                print(f"    guest: {text}", flush=True)
            lines.append(text)
        raise RuntimeError("the guest has ended: " + "\n".join(lines[-20:]))

    def begin(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def run(self, line):
        self.begin(line)
        return self.until("@@done")

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self):
        self.begin("poweroff -f")
        self.process.wait(timeout=30)


def within(command):
    return ["ip", "netns", "exec", NAMESPACE, *command]


def build_network():
    run("ip", "netns", "add", NAMESPACE)
    atexit.register(subprocess.run, ["ip", "netns", "delete", NAMESPACE])
    for command in (
        "link set lo up",
        "tuntap add dev tap0 mode tap",
        f"address add {HOST}/24 dev tap0",
        "link set tap0 up",
        f"route add 10.77.1.0/24 via {GATE}",
    ):
        run("ip", "-n", NAMESPACE, *command.split())


def begin(home):
    """Makes the network. What is made is removed at the end, also if that comes by a signal."""
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    home.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, stop)
    build_network()


def stop(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)
