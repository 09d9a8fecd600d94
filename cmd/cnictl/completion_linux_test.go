package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cnictl/testenv/kube/fleetsim"
)

// relay is a proxy to an API server that can be silenced: it then accepts connections and
// does not answer.
type relay struct {
	listener net.Listener
	silent   atomic.Bool
	taken    atomic.Int64 // connections accepted while silent
	mu       sync.Mutex   // guards open
	open     []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.keep(c)
			if r.silent.Load() {
				r.taken.Add(1)
				continue
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				t.Error(err)
				return
			}
			r.keep(server)
			for _, way := range [][2]net.Conn{{c, server}, {server, c}} {
				running.Go(func() {
					// Either end may close, and then the other has nothing to wait for.
					_, _ = io.Copy(way[0], way[1])
					_ = way[0].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		r.mu.Lock()
		for _, c := range r.open {
			c.Close()
		}
		r.mu.Unlock()
		running.Wait()
	})
	return r
}

func (r *relay) keep(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, c)
}

// completer runs the shipped program that kubectl calls for completions.
type completer struct {
	script string
	env    []string
}

func newCompleter(t *testing.T, kubeconfig string) *completer {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(binary(t), filepath.Join(dir, "cnictl")); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../deploy/krew/kubectl_complete-cni")
	if err != nil {
		t.Fatal(err)
	}
	return &completer{script, []string{"PATH=" + dir + ":/usr/bin:/bin", "KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir()}}
}

// directive is the line that ends the completions. closing is what cobra prints about it to
// standard error.
var (
	directive = regexp.MustCompile(`(?m)^:[0-9]+\n`)
	closing   = regexp.MustCompile(`^Completion ended with directive: \w+(, \w+)*\n$`)
)

// ask completes the last word. It returns the completions and the CPU time in milliseconds.
func (c *completer) ask(t *testing.T, args ...string) (words []string, cpu float64) {
	t.Helper()
	var out, said strings.Builder
	cmd := exec.CommandContext(t.Context(), c.script, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, &out, &said
	if err := cmd.Run(); err != nil {
		t.Errorf("%q: %v", args, err)
	}
	if !closing.MatchString(said.String()) || !directive.MatchString(out.String()) {
		t.Errorf("%q says %q and %q", args, out.String(), said.String())
	}
	for line := range strings.Lines(directive.ReplaceAllString(out.String(), "")) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		words = append(words, word)
	}
	return words, float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds()) / 1000
}

// completions are command lines and the patterns that their completions must match.
var completions = []struct {
	args []string
	want *regexp.Regexp
}{
	{[]string{"node", "show", ""}, regexp.MustCompile(`^ip-10-.*\.internal$`)},
	{[]string{"nodes", "ip-10-0-"}, regexp.MustCompile(`^ip-10-0-.*\.internal$`)},
	{[]string{"pod", ""}, regexp.MustCompile(`^[a-z-]+/[a-z0-9-]+$`)},
	{[]string{"pod", "-n", "shop", ""}, regexp.MustCompile(`^[a-z0-9-]+$`)},
	{[]string{"ips", "--pod", ""}, regexp.MustCompile(`^[a-z-]+/[a-z0-9-]+$`)},
	{[]string{"logs", "--pod", "shop/"}, regexp.MustCompile(`^shop/[a-z0-9-]+$`)},
	{[]string{"logs", "--eni", ""}, regexp.MustCompile(`^eni-[0-9a-f]+$`)},
	{[]string{"subnets", "subnet-"}, regexp.MustCompile(`^subnet-[0-9a-f]+$`)},
	{[]string{"enis", "--filter", "subnet="}, regexp.MustCompile(`^subnet=subnet-[0-9a-f]+$`)},
	{[]string{"enis", "--namespace", ""}, regexp.MustCompile(`^[a-z-]+$`)},
}

// TestComplete_Kubectl: the shipped program completes from names that were read earlier. It
// makes no request and prints no error if the API server is silent, gone, or never existed.
func TestComplete_Kubectl(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 6, Seed: 2, Churn: -1})
	way := newRelay(t, strings.TrimPrefix(sim.URL(), "https://"))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := strings.ReplaceAll(string(sim.Kubeconfig()), sim.URL(), "https://"+way.listener.Addr().String())
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCompleter(t, kubeconfig)
	nothing := func(when string) {
		t.Helper()
		for _, line := range completions {
			if words, _ := c.ask(t, line.args...); len(words) > 0 {
				t.Errorf("%s: %q completes to %q", when, line.args, words)
			}
		}
	}
	way.silent.Store(true)
	nothing("before the first reading")
	way.silent.Store(false)
	read := exec.CommandContext(t.Context(), binary(t), "ips")
	read.Env = c.env
	if out, err := read.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fromCache := func(when string) {
		t.Helper()
		for _, line := range completions {
			words, cpu := c.ask(t, line.args...)
			if len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return !line.want.MatchString(w) }) {
				t.Errorf("%s: %q completes to %q", when, line.args, words)
			}
			t.Logf("%s: %q: %d words in %.0f ms of CPU", when, line.args, len(words), cpu)
		}
		subnets, _ := c.ask(t, "subnets", "subnet-")
		if again, _ := c.ask(t, "subnets", subnets[0], "subnet-"); slices.Contains(again, subnets[0]) {
			t.Errorf("%s: a subnet that is named already is offered again: %q", when, again)
		}
	}
	way.silent.Store(true)
	fromCache("silent")
	way.listener.Close()
	fromCache("gone")
	if n := way.taken.Load(); n > 0 {
		t.Errorf("the API server was asked %d times", n)
	}
	for _, broken := range []string{"{", `{"nodes":7}`, ""} {
		files, err := filepath.Glob(filepath.Join(strings.TrimPrefix(c.env[2], "HOME="), ".cache/cnictl/names-*.json"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v %v", files, err)
		}
		if err := os.WriteFile(files[0], []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		nothing("with a broken cache")
	}
	if err := os.WriteFile(kubeconfig, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	nothing("with a broken kubeconfig")
}
