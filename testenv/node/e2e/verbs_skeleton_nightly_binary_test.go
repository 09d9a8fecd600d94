//go:build nightly

package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/testenv/node"
)

// outcome is what a runtime sees of a failed plugin, without the details: ours contain more than
// the library's.
type outcome struct {
	Exit int
	Code int
	Msg  string
}

// outcomeOf runs a plugin and returns its outcome and its standard output.
func outcomeOf(t *testing.T, bin string, env []string, stdin string) (o outcome, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin)
	var stdout bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout = env, strings.NewReader(stdin), &stdout
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		o.Exit = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stdout.Bytes(), &o); err != nil && o.Exit != 0 {
		t.Errorf("%v: stdout of a failure: %s", env, stdout.String())
	}
	return o, stdout.String()
}

var offset = regexp.MustCompile(` at offset [0-9]+$`)

// TestVerbs_AsTheSkeleton: whatever the CNI library's skeleton, which upstream uses, refuses before
// it calls a plugin's code, our plugin refuses with the same code, message and exit status.
// Commands that the skeleton accepts are not run here.
func TestVerbs_AsTheSkeleton(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("CNI_TEST_BIN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "bin")
	}
	ours := filepath.Join(dir, node.PluginBinary)
	skeleton, err := buildChained()
	if err != nil {
		t.Fatal(err)
	}
	full := map[string]string{"CNI_CONTAINERID": "abc", "CNI_NETNS": "/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": "/opt/cni/bin"}
	environments := map[string]map[string]string{
		"full": {}, "no container": {"CNI_CONTAINERID": ""}, "no namespace": {"CNI_NETNS": ""}, "no interface": {"CNI_IFNAME": ""},
		"no path": {"CNI_PATH": ""}, "nothing": {"CNI_CONTAINERID": "", "CNI_NETNS": "", "CNI_IFNAME": "", "CNI_PATH": ""},
		"odd container": {"CNI_CONTAINERID": "a/b"}, "odd interface": {"CNI_IFNAME": "a/b"}, "long interface": {"CNI_IFNAME": strings.Repeat("a", 16)},
		"both odd, no path": {"CNI_CONTAINERID": "-a", "CNI_IFNAME": "a b", "CNI_PATH": ""},
	}
	at := func(version string) string { return `{"name":"aws-cni","cniVersion":"` + version + `"}` }
	inputs := []string{
		``, `{"name":"a/b"}`, at("0.5.0"), at("1.1.0"),
		`{`, `null`, `[]`, `"x"`, `7`, `{"name":1}`, `{"name":null}`, `{}`, `{"name":""}`, `{"name":"a","cniVersion":1}`, `{"name":"a"} x`,
		"\x00", `{"name":"a","name":"b/"}`, `{"NAME":"a/b"}`, at("x"), at("1"), at("2.0.0"), at("1.1.0.1"), at("-1.0.0"), at("1.1.1"), at("0.9.9"),
		at(" 1.0.0"), at(""), at("0.1.0"), at("0.3.1"), at("0.4.0"), at("1.0.0"),
	}
	compared := 0
	for _, command := range []string{"ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION", "add", "GET", "-", " "} {
		for name, change := range environments {
			stdins := inputs
			if name != "full" { // the environment is checked first
				stdins = inputs[:4]
			}
			for _, stdin := range stdins {
				env := []string{"CNI_COMMAND=" + command}
				for key, value := range full {
					if v, ok := change[key]; ok {
						value = v
					}
					env = append(env, key+"="+value)
				}
				if command == "-" {
					env = env[1:] // without CNI_COMMAND
				}
				want, text := outcomeOf(t, skeleton, append(env, "SKELETON=1"), stdin)
				exact := command == "VERSION" || command == "-"
				if want.Exit == 0 && !exact || want.Msg == "" && !exact || command == "ADD" && strings.Contains(want.Msg, "Statfs") {
					continue // the plugin's own code decides
				}
				got, ourText := outcomeOf(t, ours, env, stdin)
				// If a configuration is not JSON, or not one for CNI, the skeleton repeats the words of
				// encoding/json, which no program matches; ours give the offset of the mistake.
				for _, prefix := range []string{"error unmarshall network config: ", "decoding version from network config: "} {
					if got.Msg != want.Msg && strings.HasPrefix(want.Msg, prefix) && strings.HasPrefix(got.Msg, prefix) && offset.MatchString(got.Msg) {
						got.Msg, ourText = want.Msg, text
					}
				}
				if got != want || exact && ourText != text {
					t.Errorf("%s, %s, %s (-skeleton +ours):\n%s%s", command, name, stdin, cmp.Diff(want, got), cmp.Diff(text, ourText))
				}
				compared++
			}
		}
	}
	t.Logf("%d runs compared", compared)
	if compared < 400 {
		t.Errorf("only %d runs were compared", compared)
	}
}
