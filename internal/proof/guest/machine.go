package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// Machine is what is needed to boot an architecture's kernel.
type Machine struct {
	GOARCH  string
	Flavour string   // of Debian's kernel package: linux-image-VERSION-FLAVOUR
	Folders []string // where scripts/fetch-vmlinuz.sh puts the kernels to test, one in each
	More    []string // folders of kernels that are tested too if all are ("make kernels")
	QEMU    string   // the emulator's program
	Args    []string // its machine
	// Console and Results are the guest's devices of the first and the second serial
	// line: what the kernel prints, and what init reports.
	Console, Results string
	// Second makes the second serial line of the character device "results". Without it there is one
	// line, and Results is Console.
	Second []string
	// MemoryStep is what the machine's memory must be a multiple of, in megabytes; 0 means 1.
	MemoryStep int64
	// Image is set if the emulator boots the image with debug information: it cannot unpack what Debian boots.
	Image bool
	// Line is added to the kernel's command line.
	Line string
}

// AMD64 is a PC. It is emulated, since machines that tests run on are often virtual
// themselves; one virtual CPU keeps the order of hits. It has no CMPXCHG16B: after that
// instruction QEMU 7.2 leaves garbage in the flags, including VM, which an interrupt at that
// moment saves; every third boot of Linux 6.12 ended in a double fault. It has no page tables of five
// levels either (LA57), for which the kernel replaces code in hundreds of places: the prediction of
// what a probe costs is one for processors without.
var AMD64 = Machine{
	GOARCH: "amd64", Flavour: "cloud-amd64", Folders: []string{"", "bookworm-backports"}, More: []string{"forky"},
	QEMU: "qemu-system-x86_64", Args: []string{"-accel", "tcg", "-cpu", "max,-cx16,-la57", "-smp", "1"},
	Console: "ttyS0", Results: "ttyS1", Second: []string{"-serial", "chardev:results"},
}

// ARM64 is QEMU's board for virtual machines. -cpu max would take five times as long.
var ARM64 = Machine{
	GOARCH: "arm64", Flavour: "cloud-arm64", Folders: []string{"arm64"}, More: []string{"forky"},
	QEMU: "qemu-system-aarch64", Args: []string{"-accel", "tcg", "-M", "virt", "-cpu", "cortex-a72", "-smp", "1"},
	Console: "ttyAMA0", Results: "ttyS0", Second: []string{"-device", "pci-serial,chardev=results"},
}

// Machines are all machines that most tests boot.
var Machines = []Machine{AMD64, ARM64}

// Foreign are machines that fewer tests boot: those of other architectures, first the one with the
// other byte order. They have one serial line, since
// some of these kernels have drivers for others only as modules.
var Foreign = []Machine{
	{
		GOARCH: "s390x", Flavour: "s390x", Folders: []string{"s390x"},
		QEMU: "qemu-system-s390x", Args: []string{"-accel", "tcg", "-M", "s390-ccw-virtio", "-cpu", "max", "-smp", "1"},
		Console: "ttysclp0", Results: "ttysclp0",
	},
	{
		GOARCH: "ppc64le", Flavour: "powerpc64le", Folders: []string{"ppc64el"},
		QEMU: "qemu-system-ppc64", Args: []string{"-accel", "tcg", "-M", "pseries,x-vof=on", "-cpu", "power9", "-smp", "1"},
		Console: "hvc0", Results: "hvc0", MemoryStep: 256,
	},
	{
		GOARCH: "386", Flavour: "686-pae", Folders: []string{"i386"},
		QEMU: "qemu-system-i386", Args: []string{"-accel", "tcg", "-cpu", "max", "-smp", "1"},
		Console: "ttyS0", Results: "ttyS0",
	},
	{
		GOARCH: "arm", Flavour: "armmp", Folders: []string{"armhf"},
		QEMU: "qemu-system-arm", Args: []string{"-accel", "tcg", "-M", "virt", "-cpu", "cortex-a15", "-smp", "1"},
		Console: "ttyAMA0", Results: "ttyAMA0",
	},
	{
		GOARCH: "riscv64", Flavour: "riscv64", Folders: []string{"riscv64"},
		QEMU: "qemu-system-riscv64", Args: []string{"-accel", "tcg", "-M", "virt", "-smp", "1"},
		Console: "ttyS0", Results: "ttyS0",
	},
	{
		// Debian 12's emulator, QEMU 7.2, does not boot it: scripts/fetch-qemu.sh fetches a later one, which cannot unpack a kernel that is
		// packed by zstd. The kernel reads from where other machines have a controller of a keyboard, which ends it.
		GOARCH: "loong64", Flavour: "loong64", Folders: []string{"loong64"},
		QEMU: "qemu-10-system-loongarch64", Args: []string{"-accel", "tcg", "-M", "virt", "-cpu", "la464", "-smp", "1"},
		Console: "ttyS0", Results: "ttyS0", MemoryStep: 1024, Image: true, Line: "initcall_blacklist=i8042_init",
	},
}

// Kernel is a kernel to boot, and its image with debug information.
type Kernel struct {
	Machine
	Release string // as uname -r prints it
	Vmlinux string // with debug information; it stays outside the guest
	Boots   string // the file that is booted
	Module  string // tun.ko, as it is loaded
	qemu    string
	dir     string
}

// FindKernels finds the emulator and a kernel in each of the machine's folders, as
// scripts/fetch-vmlinuz.sh puts them there ("make vmlinux"). If one is missing, the test is
// skipped; with CI=true it fails.
func FindKernels(t testenv.TB, m Machine) []*Kernel {
	t.Helper()
	qemu := testenv.Tool(t, m.QEMU)
	var out []*Kernel
	for _, folder := range m.Folders {
		k := &Kernel{Machine: m, qemu: qemu, dir: filepath.Join(testenv.Cache(), folder)}
		found, err := filepath.Glob(filepath.Join(k.dir, "vmlinuz-*[0-9]-"+m.Flavour))
		if err != nil || len(found) == 0 {
			testenv.Missing(t, "no kernel to boot in %s: run \"make vmlinux\"", k.dir)
		}
		k.Boots = found[len(found)-1]
		k.Release = strings.TrimPrefix(filepath.Base(k.Boots), "vmlinuz-")
		k.Vmlinux = filepath.Join(k.dir, "vmlinux-"+k.Release)
		if m.Image {
			k.Boots = k.Vmlinux
		}
		k.Module = filepath.Join(k.dir, "modules-"+k.Release, "tun.ko")
		need := []string{k.Vmlinux}
		if m.Second != nil {
			need = append(need, k.Module)
		}
		for _, path := range need {
			if _, err := os.Stat(path); err != nil {
				testenv.Missing(t, "not all of the kernel to boot: run \"make vmlinux\": %v", err)
			}
		}
		out = append(out, k)
	}
	return out
}

// DebugModule is tun.ko's debug information.
func (k *Kernel) DebugModule() string { return filepath.Join(k.dir, "tun-"+k.Release+".ko") }

// DefaultLimit is the time that a boot may take. An idle machine needs a tenth.
const DefaultLimit = time.Minute

// ErrGuest is wrapped by Boot's error if the guest did not end normally. The error contains
// the end of what its kernel printed.
var ErrGuest = errors.New("the guest failed")

// Boot boots the kernel with a task, and returns init's report.
func (k *Kernel) Boot(ctx context.Context, task *Task) (report *Report, err error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	task.Results = "/dev/" + k.Results
	initrd := filepath.Join(dir, "initrd")
	if err := k.writeInitramfs(ctx, initrd, task); err != nil {
		return nil, err
	}
	limit := task.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	console, results := filepath.Join(dir, "console"), filepath.Join(dir, "results")
	line := strings.TrimSpace("console=" + k.Console + " panic=-1 quiet " + k.Line)
	if !task.KASLR {
		line += " nokaslr"
	}
	shared := k.Results == k.Console
	if shared {
		results = console
	}
	bounded, stop := context.WithTimeout(ctx, limit)
	defer stop()
	cmd := exec.CommandContext(bounded, k.qemu, append([]string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-net", "none",
		"-serial", "file:" + console,
		"-m", k.memory(initrd), "-kernel", k.Boots, "-initrd", initrd, "-append", line,
	}, append(k.Args, k.second(results)...)...)...)
	// The emulator and whatever it starts are one process group, which is killed as one, and
	// if this process ends. For the kernel that is the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Run()
	if bounded.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("it took more than %v", limit)
	}
	report, readErr := readReport(results, shared)
	if err = errors.Join(err, readErr); err != nil {
		return nil, fmt.Errorf("%w: %w\n%s%s", ErrGuest, err, said.String(), tail(console))
	}
	return report, nil
}

// second returns the emulator's arguments for the second serial line.
func (k *Kernel) second(results string) []string {
	if k.Second == nil {
		return nil
	}
	return append([]string{"-chardev", "file,id=results,path=" + results}, k.Second...)
}

// memory returns the memory of a machine that unpacks an initramfs, in megabytes: its files
// are in memory twice then, and the first file system takes at most half of the memory.
func (k *Kernel) memory(initrd string) string {
	size := int64(0)
	if st, err := os.Stat(initrd); err == nil {
		size = st.Size()
	}
	step := max(k.MemoryStep, 1)
	return strconv.FormatInt((512+3*(size>>20)+step-1)/step*step, 10)
}

// tail returns the end of a text file, for errors.
func tail(path string) string {
	d, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	const enough = 4000
	return string(d[max(0, len(d)-enough):])
}
