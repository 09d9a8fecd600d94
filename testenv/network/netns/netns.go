package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Dir is where namespaces are bind-mounted, as iproute2 and container runtimes do. In a test
// it is on the tmpfs that testenv.Main mounts on /run.
const Dir = "/run/netns"

// NS is one network namespace, valid until Close.
type NS struct {
	Name string
	Path string // bind mount; "" for a namespace made by FromFile

	file *os.File
}

// New creates a namespace with `lo` up, and closes it when the test ends.
func New(t testing.TB) *NS {
	t.Helper()
	ns, err := Create("")
	if errors.Is(err, unix.EPERM) {
		t.Fatalf("%v (call testenv.RequireRoot first)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ns.Close(); err != nil {
			t.Error(err)
		}
	})
	return ns
}

// Create creates a namespace with `lo` up, bind-mounted at Dir/name. An empty name
// picks a fresh one. The owner calls Close.
func Create(name string) (*NS, error) {
	path, err := mountPoint(name)
	if err != nil {
		return nil, fmt.Errorf("create network namespace: %w", err)
	}
	var file *os.File
	err = Discard(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		if err := LoopbackUp(); err != nil {
			return err
		}
		if err := unix.Mount(threadPath, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind namespace to %s: %w", path, err)
		}
		var err error
		file, err = os.Open(path)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create network namespace: %w", err), unmount(path))
	}
	return &NS{Name: filepath.Base(path), Path: path, file: file}, nil
}

// FromFile takes over an open namespace file, for example one received from a
// process in another mount namespace. Close closes the file.
func FromFile(name string, f *os.File) *NS { return &NS{Name: name, file: f} }

// FromPath opens a namespace by the path of its file. Close closes the file and
// leaves the path alone.
func FromPath(path string) (*NS, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	return FromFile(filepath.Base(path), f), nil
}

// Current opens the namespace of the calling thread.
func Current() (*NS, error) {
	f, err := os.Open(threadPath)
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	return FromFile("current", f), nil
}

// Dup opens the same namespace once more, for a user with its own lifetime.
func (n *NS) Dup() (*NS, error) {
	fd, err := unix.FcntlInt(n.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate network namespace %s: %w", n.Name, err)
	}
	return FromFile(n.Name, os.NewFile(uintptr(fd), n.Name)), nil
}

// FD is the descriptor of the namespace file; it belongs to the NS.
func (n *NS) FD() int { return int(n.file.Fd()) }

// File is the open namespace file; it belongs to the NS.
func (n *NS) File() *os.File { return n.file }

// Close releases the namespace. The kernel removes it with all its links shortly after the
// last process and socket have left it.
func (n *NS) Close() error {
	err := n.file.Close()
	if n.Path != "" {
		err = errors.Join(err, unmount(n.Path))
	}
	if err != nil {
		return fmt.Errorf("close network namespace %s: %w", n.Name, err)
	}
	return nil
}

// Do runs f on a thread inside the namespace and returns its error. Goroutines
// started by f run outside. f must not call t.FailNow or t.Skip: it is not on the
// test's goroutine.
func (n *NS) Do(f func() error) error {
	done := make(chan error, 1)
	offMainThread(func() {
		result := fmt.Errorf("network namespace %s: function ended its goroutine", n.Name)
		defer func() { done <- result }()
		before, err := os.Open(threadPath)
		if err != nil {
			runtime.UnlockOSThread()
			result = fmt.Errorf("enter network namespace %s: %w", n.Name, err)
			return
		}
		defer before.Close()
		if err := unix.Setns(n.FD(), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			result = fmt.Errorf("enter network namespace %s: %w", n.Name, err)
			return
		}
		defer func() {
			// If the way back fails, the thread stays locked: the runtime then ends it with this
			// goroutine instead of reusing it.
			if unix.Setns(int(before.Fd()), unix.CLONE_NEWNET) == nil {
				runtime.UnlockOSThread()
			}
		}()
		result = f()
	})
	return <-done
}

// threadPath names the namespace of the calling thread; /proc/self would
// name that of the process's first thread.
const threadPath = "/proc/thread-self/ns/net"

// Discard runs f on a fresh thread that ends with f, whatever namespaces f moves it to.
func Discard(f func() error) error {
	done := make(chan error, 1)
	offMainThread(func() { done <- f() }) // never unlocked
	return <-done
}

// offMainThread starts f on a goroutine locked to a thread other than the
// process's first. The runtime cannot end the first one: it would stay forever in the
// namespace f left it in, keep that alive, and be what /proc/self shows.
func offMainThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		// While this goroutine holds the first thread, the other goroutine cannot get it.
		defer runtime.UnlockOSThread()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread()
			f()
		}()
		<-ended
	}()
}

// LoopbackUp sets `lo` up in the namespace of the calling thread. Without it the
// kernel refuses on-link default routes and nothing can reach local addresses.
func LoopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}

func mountPoint(name string) (string, error) {
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		return "", err
	}
	var f *os.File
	var err error
	switch {
	case name == "":
		f, err = os.CreateTemp(Dir, "t")
	case strings.ContainsRune(name, filepath.Separator):
		return "", fmt.Errorf("name %q has a path separator", name)
	default:
		f, err = os.OpenFile(filepath.Join(Dir, name), os.O_CREATE|os.O_EXCL, 0o444)
	}
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

func unmount(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH)
	if errors.Is(err, unix.EINVAL) { // nothing was mounted yet
		err = nil
	}
	return errors.Join(err, os.Remove(path))
}
