package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node/agent"
)

// hostileNames are names that Kubernetes refuses but the daemon's sockets accept.
var hostileNames = map[string]string{
	"a line of the log":  "p\"}\n{\"level\":\"error\",\"msg\":\"forged line\"",
	"a path":             "../../../../../etc/cron.d/x",
	"another API object": "x/../../kube-system/secrets",
	"an escape sequence": "p\x1b]0;owned\a\x1b[31m",
	"no UTF-8":           "p\xff\xfe\x80",
	"bidirectional":      "p\u202egpj.exe",
	"a NUL":              "p\x00q",
	"very long":          strings.Repeat("p", 20_000),
	"a label of metrics": `p"} 1` + "\nawscni_forged 1",
	"empty":              "",
}

// TestHostileNames sends requests with names that no pod can have, from a program that is not
// the plugin. Each is answered, the daemon's files and outputs stay valid, and the next
// daemon can read them.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		env  map[string]string
	}{
		{"pool", nil},
		{"looked up in the API server", map[string]string{"ANNOTATE_POD_IP": "true", "CNI_ADD_WAIT": "1s"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, fakeaws.Options{})
			m := c.join(fakeaws.InstanceSpec{Type: "m5.4xlarge"})
			env := m.env("aws-node-annotate", row.env)
			socket := filepath.Join(m.Dir, "i.sock")
			env["INTROSPECTION_BIND_ADDRESS"] = "unix:" + socket
			c.start(m.Node, env)
			var requests, given []*cniwire.AddRequest
			for _, name := range hostileNames {
				for _, r := range []*cniwire.AddRequest{sandbox(len(requests)), sandbox(len(requests) + 1)} {
					if r.PodName = name; len(requests)%2 == 1 {
						r.PodName, r.PodNamespace = "p", name
					}
					requests = append(requests, r)
				}
			}
			replies := make([]*cniwire.AddReply, len(requests))
			each(len(requests), 5, func(i int) { replies[i] = c.wireAdd(m.Node, requests[i]) }) // a look-up takes seconds
			if t.Failed() {
				return
			}
			for i, reply := range replies {
				what := requests[i].PodNamespace + "/" + requests[i].PodName
				if !reply.Success && (reply.Cause == "" || reply.Detail == "") {
					t.Errorf("%.60q: failed without a reason: %+v", what, reply)
				}
				if !utf8.ValidString(reply.Detail) || len(reply.Detail) > 4096 {
					t.Errorf("%.60q: detail of %d bytes: %.300q", what, len(reply.Detail), reply.Detail)
				}
				if reply.Success {
					given = append(given, requests[i])
				}
			}
			m.unharmed(t, socket)
			pid := m.DaemonPID()
			c.kill(m.Node, syscall.SIGTERM)
			if pid == 0 {
				t.Error("the daemon ended")
			}
			c.start(m.Node, env)
			m.unharmed(t, socket)
			for _, r := range given {
				if reply := c.wireDel(m.Node, r); !reply.Success {
					t.Errorf("DEL of %.60q: %+v", r.PodName, reply)
				}
			}
			if reply := m.addMore(); !reply.Success {
				t.Errorf("a pod: %+v", reply)
			}
		})
	}
}

// unharmed checks every place that a name could have reached.
func (m *member) unharmed(t *testing.T, socket string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(m.Dir, "log", "ipamd.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if !strings.HasSuffix(line, "\n") {
			break // the daemon is still writing this line
		}
		var entry struct{ Level, Msg, Caller string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Caller == "" || entry.Msg == "forged line" {
			t.Errorf("log line: %v: %.300q", err, line)
		}
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) || len(line) > 128<<10 {
			t.Errorf("log line of %d bytes: %.300q", len(line), line)
		}
	}
	testenv.Eventually(m.c.t, "introspection is served, which begins beside the RPCs", func() bool {
		conn, err := m.Dial("unix", socket, testenv.Left(t))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	door := m.c.door(m.Node, "unix", socket)
	for _, p := range []string{"/v1/enis", introspect.PathSummary, introspect.PathEvents, introspect.PathFailures, introspect.PathLogs} {
		if body := m.c.ask(door, p, nil).body; !json.Valid(body) {
			t.Errorf("%s is no JSON: %.300q", p, body)
		}
	}
	if text := string(m.c.ask(m.c.door(m.Node, "tcp", "127.0.0.1:61678"), "/metrics", nil).body); strings.Contains(text, "forged") {
		t.Error("a name became a metric")
	}
	for _, command := range []string{"ips", "enis", "show"} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(m.c.binaries, "cnictl"), "node", command, "worker", "--targets", "worker=unix:"+socket)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("cnictl %s: %v: %.300s", command, err, out)
		}
		if strings.ContainsFunc(strings.ReplaceAll(string(out), "\n", ""), func(r rune) bool { return unicode.IsControl(r) || r == '\u202e' }) {
			t.Errorf("cnictl %s prints control characters: %.300q", command, out)
		}
	}
	r, err := m.Exec(agent.Cmd{Argv: []string{"/bin/ls", "/run/aws-node"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(r.Stdout)) {
		if !slices.Contains([]string{"cni.sock", "ipamd.sock", "ipam.json", "ipam-subnets.json"}, name) {
			t.Errorf("a name became the file %q", name)
		}
	}
}

// TestHostileObjects writes huge objects into the cluster: the error of a pod that needs them
// is short, and the daemon's memory grows only a little.
func TestHostileObjects(t *testing.T) {
	t.Parallel()
	c := newCluster(t, fakeaws.Options{})
	groups := make([]string, 10_000)
	for i := range groups {
		groups[i] = fmt.Sprintf("sg-%017x", i)
	}
	c.eniConfig(c.namespace+"-many", c.subnet.ID, groups...)
	huge := strings.Repeat("a", 200<<10) // the API server accepts 256 KiB of annotations
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"}, func(n *corev1.Node) { n.Annotations = map[string]string{"k8s.amazonaws.com/eniConfig": huge} })
	m.start(map[string]string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true", "CNI_ADD_WAIT": "2s"})
	short := func(what string, r *cniwire.AddReply) {
		t.Helper()
		if r.Success || r.Cause != "eniconfig-missing" || len(r.Detail) > 1024 {
			t.Errorf("%s: success %v, cause %s, detail of %d bytes: %.400s", what, r.Success, r.Cause, len(r.Detail), r.Detail)
		}
	}
	short("a name of 200 KiB", m.addMore())

	objects := c.objects(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	o, err := objects.Get(t.Context(), m.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(o.Object, c.namespace+"-many", "metadata", "annotations", "k8s.amazonaws.com/eniConfig"); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(c.t, "the other ENIConfig is used", func() bool {
		r := m.addMore()
		short("an ENIConfig of 10,000 groups", r)
		return strings.Contains(r.Detail, "-many")
	})
	if n := len(c.world.ENIsOf(m.InstanceID)); n != 1 {
		t.Errorf("%d ENIs were made", n-1)
	}
	for line := range strings.Lines(m.Logs()["ipamd.log"]) {
		if len(line) > 8<<10 {
			t.Errorf("log line of %d bytes: %.200s…", len(line), line)
		}
	}
}
