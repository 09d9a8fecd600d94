package kube

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnictl/daemon/cluster"
	"cnictl/testenv/kube/kubeapi"
)

// metered counts an answer's bytes.
type metered struct {
	io.ReadCloser
	n *counted
}

func (m metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.n.bytes.Add(int64(n))
	return n, err
}

// TestLargeCluster: what is read and kept does not grow with the cluster.
func TestLargeCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("skip: -short: makes 7,000 objects")
	}
	const clusterNodes, clusterPods, own = 5000, 2000, 20
	s := kubeapi.Start(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	s.CreateNode(t, name)
	fill(clusterNodes, func(i int) { s.CreateNode(t, fmt.Sprint("other-", i)) })
	fill(clusterPods, func(i int) { s.CreatePod(t, name, fmt.Sprint("elsewhere-", i), fmt.Sprint("other-", i)) })
	// Each has an annotation and a variable that the daemon does not use.
	fill(own, func(i int) {
		s.CreatePod(t, name, fmt.Sprint("own-", i), name, func(p *corev1.Pod) {
			p.Annotations = map[string]string{"fat": fmt.Sprintf("%010000d", i)}
		})
	})
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	n := &counted{}
	next := c.rest.Client.Transport
	c.rest.Client.Transport = tripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil {
			resp.Body = metered{resp.Body, n}
		}
		return resp, err
	})
	run(t, c)
	synced(t, c)
	expected(t, c, own)
	if pods, nodes := c.pods.size(), c.nodes.size(); pods != own || nodes != 1 {
		t.Errorf("%d pods and %d nodes are stored, want %d and 1", pods, nodes, own)
	}
	// The node's own pods have 12 KB each; all of the cluster's objects would be megabytes.
	if got := n.bytes.Load(); got > own*16_000+64_000 {
		t.Errorf("%d bytes were read", got)
	}
	kept := 0
	c.pods.count(func(p cluster.Pod) bool {
		kept += len(p.Namespace) + len(p.Name) + len(p.UID) + len(p.NodeName) + len(p.PodENI) + len(p.PodIPs)
		return true
	})
	if kept > own*300 {
		t.Errorf("%d bytes are kept of %d pods", kept, own)
	}
}

// fill makes n objects concurrently.
func fill(n int, make func(int)) {
	var group sync.WaitGroup
	next := 0
	var mu sync.Mutex
	for range 8 {
		group.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n {
					return
				}
				make(i)
			}
		})
	}
	group.Wait()
}
