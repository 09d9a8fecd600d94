package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cnictl/testenv"
)

// portmapBed returns our portmap and the reference plugin, in one directory as the init
// container leaves them.
func portmapBed(t *testing.T) (ours, reference string) {
	t.Helper()
	bin, dir := os.Getenv("CNI_TEST_BIN"), t.TempDir()
	if bin == "" {
		testenv.Missing(t, "binaries", "needs CNI_TEST_BIN, a directory of built programs", "make test LAYERS=binary")
	}
	for from, to := range map[string]string{"portmap": "portmap", "reference/portmap": "portmap.reference"} {
		program, err := os.ReadFile(filepath.Join(bin, from))
		if err == nil {
			syscall.ForkLock.RLock() // a child would keep it open for writing, and then it cannot be run
			err = os.WriteFile(filepath.Join(dir, to), program, 0o755)
			syscall.ForkLock.RUnlock()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "portmap"), filepath.Join(dir, "portmap.reference")
}

// runPlugin runs a plugin on its own and returns what it printed, and whether it succeeded.
func runPlugin(t *testing.T, program, stdin string, env ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = strings.NewReader(stdin), &out, &said, append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), said.String(), err == nil
}

// everyPortmapRun is set at night; for every commit TestPortmap_AsTheReference tries parameters that
// are wrong or missing with one input.
var everyPortmapRun bool

// TestPortmap_AsTheReference: with and without host ports, for every verb and version, and for
// invalid input, portmap prints the same as the reference plugin.
func TestPortmap_AsTheReference(t *testing.T) {
	t.Parallel()
	testenv.RequireRoot(t)
	ours, reference := portmapBed(t)
	result := func(version string) string {
		switch version {
		case "0.1.0", "0.2.0":
			return `{"cniVersion":"` + version + `","ip4":{"ip":"10.0.0.7/32"},"dns":{}}`
		case "1.0.0", "1.1.0":
			return `{"cniVersion":"` + version + `","interfaces":[{"name":"eni1","mac":"","sandbox":""},{"name":"eth0","mac":"2","sandbox":"/n"}],"ips":[{"address":"10.0.0.7/32","interface":1}],"routes":[{"dst":"0.0.0.0/0","gw":"10.0.0.1"}],"dns":{"nameservers":["10.0.0.2"]}}`
		}
		return `{"cniVersion":"` + version + `","interfaces":[{"name":"eni1"},{"name":"eth0","mac":"2","sandbox":"/n"},{"name":"dummy1","mac":"0","sandbox":"1"}],"ips":[{"version":"4","address":"10.0.0.7/32","interface":1}],"dns":{}}`
	}
	rows := map[string]string{
		"text":             `{`,
		"no name":          `{"cniVersion":"0.4.0"}`,
		"no result":        `{"cniVersion":"0.4.0","name":"aws-cni","type":"portmap"}`,
		"no host port":     `{"cniVersion":"0.4.0","name":"aws-cni","runtimeConfig":{"portMappings":[{"containerPort":80}]},"prevResult":` + result("0.4.0") + `}`,
		"another version":  `{"cniVersion":"9.0.0","name":"aws-cni","runtimeConfig":{},"prevResult":` + result("0.4.0") + `}`,
		"another result":   `{"cniVersion":"1.0.0","name":"aws-cni","runtimeConfig":{},"prevResult":` + result("0.4.0") + `}`,
		"unusable address": `{"cniVersion":"0.4.0","name":"aws-cni","prevResult":{"cniVersion":"0.4.0","ips":[{"version":"4","address":"nowhere"}]}}`,
		"unusable setting": `{"cniVersion":"0.4.0","name":"aws-cni","markMasqBit":40,"prevResult":` + result("0.4.0") + `}`,
	}
	for _, v := range []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		rows["idle "+v] = fmt.Sprintf(`{"cniVersion":%q,"name":"aws-cni","type":"portmap","snat":true,"capabilities":{"portMappings":true},"runtimeConfig":{},"prevResult":%s}`, v, result(v))
	}
	for name, stdin := range rows {
		for _, command := range []string{"ADD", "DEL", "CHECK", "STATUS", "VERSION", "NONE", ""} {
			env := []string{"CNI_COMMAND=" + command, "CNI_CONTAINERID=abc", "CNI_IFNAME=eth0", "CNI_NETNS=/proc/1/ns/net", "CNI_PATH=/none", "CNI_NETNS_OVERRIDE=1"}
			runs := [][]string{env}
			if everyPortmapRun || name == "idle 1.1.0" {
				runs = append(runs, append(env[:len(env):len(env)], "CNI_CONTAINERID="), append(env[:len(env):len(env)], "CNI_IFNAME=a/b"), append(env[:len(env):len(env)], "CNI_NETNS="))
			}
			for _, e := range runs {
				wantOut, wantErr, want := runPlugin(t, reference, stdin, e...)
				gotOut, gotErr, got := runPlugin(t, ours, stdin, e...)
				if gotOut != wantOut || gotErr != wantErr || got != want {
					t.Errorf("%s %q %v:\n%s%s(%t)\nreference:\n%s%s(%t)", name, command, e[len(e)-1], gotOut, gotErr, got, wantOut, wantErr, want)
				}
			}
		}
	}
}

// TestPortmap_Alone: without the reference plugin beside it portmap serves pods without a host
// port, and for others reports what is missing.
func TestPortmap_Alone(t *testing.T) {
	t.Parallel()
	testenv.RequireRoot(t)
	ours, reference := portmapBed(t)
	if err := os.Remove(reference); err != nil {
		t.Fatal(err)
	}
	const conf = `{"cniVersion":"1.0.0","name":"aws-cni","runtimeConfig":{"portMappings":%s},"prevResult":{"cniVersion":"1.0.0"}}`
	env := []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=abc", "CNI_IFNAME=eth0", "CNI_NETNS=/proc/1/ns/net", "CNI_PATH=/none", "CNI_NETNS_OVERRIDE=1"}
	if out, _, ok := runPlugin(t, ours, fmt.Sprintf(conf, "[]"), env...); !ok {
		t.Errorf("a pod without host ports: %s", out)
	}
	out, _, ok := runPlugin(t, ours, fmt.Sprintf(conf, `[{"hostPort":1,"containerPort":1}]`), env...)
	var said struct {
		Code int
		Msg  string
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || ok || said.Code != 999 || !strings.Contains(said.Msg, reference) {
		t.Errorf("a pod with a host port: %s (%v)", out, err)
	}
}
