package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cnictl/daemon/api/crashpoint"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// killed is the exit code of a process that SIGKILL ended, as in a shell.
const killed = 128 + int(syscall.SIGKILL)

// TestCrashPoints kills the daemon or the plugin at every point that an operation passes,
// continues like kubelet, and compares kernel, EC2 and file. An earlier run that is not killed
// records the points.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	passed, scenes := map[crashpoint.Point]bool{}, 0
	note := func(points []crashpoint.Point) {
		mu.Lock()
		defer mu.Unlock()
		scenes++
		for _, p := range points {
			passed[p] = true
		}
	}
	for _, s := range pluginScenes {
		atOnce(t, s.name, func(t *testing.T) { s.crashes(t, note) })
	}
	for _, s := range daemonScenes {
		atOnce(t, s.name, func(t *testing.T) { s.crashes(t, note) })
	}
	t.Cleanup(func() {
		if !everyScene || scenes < len(daemonScenes)+len(pluginScenes) {
			return // only some were selected
		}
		for _, p := range crashpoint.All() {
			if !passed[p] {
				t.Errorf("no scene passes the crash point %s", p)
			}
		}
	})
}

// everyScene is set in the nightly run, which has more scenes and more of each.
var everyScene bool

// newCrashLab makes a lab whose binaries have crash points.
func newCrashLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, fakeaws.Options{})
	l.binaries = filepath.Join(l.binaries, "crash")
	if _, err := os.Stat(filepath.Join(l.binaries, node.DaemonBinary)); err != nil {
		t.Fatalf("binaries with crash points are missing; run: make crash: %v", err)
	}
	return l
}

// trace is the path of the file in which a process lists the points that it passes.
type trace string

// newTrace creates a trace in the node's directory, where the node's processes may write.
func newTrace(s *stage) trace {
	s.t.Helper()
	dir, err := os.MkdirTemp(s.Dir, "trace")
	if err != nil {
		s.t.Fatal(err)
	}
	return trace(filepath.Join(dir, "points"))
}

func (f trace) points(t *testing.T) (out []crashpoint.Point) {
	t.Helper()
	text, err := os.ReadFile(string(f))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		out = append(out, crashpoint.Point(strings.TrimSpace(line)))
	}
	return out
}

// diedAt checks that a process killed itself at a point.
func (f trace) diedAt(t *testing.T, want crashpoint.Point, code int) {
	t.Helper()
	points := f.points(t)
	if code != killed || len(points) == 0 || points[len(points)-1] != want {
		t.Fatalf("exit code %d after %v, want %d and %s last", code, points, killed, want)
	}
}

// env returns the variables that make a process list its points and, unless at is empty, die
// when it passes that point for the nth time.
func (f trace) env(at crashpoint.Point, nth int) map[string]string {
	env := map[string]string{"CNI_CRASH_LIST": string(f)}
	if at != "" {
		env["CNI_CRASH_AT"] = fmt.Sprintf("%s:%d", at, nth)
	}
	return env
}

func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// distinct returns each point once, in order of its first pass.
func distinct(points []crashpoint.Point) (out []crashpoint.Point) {
	for _, p := range points {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// passing is a point that a recorded operation passed.
type passing struct {
	point crashpoint.Point
	nth   int // nth pass since the start of the process
}

// ofOperation lists the points passed after the first n.
func ofOperation(points []crashpoint.Point, n int) (out []passing) {
	for _, p := range distinct(points[n:]) {
		nth := 1
		for _, q := range points[:n] {
			if p == q {
				nth++
			}
		}
		out = append(out, passing{p, nth})
	}
	return out
}

// ended waits until the daemon exits on its own and returns its exit code.
func (l *lab) ended(n *node.Node) int {
	l.t.Helper()
	r, err := n.DaemonEnded(testenv.Context(l.t))
	if err != nil {
		l.t.Fatalf("the daemon did not die: %v", err)
	}
	return r.Code
}
