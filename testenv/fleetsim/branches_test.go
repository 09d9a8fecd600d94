package fleetsim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnictl/daemon/cluster"
)

// TestBranches: each branch ENI is in cooldown or has a pod whose annotation a node's daemon
// accepts; some pods wait.
func TestBranches(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := New(t, Options{Nodes: 60, Seed: 3, Now: c.Now, Churn: 5 * time.Second})
	cs := clientset(t, s.RESTConfig())
	waiting, cooling, gone, before := 0, 0, 0, map[string]bool{}
	for turn := range 3 {
		now := map[string]bool{}
		for _, n := range s.nodes {
			if !n.profile.podENI || n.has(Fargate) || n.has(Windows) || !n.hasPod() {
				continue
			}
			pods, err := cs.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.name})
			if err != nil {
				t.Fatal(err)
			}
			with, vlans := 0, map[int]bool{}
			for _, p := range pods.Items {
				limits := p.Spec.Containers[0].Resources.Limits
				if q, asks := limits[podENIName]; !asks {
					continue
				} else if q.Value() != 1 {
					t.Errorf("%s requests %v branch ENIs", p.Name, q)
				}
				now[string(p.UID)] = true
				annotation := p.Annotations[podENIName]
				if annotation == "" {
					waiting++
					if p.Status.Phase != "Pending" {
						t.Errorf("%s waits and is %s", p.Name, p.Status.Phase)
					}
					continue
				}
				with++
				b, err := cluster.ParseBranch(annotation, false)
				if err != nil || vlans[b.VLAN] || b.ENI == "" || p.Status.PodIP != b.Address.String() {
					t.Errorf("%s: %+v, %v, status %s", p.Name, b, err, p.Status.PodIP)
				}
				vlans[b.VLAN] = true
			}
			var used int
			n.withWorld(func(w *world) {
				used = *w.summary().Trunk.BranchUsed
				cooling += len(w.branchPods.cooling)
				if rest := used - with; rest != len(w.branchPods.cooling) || used > n.profile.limits.BranchENIs {
					t.Errorf("%s: %d in use, %d pods have one, %d cool", n.name, used, with, len(w.branchPods.cooling))
				}
			})
		}
		for uid := range before {
			if !now[uid] {
				gone++
			}
		}
		if before = now; turn == 0 && len(now) == 0 {
			t.Fatal("no pod requests a branch ENI")
		}
		c.add(10 * time.Minute)
	}
	if waiting == 0 || cooling == 0 || gone == 0 {
		t.Errorf("%d pods waited, %d branches cooled, %d pods have gone", waiting, cooling, gone)
	}
}
