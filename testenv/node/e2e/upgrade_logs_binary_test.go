package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// daemonLog returns the complete log of a node's daemons.
func daemonLog(t *testing.T, n *node.Node) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(n.Dir, "log", "ipamd.log"))
	if err != nil {
		t.Fatal(err)
	}
	return lines(string(data))
}

// orphan creates an ENI like one that the node's daemon could have leaked.
func (l *lab) orphan(n *node.Node) fakeaws.ENI {
	l.t.Helper()
	e, err := l.world.CreateENI(fakeaws.ENISpec{
		SubnetID: l.subnet.ID, Description: "aws-K8S-" + n.InstanceID, Tags: map[string]string{"node.k8s.amazonaws.com/instance_id": n.InstanceID},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return e
}

// said reports whether the log of a node's daemons contains a text.
func (l *lab) said(n *node.Node, text string) bool {
	l.t.Helper()
	return strings.Contains(strings.Join(daemonLog(l.t, n), "\n"), text)
}

// says waits until the log of a node's daemons contains a text.
func (l *lab) says(n *node.Node, text string) {
	l.t.Helper()
	l.within(time.Minute, "the log has "+text, func() bool { return l.said(n, text) })
}

// refusingAPI writes a kubeconfig for an API server that refuses every connection.
func (l *lab) refusingAPI(n *node.Node) (path string) {
	l.t.Helper()
	path = filepath.Join(n.Dir, "kubeconfig")
	if err := os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: from-the-file}}]
`), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}
