package vm

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guestVar is on the kernel's command line, which makes it an environment variable of
// process 1.
const guestVar = "CNICTL_TESTENV_VM"

// insideVar names the file of Network to a program that runs in a guest.
const insideVar = "CNICTL_TESTENV_GUEST"

// Inside reports whether the process runs in a guest.
func Inside() bool { return Network() != "" }

// Network is a file, as nsenter --net takes it, of the network in which the guest's kernel started.
// Only there can the kernel's global settings be written. Outside a guest it is "".
func Network() string { return os.Getenv(insideVar) }

// Options configure Run.
type Options struct {
	// Memory of the guest, in MiB. Default: 2048. The host allocates only what the guest uses.
	Memory int
	// Timeout ends a guest that hangs. Required.
	Timeout time.Duration
	// Env is added to the program's environment.
	Env []string
	// Ports of the caller's loopback (TCP, IPv4) that the program reaches on its loopback.
	Ports []int
	// Stdout and Stderr receive the program's output. Required.
	Stdout, Stderr io.Writer
}

const (
	defaultMemory = 2048
	cpus          = 2
)

// The guest's serial ports: three streams of the program and the kernel's console.
const (
	stdoutPort = "stdout"
	stderrPort = "stderr"
	resultPort = "result"
)

// Run runs the calling program with its own arguments in a guest and returns its exit
// code. An error means that it did not run to completion there.
func Run(ctx context.Context, files Files, o Options) (code int, err error) {
	dir, err := os.MkdirTemp("", "vm")
	if err != nil {
		return 0, fmt.Errorf("start virtual machine: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("start virtual machine: %w", err)
	}
	workDir, err := os.Getwd()
	if err != nil {
		return 0, fmt.Errorf("start virtual machine: %w", err)
	}
	j, err := newJob(files, program, workDir, os.Args, append(os.Environ(), o.Env...))
	if err != nil {
		return 0, fmt.Errorf("start virtual machine: %w", err)
	}
	j.Ports, j.End = o.Ports, "\x00"+rand.Text()
	initramfs := filepath.Join(dir, "initramfs")
	if err := writeInitramfs(initramfs, files, program, j); err != nil {
		return 0, fmt.Errorf("start virtual machine: write initramfs: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var answer bytes.Buffer
	streams := map[string]*stream{
		stdoutPort: {to: o.Stdout, end: j.End}, stderrPort: {to: o.Stderr, end: j.End}, resultPort: {to: &answer, end: j.End},
	}
	console, err := boot(ctx, files, qemuArgs(files, initramfs, o), streams)
	if !allEnded(streams) {
		if err == nil {
			err = errors.New("QEMU exited")
		}
		return 0, fmt.Errorf("the virtual machine ended without a result (%w); the end of its console:\n%s",
			errors.Join(context.Cause(ctx), err), console)
	}
	var r result
	if err := json.Unmarshal(answer.Bytes(), &r); err != nil {
		return 0, fmt.Errorf("read the virtual machine's result: %w; the end of its console:\n%s", err, console)
	}
	if r.Error != "" {
		return 0, fmt.Errorf("in the virtual machine: %s; the end of its console:\n%s", r.Error, console)
	}
	return r.Code, nil
}

// Descriptors of QEMU: its ends of the sockets that serve as the guest's ports and as its
// console.
var descriptors = []string{stdoutPort, stderrPort, resultPort, consoleName}

const (
	consoleName     = "console"
	firstDescriptor = 3
)

// kernelArgs: a crash ends QEMU. The kernel's timer check and TSC watchdog fail on a host so
// busy that the emulated CPU stalls.
const kernelArgs = "console=ttyS0 quiet panic=-1 no_timer_check tsc=nowatchdog nokaslr mitigations=off random.trust_cpu=on"

// qemuArgs describes the machine. The CPU is the one that TCG emulates on any host.
func qemuArgs(files Files, initramfs string, o Options) []string {
	memory := o.Memory
	if memory == 0 {
		memory = defaultMemory
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-vga", "none", "-no-reboot",
		"-accel", "tcg,thread=multi", "-cpu", "max", "-M", "q35,sata=off,smbus=off,usb=off",
		"-m", fmt.Sprintf("%dM", memory), "-smp", fmt.Sprint(cpus),
		"-kernel", files.kernel(), "-initrd", initramfs,
		"-append", kernelArgs + " " + guestVar + "=1",
		"-fsdev", "local,id=machine,path=/,security_model=none,readonly=on,multidevs=remap",
		"-device", "virtio-9p-pci,fsdev=machine,mount_tag=machine",
		"-device", "virtio-serial-pci",
	}
	for i, name := range descriptors {
		args = append(args, "-chardev", fmt.Sprintf("socket,id=%s,fd=%d", name, firstDescriptor+i))
		if name == consoleName {
			args = append(args, "-serial", "chardev:"+name)
		} else {
			args = append(args, "-device", "virtserialport,chardev="+name+",name="+name)
		}
	}
	if len(o.Ports) > 0 {
		args = append(args, "-netdev", "user,id=net,ipv6=off", "-device", "virtio-net-pci,netdev=net,romfile=")
	}
	return args
}

// boot runs the machine until it or all streams have ended, and returns the end of the output
// of its kernel and of QEMU.
func boot(ctx context.Context, files Files, args []string, streams map[string]*stream) (console string, err error) {
	// The kernel sends the parent-death signal when the *thread* that started the
	// child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, files.qemu(), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	last := &tail{}
	cmd.Stdout, cmd.Stderr = last, last
	var copied, running sync.WaitGroup
	for _, name := range descriptors {
		ours, theirs, err := socketPair()
		if err != nil {
			return "", err
		}
		defer ours.Close()
		defer theirs.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
		if s, ok := streams[name]; ok {
			running.Add(1)
			copied.Go(func() {
				defer running.Done()
				s.copy(ours)
			})
		} else {
			copied.Go(func() { _, _ = io.Copy(last, ours) }) // ends with the machine
		}
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", files.qemu(), err)
	}
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	go func() {
		running.Wait()
		if allEnded(streams) {
			cancel() // nothing on its disk: no shutdown needed
		}
	}()
	err = cmd.Wait()
	copied.Wait()
	return last.String(), err
}

// allEnded reports whether every stream has reached its end mark.
func allEnded(streams map[string]*stream) bool {
	for _, s := range streams {
		if !s.ended {
			return false
		}
	}
	return true
}

// socketPair returns the two ends of a stream socket.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs"), nil
}

// stream passes on the output of a guest's port, up to an end mark.
type stream struct {
	to    io.Writer
	end   string
	ended bool // the mark was read
}

// copy reads until the mark or the end of the guest. Bytes that may be the start of the mark
// wait for the next read.
func (s *stream) copy(from io.Reader) {
	buffer := make([]byte, 64<<10)
	var held []byte
	for {
		n, err := from.Read(buffer)
		held = append(held, buffer[:n]...)
		if before, _, ok := bytes.Cut(held, []byte(s.end)); ok {
			_, _ = s.to.Write(before) // as exec.Cmd does: a closed writer is not an error here
			s.ended = true
			return
		}
		keep := overlap(held, s.end)
		if err != nil {
			keep = 0
		}
		_, _ = s.to.Write(held[:len(held)-keep])
		held = bytes.Clone(held[len(held)-keep:])
		if err != nil {
			return
		}
	}
}

// overlap is the length of the longest suffix of data that is a prefix of the mark.
func overlap(data []byte, mark string) int {
	for n := min(len(data), len(mark)); n > 0; n-- {
		if strings.HasPrefix(mark, string(data[len(data)-n:])) {
			return n
		}
	}
	return 0
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > 2*tailSize {
		t.b = bytes.Clone(t.b[len(t.b)-tailSize:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.b[max(0, len(t.b)-tailSize):]
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
