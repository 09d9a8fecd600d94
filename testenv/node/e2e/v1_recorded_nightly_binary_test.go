//go:build nightly

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// This file compares a running daemon's responses under upstream's paths with the recorded ones,
// byte for byte. Nothing is decoded, so a moved member, another space or line feed fails.

// plainText is Go's default Content-Type: upstream's handlers set none.
const plainText = "text/plain; charset=utf-8"

// readableNode returns the environment for a daemon with an API server that has its Node, as the
// recorded daemon had. The Node is cordoned, so the pool does not change.
func (l *lab) readableNode(n *node.Node) map[string]string {
	l.t.Helper()
	kubeconfig := filepath.Join(n.Dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
`), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return map[string]string{"KUBECONFIG": kubeconfig, "CLUSTER_ENDPOINT": l.apiServer(n).url, "MY_NODE_NAME": "worker-7"}
}

// nodeRead waits until the daemon has read its Node.
func (l *lab) nodeRead(n *node.Node) {
	l.t.Helper()
	testenv.Eventually(l.t, "the daemon has read its Node", func() bool {
		var s introspect.Summary
		l.get(n, introspect.PathSummary, &s)
		return s.Cordoned != nil
	})
}

// answers compares one response with the recorded one.
func (l *lab) answers(d *door, path string, status int, want string) {
	l.t.Helper()
	got := l.ask(d, path, nil)
	if got.status != status || got.header.Get("Content-Type") != plainText {
		l.t.Errorf("%s: status %d, type %q, want %d, %q", path, got.status, got.header.Get("Content-Type"), status, plainText)
	}
	if diff := cmp.Diff(want, string(got.body)); diff != "" {
		l.t.Errorf("%s (-recorded +ours):\n%s", path, diff)
	}
}

// TestV1_RecordedBytes: once our daemon has taken over the recorded node, it answers as the
// recorded daemon did, including ids, order and times.
func TestV1_RecordedBytes(t *testing.T) {
	t.Parallel()
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			r := readRecording(t, mode)
			l, n := r.boot(t)
			r.restore(l, n)
			env := l.readableNode(n)
			for name, value := range modes[mode] {
				env[name] = value
			}
			env["WARM_IP_TARGET"] = "1" // the setting in the recorded log
			l.start(n, env)
			l.nodeRead(n)
			l.settled(n)
			_, d := l.introspection(n)

			said := func(name string) string { return string(r.read(name)) }
			l.answers(d, introspect.PathENIs, http.StatusOK, said("v1-enis.three-pods.json"))
			l.answers(d, introspect.PathNetworkEnv, http.StatusOK, said("v1-networkutils-env-settings.three-pods.json"))
			l.answers(d, introspect.PathIPAMEnv, http.StatusOK, said("v1-ipamd-env-settings.three-pods.json"))
			status := strings.TrimSpace(said("v1-eni-configs.three-pods.status"))
			if status != fmt.Sprint(http.StatusOK) {
				t.Fatalf("recorded status %q", status)
			}
			l.answers(d, introspect.PathENIConfigs, http.StatusOK, said("v1-eni-configs.three-pods.txt"))
			for _, path := range []string{"/", "/v1/pods", "/v1/env-settings", "/metrics", "/v1/enis/", "/V1/ENIS"} {
				l.commands(d, path, said("unknown-path.three-pods.json"))
			}
		})
	}
}

// commands compares the response to an unknown path with the recorded one. Upstream lists its
// paths in a different order in each process; our additional paths follow them.
func (l *lab) commands(d *door, path, recorded string) {
	l.t.Helper()
	list := func(text string) []string {
		var c introspect.Commands
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			l.t.Fatalf("%s: %v: %s", path, err, text)
		}
		return c.AvailableCommands
	}
	want := list(recorded)
	got := l.ask(d, path, nil)
	theirs := list(string(got.body))
	if len(theirs) < len(want) {
		l.t.Fatalf("%s: %s", path, got.body)
	}
	theirs = theirs[:len(want)]
	for _, p := range want {
		if !slices.Contains(theirs, p) {
			l.t.Errorf("%s: %s is not among the first %d of %s", path, p, len(want), got.body)
		}
	}
	// The rest of the bytes: both lists are printed in the same way.
	printed := `{"AvailableCommands":["` + strings.Join(list(string(got.body)), `","`) + `"]}`
	if recorded != `{"AvailableCommands":["`+strings.Join(want, `","`)+`"]}` || string(got.body) != printed ||
		got.status != http.StatusOK || got.header.Get("Content-Type") != plainText {
		l.t.Errorf("%s: status %d, type %q, %s", path, got.status, got.header.Get("Content-Type"), got.body)
	}
}

// TestV1_EverySettingChanged: each setting is shown in its own place. Values differ
// from the defaults and from each other; any two of the three booleans differ here
// or in the recordings.
func TestV1_EverySettingChanged(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", map[string]string{
		"AWS_EXTERNAL_SERVICE_CIDRS": "10.8.0.0/16, 203.0.113.7/32", "AWS_VPC_CNI_NODE_PORT_SUPPORT": "false",
		"AWS_VPC_ENI_MTU": "1500", "AWS_VPC_K8S_CNI_CONNMARK": "64", "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": "10.9.0.0/16",
		"AWS_VPC_K8S_CNI_EXTERNALSNAT": "true", "AWS_VPC_K8S_CNI_RANDOMIZESNAT": "hashrandom", "AWS_VPC_K8S_CNI_VETHPREFIX": "pod",
		"AWS_MANAGE_ENIS_NON_SCHEDULABLE": "true", "ENABLE_SUBNET_DISCOVERY": "false", "WARM_ENI_TARGET": "3", "WARM_IP_TARGET": "2",
	})
	_, d := l.introspection(n)
	l.answers(d, introspect.PathNetworkEnv, http.StatusOK, `{"AWS_EXTERNAL_SERVICE_CIDRS":["10.8.0.0/16","203.0.113.7/32"],`+
		`"AWS_VPC_CNI_NODE_PORT_SUPPORT":false,"AWS_VPC_ENI_MTU":1500,"AWS_VPC_K8S_CNI_CONNMARK":64,`+
		`"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS":["10.9.0.0/16"],"AWS_VPC_K8S_CNI_EXTERNALSNAT":true,`+
		`"AWS_VPC_K8S_CNI_RANDOMIZESNAT":1,"AWS_VPC_K8S_CNI_VETHPREFIX":"pod"}`)
	l.answers(d, introspect.PathIPAMEnv, http.StatusOK, `{"AWS_MANAGE_ENIS_NON_SCHEDULABLE":true,`+
		`"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":false,"ENABLE_SUBNET_DISCOVERY":false,"WARM_ENI_TARGET":3,"WARM_IP_TARGET":2}`)
	// Without an API server, the Node's ENIConfig is unknown.
	l.answers(d, introspect.PathENIConfigs, http.StatusNotFound, "Not Found\n")
}
