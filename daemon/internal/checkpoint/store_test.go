package checkpoint

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/checkpoint"
	"cnictl/testenv"
)

// crashVar names a step and a path: the test binary dies at that step.
const crashVar = "CNI_TEST_CHECKPOINT_CRASH"

// syncVar is the same for the step from which fsync fails.
const syncVar = "CNI_TEST_CHECKPOINT_SYNC"

func TestMain(m *testing.M) {
	if step, path, ok := strings.Cut(os.Getenv(crashVar), "@"); ok {
		crash(step, path)
	}
	if step, path, ok := strings.Cut(os.Getenv(syncVar), "@"); ok {
		withoutSync(step, path)
	}
	testenv.Main(m)
}

func entries(n int) []checkpoint.Entry {
	var all []checkpoint.Entry
	for i := range n {
		all = append(all, checkpoint.Entry{
			NetworkName: "aws-cni", ContainerID: fmt.Sprintf("%064x", i), IfName: "eth0",
			IPv4:        netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}),
			AllocatedAt: time.Unix(1787000000, int64(i)).UTC(), PodNamespace: "default", PodName: fmt.Sprintf("web-%d", i), Interfaces: 1,
		})
	}
	return all
}

func encoded(n int) []byte {
	var all [][]byte
	for _, e := range entries(n) {
		all = append(all, checkpoint.EncodeEntry(e))
	}
	return checkpoint.Encode(slices.Values(all))
}

func mustLoad(t *testing.T, s *Store) LoadResult {
	t.Helper()
	res, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// files lists a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

func TestStore_WriteThenLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "ipam.json")
	s := Open(path)
	for _, n := range []int{3, 700, 0, 1} {
		if err := s.Write(encoded(n)); err != nil {
			t.Fatal(err)
		}
		res := mustLoad(t, Open(path))
		if !slices.Equal(res.Entries, entries(n)) || res.Missing || res.Problem != nil || res.KeptAside != "" {
			t.Fatalf("%d entries written, loaded %+v", n, res)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	wantFiles(t, dir, "ipam.json")
	if s.Path() != path {
		t.Errorf("path %s", s.Path())
	}
}

func TestStore_MissingDirectory(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"load", "write"} {
		dir := filepath.Join(t.TempDir(), "var", "run", "aws-node")
		s := Open(filepath.Join(dir, "ipam.json"))
		if first == "load" {
			if res := mustLoad(t, s); !res.Missing || res.Entries != nil || res.Problem != nil {
				t.Errorf("loaded %+v", res)
			}
		} else if err := s.Write(encoded(1)); err != nil {
			t.Errorf("write: %v", err)
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s first: directory %v, %v", first, info, err)
		}
		if err := s.Write(encoded(2)); err != nil {
			t.Error(err)
		}
	}
}

// An existing directory keeps its mode.
func TestStore_DirectoryModeIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := Open(filepath.Join(dir, "ipam.json"))
	mustLoad(t, s)
	if err := s.Write(encoded(1)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestStore_LeftOverTemporaries(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"open", "load"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "ipam.json")
		leave := func() {
			for _, name := range []string{"ipam.json.tmp123456", "ipam.json.tmpabc", "ipam-nic-1.json.tmp7", "ipam.json.bak", "other.tmp1"} {
				if err := os.WriteFile(filepath.Join(dir, name), encoded(2)[:50], 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if by == "load" {
			s := Open(path)
			leave()
			mustLoad(t, s)
		} else {
			leave()
			Open(path)
		}
		wantFiles(t, dir, "ipam-nic-1.json.tmp7", "ipam.json.bak", "other.tmp1")
	}
}

func TestStore_DamagedFiles(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name     string
		data     []byte
		problem  checkpoint.Problem
		salvaged int
	}{
		{"truncated", encoded(3)[:len(encoded(2))], checkpoint.Truncated, 2},
		{"empty", nil, checkpoint.Empty, 0},
		{"foreign", []byte(`{"cniVersion":"1.0.0"}`), checkpoint.Foreign, 0},
		{"wrong version", []byte(`{"version":"vpc-cni-ipam/9","allocations":[]}`), checkpoint.WrongVersion, 0},
		{"binary", make([]byte, 4096), checkpoint.NotJSON, 0},
		{"bad entry", []byte(`{"version":"vpc-cni-ipam/1","allocations":[{"ipv4":"10.0.0.1"},{"ipv4":"x"}]}`), checkpoint.BadEntry, 1},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "ipam.json")
			if err := os.WriteFile(path, row.data, 0o600); err != nil {
				t.Fatal(err)
			}
			s := Open(path)
			res := mustLoad(t, s)
			var f *checkpoint.FormatError
			if !errors.As(res.Problem, &f) || f.Problem != row.problem || len(res.Entries) != row.salvaged || res.Missing {
				t.Errorf("loaded %+v", res)
			}
			if res.KeptAside != path+".damaged-1" {
				t.Errorf("kept at %q", res.KeptAside)
			}
			if kept, err := os.ReadFile(res.KeptAside); err != nil || string(kept) != string(row.data) {
				t.Errorf("kept %d bytes of %d, %v", len(kept), len(row.data), err)
			}
			wantFiles(t, dir, "ipam.json.damaged-1")
			if again := mustLoad(t, s); !again.Missing {
				t.Errorf("second load %+v", again)
			}
			if err := s.Write(encoded(1)); err != nil {
				t.Fatal(err)
			}
			if res := mustLoad(t, s); len(res.Entries) != 1 || res.Problem != nil {
				t.Errorf("after a write: %+v", res)
			}
		})
	}
}

func TestStore_KeepsFiveDamagedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "ipam.json")
	for _, name := range []string{"ipam.json.damaged-x", "ipam.json.damaged-0"} { // not written by us
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := Open(path)
	for i := range 12 {
		if err := os.WriteFile(path, fmt.Appendf(nil, "damage %d", i+1), 0o600); err != nil {
			t.Fatal(err)
		}
		if res := mustLoad(t, s); res.KeptAside != fmt.Sprintf("%s.damaged-%d", path, i+1) {
			t.Fatalf("kept at %s", res.KeptAside)
		}
	}
	wantFiles(t, dir, "ipam.json.damaged-0", "ipam.json.damaged-10", "ipam.json.damaged-11", "ipam.json.damaged-12", "ipam.json.damaged-8", "ipam.json.damaged-9", "ipam.json.damaged-x")
	if data, err := os.ReadFile(path + ".damaged-12"); err != nil || string(data) != "damage 12" {
		t.Errorf("the last one holds %q, %v", data, err)
	}
}

func TestStore_NotARegularFile(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(string) error{
		"directory": func(p string) error { return os.MkdirAll(filepath.Join(p, "inside"), 0o755) },
		"pipe":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"loop":      func(p string) error { return os.Symlink(p, p) },
	} {
		path := filepath.Join(t.TempDir(), "ipam.json")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		s := Open(path)
		res := mustLoad(t, s)
		if res.Problem == nil || !errors.As(res.Problem, new(*UnusableError)) || res.KeptAside == "" {
			t.Errorf("%s: loaded %+v", name, res)
		}
		if err := s.Write(encoded(1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that cannot be read may be good: it is not moved away, and the start fails, to be
// retried.
func TestStore_CannotBeReadNow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "ipam.json")
	if err := os.Symlink("/proc/self/mem", path); err != nil { // a regular file whose first page returns EIO
		t.Fatal(err)
	}
	for range 3 {
		res, err := Open(path).Load()
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), path) || res.Problem != nil || res.Missing || res.KeptAside != "" {
			t.Errorf("loaded %+v, %v", res, err)
		}
	}
	wantFiles(t, dir, "ipam.json")
}

func TestStore_TooLarge(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ipam.json")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxSize+1); err != nil { // sparse, not 64 MB of disk
		t.Fatal(err)
	}
	if res := mustLoad(t, Open(path)); res.Problem == nil || !strings.Contains(res.Problem.Error(), "larger than") {
		t.Errorf("loaded %+v", res)
	}
}

// A process killed between any two steps of a Write leaves the old or the new file intact,
// and nothing else once the store is reopened.
func TestStore_KilledBetweenSteps(t *testing.T) {
	t.Parallel()
	rows := []struct {
		step string
		want int // entries found afterwards
	}{
		{stepCreated, 2}, {stepWritten, 2}, {stepSynced, 2}, {stepRenamed, 700},
	}
	for _, row := range rows {
		dir := t.TempDir()
		path := filepath.Join(dir, "ipam.json")
		if err := Open(path).Write(encoded(2)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), crashVar+"="+row.step+"@"+path)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the child was not killed: %v\n%s", row.step, err, out)
		}
		if left := len(files(t, dir)); row.step != stepRenamed && left != 2 {
			t.Errorf("%s: %d files, want the temporary one too", row.step, left)
		}
		res := mustLoad(t, Open(path))
		if !slices.Equal(res.Entries, entries(row.want)) || res.Problem != nil {
			t.Errorf("%s: %d entries, %v; want %d", row.step, len(res.Entries), res.Problem, row.want)
		}
		wantFiles(t, dir, "ipam.json")
	}
}

// crash writes 700 entries and dies at a step.
func crash(step, path string) {
	s := Open(path)
	s.at = func(at string) {
		if at == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	fmt.Fprintln(os.Stderr, "write returned:", s.Write(encoded(700)))
	os.Exit(3)
}

// A Write syncs the file before it renames it, and the directory after that: where the kernel
// refuses to sync, it fails, with the file that a loss of power would leave.
func TestStore_Syncs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		what, refusedFrom string
		want              int // entries found afterwards
	}{
		{"file", stepWritten, 2}, {"directory", stepRenamed, 700},
	} {
		path := filepath.Join(t.TempDir(), "ipam.json")
		if err := Open(path).Write(encoded(2)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), syncVar+"="+row.refusedFrom+"@"+path)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != syscall.EIO.Error() {
			t.Errorf("%s: the write did not fail because of fsync: %v, %q", row.what, err, out)
		}
		if res := mustLoad(t, Open(path)); !slices.Equal(res.Entries, entries(row.want)) || res.Problem != nil {
			t.Errorf("%s: %d entries, %v; want %d", row.what, len(res.Entries), res.Problem, row.want)
		}
	}
}

// withoutSync writes 700 entries while the kernel answers EIO to each fsync after a step, and
// prints the cause of the failure.
func withoutSync(step, path string) {
	s := Open(path)
	s.at = func(at string) {
		if at == step {
			refuseSync()
		}
	}
	err := s.Write(encoded(700))
	var cause syscall.Errno
	if !errors.As(err, &cause) {
		fmt.Fprintln(os.Stderr, "write returned:", err)
		os.Exit(3)
	}
	fmt.Fprint(os.Stderr, cause)
	os.Exit(0)
}

// refuseSync installs a seccomp filter in all threads of the process.
func refuseSync() {
	ret := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	unless := func(nr uint32) unix.SockFilter { // skips the next instruction
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1}
	}
	fail := ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EIO))
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		unless(unix.SYS_FSYNC), fail,
		unless(unix.SYS_FDATASYNC), fail,
		ret(unix.SECCOMP_RET_ALLOW),
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	runtime.LockOSThread() // the filter's flag gives the other threads both
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	if thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); errno != 0 || thread != 0 {
		panic(fmt.Sprintf("seccomp: thread %d, %v", thread, errno))
	}
}
