package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// home writes files below a home directory and returns an environment with that home.
func home(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{"HOME": dir}
}

// TestSettings_Precedence: a flag overrides the environment, which overrides the file,
// which overrides the default.
func TestSettings_Precedence(t *testing.T) {
	t.Parallel()
	vars := home(t, map[string]string{".config/cnictl/config.yaml": "concurrency: 5\ninterval: 7s\nnode-timeout: 9s\nnodes: [a, b]\nno-headers: true\n"})
	vars["CNICTL_CONCURRENCY"], vars["CNICTL_INTERVAL"] = "6", "8s"
	g, err := parse(vars, "--concurrency=7")
	if err != nil {
		t.Fatal(err)
	}
	got := []any{g.Concurrency, g.Interval.String(), g.NodeTimeout.String(), g.Timeout.String(), strings.Join(g.Nodes, " "), g.NoHeaders}
	if diff := cmp.Diff([]any{7, "8s", "9s", "0s", "a b", true}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSettings_XDG(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tt := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"XDG_CONFIG_HOME": dir, "HOME": "/h"}, dir + "/cnictl/config.yaml"},
		{map[string]string{"XDG_CONFIG_HOME": "not/absolute", "HOME": "/h"}, "/h/.config/cnictl/config.yaml"},
		{map[string]string{"HOME": "/h"}, "/h/.config/cnictl/config.yaml"},
		{nil, ""},
	} {
		if got := (&Factory{Env: env(tt.vars)}).ConfigFile(); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.vars, got, tt.want)
		}
	}
}

func TestSettings_Refused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"token: abc":                         "token is a credential, which is not read from this file",
		"nope: 1":                            `unknown setting "nope"`,
		"help: true":                         `unknown setting "help"`,
		"concurrency: {a: 1}":                "concurrency: expected a string, a number",
		"concurrency: many":                  "concurrency: invalid value many",
		"- a":                                "it is not a list of NAME: VALUE",
		"interval: 5s\ninterval: 6s":         "it is not a list of NAME: VALUE",
		"keys: x":                            "keys: expected a list of ACTION: KEY",
		"a: \x00":                            "it is not a text file",
		strings.Repeat("# x\n", 64<<8) + "#": "more than 65536 bytes",
		"concurrency: 999":                   "--concurrency=999: must be 1 to 256",
	} {
		_, err := parse(home(t, map[string]string{".config/cnictl/config.yaml": text}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func TestSettings_Keys(t *testing.T) {
	t.Parallel()
	s, err := parseSettings([]byte("keys:\n  filter: ctrl+f\n  quit: [q, ctrl+q]\n"), pflag.NewFlagSet("", pflag.ContinueOnError))
	if diff := cmp.Diff(map[string][]string{"filter": {"ctrl+f"}, "quit": {"q", "ctrl+q"}}, s.keys); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// FuzzSettings: accepted files have only existing settings, with values that a flag would
// accept, and no credentials.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{"interval: 5s\n", "keys: {a: [b]}", "nodes: [a, 1, true]", "token: x", "&a [*a]", "a: &x [1]\nb: *x", "{}", ""} {
		f.Add([]byte(s))
	}
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(Globals).register(known, "")
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseSettings(text, known)
		if err != nil {
			if s.flags != nil || s.keys != nil {
				t.Fatalf("an error and settings: %v", s)
			}
			return
		}
		for name := range s.flags {
			if known.Lookup(name) == nil || Secret(name) {
				t.Fatalf("%q is taken", name)
			}
		}
	})
}
