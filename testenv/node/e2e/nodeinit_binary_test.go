package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node/agent"
)

// prepared is a node with a directory like the init container image's. Its kernel settings
// differ from those that the init container makes.
type prepared struct {
	one
	dir, bin string
}

func (l *lab) prepared() prepared {
	l.t.Helper()
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		l.t.Fatal(err)
	}
	p := prepared{one{l, l.node(i.ID)}, l.t.TempDir(), l.t.TempDir()}
	// Another process writes it: a child that this process starts meanwhile would inherit the
	// open file, and the program could not be executed.
	if r, err := p.Exec(agent.Cmd{Argv: []string{"/bin/cp", filepath.Join(l.binaries, "aws-vpc-cni-init"), p.dir}}); err != nil || r.Code != 0 {
		l.t.Fatalf("copy the program: %v, exit status %d: %s", err, r.Code, r.Stderr)
	}
	l.write(filepath.Join(p.dir, "portmap"), "a plugin", 0o755)
	l.write(filepath.Join(p.dir, "LICENSE"), "a text", 0o644)
	if err := os.Mkdir(filepath.Join(p.dir, "more"), 0o755); err != nil {
		l.t.Fatal(err)
	}
	for _, key := range p.keys() {
		p.sysctl(key, "0")
	}
	return p
}

// keys lists the settings that the init container may make in the node's network namespace.
func (p prepared) keys() []string {
	return []string{
		"net/ipv4/conf/" + p.Link + "/rp_filter", "net/ipv4/tcp_early_demux",
		"net/ipv6/conf/" + p.Link + "/accept_ra", "net/ipv6/conf/all/forwarding", "net/ipv6/conf/all/disable_ipv6",
	}
}

// sysctl sets a kernel setting of the node, or reads it if value is empty.
func (p prepared) sysctl(key, value string) (got string) {
	p.t.Helper()
	path := filepath.Join("/proc/sys", key)
	err := p.NS.Do(func() error {
		if value != "" {
			return os.WriteFile(path, []byte(value), 0)
		}
		b, err := os.ReadFile(path)
		got = strings.TrimSpace(string(b))
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

func (p prepared) run(env ...string) agent.Result {
	p.t.Helper()
	r, err := p.Exec(agent.Cmd{Argv: []string{"./aws-vpc-cni-init"}, Dir: p.dir, Env: append(env, "HOST_CNI_BIN_PATH="+p.bin)}) // if a variable is set twice, the first counts
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// TestInit: the init container copies the files beside it and makes the settings that its
// environment asks for, and no others.
func TestInit(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	for name, row := range map[string]struct {
		env  []string
		want []string // in the order of keys
	}{
		"IPv4":                {nil, []string{"2", "1", "0", "0", "0"}},
		"early demux off":     {[]string{"DISABLE_TCP_EARLY_DEMUX=true"}, []string{"2", "0", "0", "0", "0"}},
		"IPv6 egress":         {[]string{"ENABLE_V6_EGRESS=true"}, []string{"2", "1", "2", "1", "0"}},
		"IPv6":                {[]string{"ENABLE_IPv6=true"}, []string{"2", "1", "2", "1", "0"}},
		"not a bool is false": {[]string{"ENABLE_IPv6=yes", "DISABLE_TCP_EARLY_DEMUX=yes"}, []string{"2", "1", "0", "0", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := *l
			here.t = t
			p := here.prepared()
			if name == "IPv6" { // as on nodes without IPv6
				p.sysctl("net/ipv6/conf/all/disable_ipv6", "1")
			}
			for range 2 { // the second changes nothing
				r := p.run(row.env...)
				for _, line := range []string{"Found primaryMAC ", "Found primaryIF ", "Updated net/ipv4/conf/", "CNI init container done"} {
					if r.Code != 0 || !strings.Contains(string(r.Stderr), line) {
						t.Fatalf("exit status %d, want 0 and %q:\n%s", r.Code, line, r.Stderr)
					}
				}
			}
			for i, key := range p.keys() {
				if got := p.sysctl(key, ""); got != row.want[i] {
					t.Errorf("%s = %s, want %s", key, got, row.want[i])
				}
			}
			p.installed(map[string]string{"portmap": "-rwxr-xr-x a plugin", "LICENSE": "-rw-r--r-- a text"})
		})
	}
}

// installed compares a directory's files and their modes.
func (p prepared) installed(want map[string]string) {
	p.t.Helper()
	entries, err := os.ReadDir(p.bin)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			p.t.Fatal(err)
		}
		if got := info.Mode().String() + " " + text(p.t, filepath.Join(p.bin, e.Name())); got != want[e.Name()] {
			p.t.Errorf("%s is %q, want %q", e.Name(), got, want[e.Name()])
		}
		delete(want, e.Name())
	}
	for name := range want {
		p.t.Errorf("%s is not there", name)
	}
}

// TestInit_Fails provokes each error that ends the init container with status 1.
func TestInit_Fails(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	for _, row := range []struct {
		name   string
		env    []string
		before func(prepared)
		says   string
	}{
		{"no directory", []string{"HOST_CNI_BIN_PATH=/nowhere"}, nil, "Failed to install binaries: install /nowhere/LICENSE: "},
		{"no metadata", nil, func(p prepared) {
			p.world.SetIMDSFaults(func(path string, _ int) int {
				if path == "meta-data/mac" {
					return 404
				}
				return 0
			})
		}, "Failed to get primary IF: read metadata meta-data/mac: not there; instance metadata (IMDSv2) must be enabled"},
	} {
		t.Run(row.name, func(t *testing.T) {
			here := *l
			here.t = t
			p := here.prepared()
			if row.before != nil {
				row.before(p)
			}
			r := p.run(row.env...)
			if r.Code != 1 || !strings.Contains(string(r.Stderr), row.says) || strings.Contains(string(r.Stderr), "done") {
				t.Errorf("exit status %d, want %q in:\n%s", r.Code, row.says, r.Stderr)
			}
			l.world.SetIMDSFaults(nil)
		})
	}
}

// TestInit_AsksAgain: the init container retries, as the metadata service may start after it.
func TestInit_AsksAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	p := l.prepared()
	for _, row := range []struct{ failures, code int }{{9, 0}, {10, 1}} {
		l.world.SetIMDSFaults(func(path string, _ int) int {
			if path == "meta-data/mac" && row.failures > 0 {
				row.failures--
				return 500
			}
			return 0
		})
		if r := p.run(); r.Code != row.code {
			t.Errorf("exit status %d, want %d:\n%s", r.Code, row.code, r.Stderr)
		}
	}
}
