package uml

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Maybe turns process 1 of a guest into one that runs the guest's job, and the process
// that Run starts into the kernel's keeper, and then does not return. Programs that call
// Run call it before anything else.
func Maybe() {
	if os.Getpid() != 1 {
		return
	}
	if os.Getenv(keeperVar) != "" {
		os.Exit(keep())
	}
	dir, ok := os.LookupEnv(guestVar)
	if !ok {
		return
	}
	if err := guest(dir); err != nil {
		fmt.Fprintln(os.Stderr, "user-mode Linux:", err) // the console
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) // process 1 must not end
	select {}
}

// sharedDir is where the directory with the job is mounted, writable.
const sharedDir = "/run/uml"

func guest(dir string) error {
	var j job
	if err := read(dir, jobFile, &j); err != nil {
		return err
	}
	if err := setUp(dir, j); err != nil {
		return err // nowhere to put a result: the console tells
	}
	var r result
	code, err := runJob(j)
	if r.Code = code; err != nil {
		r.Error = err.Error()
	}
	if err := write(sharedDir, resultFile, r); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(sharedDir, resultFile))
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// setUp makes the guest a system: mounts, modules, settings.
func setUp(dir string, j job) error {
	for _, m := range []struct {
		kind, at, data string
		flags          uintptr
	}{
		{"proc", "/proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"sysfs", "/sys", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"tmpfs", "/run", "mode=0755", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", j.Temp, "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := unix.Mount(m.kind, m.at, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.at, err)
		}
	}
	if err := os.Mkdir(sharedDir, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("none", sharedDir, "hostfs", 0, dir); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	if err := os.WriteFile("/proc/sys/kernel/modprobe", []byte(j.Loader), 0); err != nil {
		return fmt.Errorf("set the loader of modules: %w", err)
	}
	// The kernel asks for the others by itself, but has to know of IPv6 before anybody
	// looks whether it is there.
	for _, name := range []string{"ipv6", "8021q"} {
		if out, err := exec.Command(j.Loader, name).CombinedOutput(); err != nil {
			return fmt.Errorf("load module %s: %w: %s", name, err, out)
		}
	}
	return nil
}

// legacyPrograms are the names under which the guest has iptables: its kernel lacks what
// the nftables variants need.
var legacyPrograms = []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}

// legacyDir makes a directory of those programs, to be first in PATH.
func legacyDir(temp string) (string, error) {
	dir := filepath.Join(temp, "legacy-iptables")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range legacyPrograms {
		if err := os.Symlink("/usr/sbin/xtables-legacy-multi", filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// runJob starts the program and collects every orphan until it ends.
func runJob(j job) (code int, err error) {
	legacy, err := legacyDir(j.Temp)
	if err != nil {
		return 0, err
	}
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var files []uintptr
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	files = append(files, null.Fd())
	for _, path := range []string{"/dev/tty1", "/dev/tty2"} {
		tty, err := openRaw(path)
		if err != nil {
			return 0, err
		}
		defer drain(tty)
		files = append(files, tty.Fd())
	}
	pid, err := syscall.ForkExec(program, j.Args, &syscall.ProcAttr{
		Dir: j.Dir, Env: guestEnv(j.Env, legacy, j.Temp), Files: files,
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", program, err)
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait: %w", err)
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case ended == pid:
			return status.ExitStatus(), nil
		}
	}
}

// guestEnv puts the programs of the guest first and temporary files on its tmpfs.
func guestEnv(env []string, programs, temp string) []string {
	path := "/usr/sbin:/usr/bin:/sbin:/bin"
	env = slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		value, is := strings.CutPrefix(e, "PATH=")
		if is {
			path = value
		}
		return is
	})
	return append(env, "PATH="+programs+":"+path, "TMPDIR="+temp, insideVar+"=1")
}

// openRaw opens a console as a plain stream of bytes.
func openRaw(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		t.Oflag &^= unix.OPOST
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up %s: %w", path, err), f.Close())
	}
	return f, nil
}

// drain waits until the other side has all that was written.
func drain(tty *os.File) {
	_ = unix.IoctlSetInt(int(tty.Fd()), unix.TCSBRK, 1) // tcdrain; there is nobody to tell
	tty.Close()
}
