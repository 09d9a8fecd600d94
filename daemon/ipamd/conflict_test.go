package ipamd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/cluster"
	"cnictl/daemon/config"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/kube"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/netstate"
	"cnictl/daemon/resync"
	"cnictl/testenv"
)

// podObject is a pod of node worker as the API server shows it.
type podObject struct {
	namespace, name, annotation string
	ips                         int
	phase                       string
	second                      int // of its creation
}

// awaited is the annotation of a pod that asks for a branch ENI and has none yet.
const awaited = "awaited"

func (p podObject) json() string {
	limit := ""
	if p.annotation != "" {
		limit = `"resources":{"limits":{"vpc.amazonaws.com/pod-eni":"1"}}`
	}
	if p.annotation == awaited {
		p.annotation = ""
	}
	return fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q,"uid":"uid-%s-%s","resourceVersion":"1","creationTimestamp":"2026-11-21T14:00:%02dZ",
		"annotations":{"vpc.amazonaws.com/pod-eni":%q}},
		"spec":{"nodeName":"worker","containers":[{%s}]},"status":{"phase":%q,"podIPs":[%s]}}`,
		p.namespace, p.name, p.namespace, p.name, p.second, p.annotation, limit, p.phase, strings.TrimSuffix(strings.Repeat("{},", p.ips), ","))
}

// branchOfVLAN is an annotation whose every member follows from the VLAN ID.
func branchOfVLAN(vlan int) string {
	return fmt.Sprintf(`[{"eniId":"eni-%017x","ifAddress":"06:00:00:00:00:%02x","privateIp":"10.1.0.%d","vlanId":%d,"subnetCidr":"10.1.0.0/20"}]`,
		vlan, vlan, vlan+10, vlan)
}

// contested is a node whose pods the test decides on. Its watch never shows a change.
type contested struct {
	*asked
	mu    sync.Mutex
	pods  []podObject
	down  bool // lists are refused
	lists int
}

// newContested returns a node with the watched pods. The pool's only pod has 10.0.1.1.
func newContested(t *testing.T, pooled ipam.Pod, watched ...podObject) *contested {
	t.Helper()
	c := &contested{pods: watched}
	c.asked = newAsked(t, config.Config{PodENI: true, NodeName: "worker"}, func(_ *asked, w http.ResponseWriter, r *http.Request) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case r.URL.Query().Has("watch"):
			w.(http.Flusher).Flush()
			c.mu.Unlock()
			<-r.Context().Done()
			c.mu.Lock()
		case r.URL.Path == "/api/v1/pods" && c.down:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","status":"Failure","code":403,"reason":"Forbidden"}`)
		case r.URL.Path == "/api/v1/pods":
			c.lists++
			var items []string
			for _, p := range c.pods {
				items = append(items, p.json())
			}
			fmt.Fprintf(w, `{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(items, ","))
		case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"):
			for _, p := range c.pods {
				if strings.HasSuffix(r.URL.Path, "/"+p.namespace+"/pods/"+p.name) {
					fmt.Fprint(w, p.json())
					return true
				}
			}
			http.NotFound(w, r)
		default:
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"1"},"items":[]}`)
		}
		return true
	})
	l := newLonely(t, nil)
	trunk := ipam.ENI{
		ID: "eni-trunk", MAC: "02:00:00:00:00:02", Device: 1, Trunk: true,
		Subnet: netip.MustParsePrefix("10.0.0.0/20"), PrimaryIP: netip.MustParseAddr("10.0.0.5"),
	}
	if _, err := l.owner.keeper.Restore(time.Now(), keeper.Start{Usable: []resync.Attached{{ENI: trunk}}}); err != nil {
		t.Fatal(err)
	}
	if pooled.Name != "" {
		l.owner.keeper.Handle(time.Now(), &keeper.Add{
			Request: &cniwire.AddRequest{
				PodNamespace: pooled.Namespace, PodName: pooled.Name, ContainerID: "pooled", IfName: "eth0", NetworkName: "aws-cni",
			},
			Reply: func(*cniwire.AddReply) {},
		})
	}
	stop := make(chan struct{})
	go l.owner.run(stop)
	go l.save() // an ADD whose checkpoint is not written for seconds is undone
	t.Cleanup(func() { close(stop); <-l.owner.ended })
	c.owner, c.kubernetes.owner = l.owner, l.owner
	c.branches = &branches{kubernetes: c.kubernetes, owner: l.owner, log: c.log}
	return c
}

// watch follows the API server, and returns when the pods were listed.
func (c *contested) watch() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	seen, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		c.kubernetes.Run(ctx, kube.Changes{Pods: func() { signal(seen) }})
	}()
	c.t.Cleanup(func() { cancel(); <-ended })
	<-seen
}

// change replaces the pods, which the watch does not show, and forgets the lists.
func (c *contested) change(down bool, pods ...podObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists, c.down = 0, down
	if pods != nil {
		c.pods = pods
	}
}

// TestUndisputed: a branch pod gets the branch ENI in its annotation unless another pod has it, or
// its host link. The API server is only asked if the watch does not show that.
func TestUndisputed(t *testing.T) {
	t.Parallel()
	var (
		victim   = podObject{"shop", "db-0", branchOfVLAN(7), 1, "Running", 0}
		attacker = podObject{"evil", "m", branchOfVLAN(7), 0, "Pending", 0}
		honest   = podObject{"evil", "m", branchOfVLAN(8), 0, "Pending", 0}
		ended    = podObject{"shop", "db-0", branchOfVLAN(7), 1, "Failed", 0}
		other    = podObject{"shop", "web", "", 1, "Running", 0}
		linked   = podObject{testenv.VictimNamespace, testenv.VictimName, branchOfVLAN(9), 0, "Pending", 0}
		likewise = podObject{testenv.AttackerNamespace, testenv.AttackerName, branchOfVLAN(7), 0, "Pending", 0}
	)
	for name, row := range map[string]struct {
		pod     podObject
		watched []podObject // nil: the pods were not listed yet
		now     []podObject // nil: as watched
		down    bool
		pooled  ipam.Pod
		address string // replaces 10.1.0.x of the annotation
		cause   cause.Code
		names   string
		lists   int
	}{
		"its own branch ENI": {pod: honest, watched: []podObject{honest, victim, other}},
		"that of another pod": {
			pod: attacker, watched: []podObject{attacker, victim},
			cause: cause.BranchConflict, names: "shop/db-0", lists: 1,
		},
		"the victim's next sandbox": {
			pod: victim, watched: []podObject{attacker, victim},
			cause: cause.BranchConflict, names: "evil/m", lists: 1,
		},
		"before the victim runs": {
			pod: attacker, watched: []podObject{attacker, {"shop", "db-0", branchOfVLAN(7), 0, "Pending", 0}},
			cause: cause.BranchConflict, names: "shop/db-0", lists: 1,
		},
		"of a pod that ended": {pod: attacker, watched: []podObject{attacker, ended}},
		"the watch lags behind the victim": {
			pod: attacker, watched: []podObject{other}, now: []podObject{attacker, victim},
			cause: cause.BranchConflict, names: "shop/db-0", lists: 1,
		},
		"the watch lags behind the pod": {pod: honest, watched: []podObject{other}, now: []podObject{honest, victim}, lists: 1},
		"the watch has another annotation": {
			pod: attacker, watched: []podObject{honest, victim}, now: []podObject{attacker, victim},
			cause: cause.BranchConflict, names: "shop/db-0", lists: 1,
		},
		"the watch lags behind an end": {
			pod: attacker, watched: []podObject{attacker, victim}, now: []podObject{attacker, ended},
			lists: 1,
		},
		"the watch lags behind a deletion": {pod: attacker, watched: []podObject{attacker, victim}, now: []podObject{attacker}, lists: 1},
		"the watch lags behind a change": {
			pod: honest, watched: []podObject{honest, {"x", "x", branchOfVLAN(8), 0, "", 0}},
			now:   []podObject{honest, {"x", "x", branchOfVLAN(9), 0, "", 0}},
			lists: 1,
		},
		"after a start": {
			pod: attacker, now: []podObject{attacker, victim},
			cause: cause.BranchConflict, names: "shop/db-0", lists: 1,
		},
		"after a start, its own": {pod: honest, now: []podObject{honest, victim}, lists: 1},
		"no API server":          {pod: honest, watched: []podObject{honest, victim}, down: true},
		"no API server, another's": {
			pod: attacker, watched: []podObject{attacker, victim}, down: true,
			cause: cause.BranchConflict, names: "shop/db-0",
		},
		"no API server, and it lags behind": {
			pod: honest, watched: []podObject{other}, now: []podObject{honest},
			down: true, names: "lacks this rule",
		},
		"no API server after a start": {pod: honest, down: true, names: "lacks this rule"},
		"the address of a pod of the pool": {
			pod: honest, watched: []podObject{honest},
			pooled: ipam.Pod{Namespace: "shop", Name: "web"}, address: "10.0.1.1", cause: cause.BranchConflict, names: "shop/web",
		},
		"the link of a pod of the pool": {
			pod: likewise, watched: []podObject{likewise}, pooled: ipam.Pod{Namespace: testenv.VictimNamespace, Name: testenv.VictimName},
			cause: cause.LinkConflict, names: testenv.VictimNamespace + "/" + testenv.VictimName,
		},
		"the link of a branch pod": {
			pod: likewise, watched: []podObject{linked, likewise},
			cause: cause.LinkConflict, names: testenv.VictimNamespace + "/" + testenv.VictimName, lists: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if row.address != "" {
				row.pod.annotation = strings.Replace(row.pod.annotation, "10.1.0.18", row.address, 1)
				row.pod.annotation = strings.Replace(row.pod.annotation, "10.1.0.0/20", "10.0.0.0/20", 1)
				row.watched = []podObject{row.pod}
			}
			c := newContested(t, row.pooled, row.watched...)
			if row.watched != nil {
				c.watch()
			}
			c.change(row.down, row.now...)
			var pod cluster.Pod
			for _, from := range [][]podObject{row.watched, row.now, {row.pod}} {
				for _, p := range from {
					if p == row.pod {
						pod = podOf(t, p)
					}
				}
			}
			branch, err := cluster.ParseBranch(pod.PodENI, false)
			if err != nil {
				t.Fatal(err)
			}
			err = c.branches.undisputed(t.Context(), pod, branch)
			var failed *branchError
			if errors.As(err, &failed) != (row.cause != "") || failed != nil && failed.code != row.cause {
				t.Errorf("%v", err)
			}
			var unread *unreadError
			if read := row.names != "lacks this rule"; errors.As(err, &unread) == read {
				t.Errorf("%v", err)
			} else if err != nil && !strings.Contains(err.Error(), row.names) {
				t.Errorf("it does not name %s: %v", row.names, err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.lists != row.lists {
				t.Errorf("%d lists, want %d", c.lists, row.lists)
			}
		})
	}
}

// podOf returns a pod as the daemon reads it.
func podOf(t *testing.T, p podObject) cluster.Pod {
	t.Helper()
	c := newContested(t, ipam.Pod{}, p)
	pods, err := c.kubernetes.ListPods(t.Context(), "worker")
	if err != nil || len(pods) != 1 {
		t.Fatal(pods, err)
	}
	return pods[0]
}

// TestUndisputed_Event: the ADD of a forged annotation fails with an event and a reply that name
// both pods, the DEL of its sandbox gets nothing of the other pod, and the other pod's DEL gets
// nothing either as long as it is not known whose the branch ENI is.
func TestUndisputed_Event(t *testing.T) {
	t.Parallel()
	c := newContested(t, ipam.Pod{},
		podObject{"shop", "db-0", branchOfVLAN(7), 1, "Running", 0}, podObject{"evil", "m", branchOfVLAN(7), 0, "Pending", 0})
	c.watch()
	pod, err := c.kubernetes.Pod(t.Context(), "evil", "m")
	if err != nil {
		t.Fatal(err)
	}
	branch, err := cluster.ParseBranch(pod.PodENI, false)
	if err != nil {
		t.Fatal(err)
	}
	var failed *branchError
	if err := c.branches.undisputed(t.Context(), pod, branch); !errors.As(err, &failed) {
		t.Fatal(err)
	}
	reply := c.branches.fail(&cniwire.AddRequest{PodNamespace: "evil", PodName: "m"}, failed, 0)
	note := addFailed(keeper.AddFailed{Pod: ipam.Pod{Namespace: "evil", Name: "m"}, Cause: failed.code, Detail: failed.Error()}).notice
	if note.Reason != "BranchConflict" || reply.Success || reply.Transient || reply.Cause != string(cause.BranchConflict) {
		t.Errorf("%+v, %+v", note, reply)
	}
	for _, text := range []string{note.Note, reply.Detail} {
		if !strings.Contains(text, "evil/m") || !strings.Contains(text, "shop/db-0") || !strings.Contains(text, "VLAN 7") {
			t.Errorf("%q", text)
		}
	}
	for _, name := range []string{"evil/m", "shop/db-0"} {
		namespace, pod, _ := strings.Cut(name, "/")
		if r, ok := c.branches.del(t.Context(), &cniwire.DelRequest{PodNamespace: namespace, PodName: pod}); ok {
			t.Errorf("the DEL of %s got %+v", name, r)
		}
	}
	c.change(false, podObject{"shop", "db-0", branchOfVLAN(7), 1, "Running", 0})
	if r, ok := c.branches.del(t.Context(), &cniwire.DelRequest{PodNamespace: "shop", PodName: "db-0"}); !ok || r.PodVLANID != 7 {
		t.Errorf("alone again: %+v", r)
	}
}

// TestLinkFree: a pod of the pool is refused the host link of a branch pod, or of a pod that the
// book does not know by name.
func TestLinkFree(t *testing.T) {
	t.Parallel()
	const attacker = testenv.AttackerNamespace + "/" + testenv.AttackerName
	victim := podObject{testenv.VictimNamespace, testenv.VictimName, branchOfVLAN(7), 0, "Pending", 0}
	for name, row := range map[string]struct {
		victim  podObject
		listed  bool
		request string // namespace/name
		taken   bool
	}{
		"of a branch pod":                {victim, true, attacker, true},
		"after a start":                  {victim, false, attacker, true},
		"of a running pod":               {podObject{victim.namespace, victim.name, "", 1, "Running", 0}, true, attacker, true},
		"of a pod without a network yet": {podObject{victim.namespace, victim.name, "", 0, "Pending", 0}, true, attacker, false},
		"of a pod that ended":            {podObject{victim.namespace, victim.name, "", 1, "Succeeded", 0}, true, attacker, false},
		"its own":                        {victim, true, victim.namespace + "/" + victim.name, false},
		"another":                        {victim, true, testenv.AttackerNamespace + "/q", false},
		"that of a second interface":     {podObject{"shop", "db.1", "", 1, "Running", 0}, true, "shop/db", false}, // a pod with one interface
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newContested(t, ipam.Pod{}, row.victim)
			if row.listed {
				c.watch()
				c.change(true)
			}
			namespace, pod, _ := strings.Cut(row.request, "/")
			err := c.linkFree(t.Context(), &cniwire.AddRequest{PodNamespace: namespace, PodName: pod}, cluster.Pod{NodeName: "worker"})
			taken := err != nil && strings.Contains(err.Error(), row.victim.namespace+"/"+row.victim.name)
			if taken != row.taken || err != nil && !taken {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAddBranches_Disputed: nothing is restored for a pod whose annotation was changed to name the
// branch ENI of another one, or the address of a pod of the pool, and no VLAN device is removed.
func TestAddBranches_Disputed(t *testing.T) {
	t.Parallel()
	ofPool := podObject{"evil", "n", strings.Replace(branchOfVLAN(9), "10.1.0.19", "10.1.0.99", 1), 1, "Running", 0}
	c := newContested(t, ipam.Pod{},
		podObject{"shop", "web", branchOfVLAN(8), 1, "Running", 0}, podObject{"shop", "db-0", branchOfVLAN(7), 1, "Running", 0},
		podObject{"evil", "m", branchOfVLAN(7), 1, "Running", 0}, ofPool)
	c.watch()
	p := &repairs{asserter: &asserter{
		api: c.kubernetes, owner: c.owner, branchPods: true, sandboxes: map[podName]branchSandbox{}, atStart: map[string]bool{},
	}, now: time.Now()}
	pooled := rules.WorkloadPod{Address: netip.MustParseAddr("10.1.0.99"), Owner: "pool"}
	to := living{pods: []rules.WorkloadPod{pooled}}
	link := netstate.Link{Index: 2, Name: "eth1", MAC: netstate.MAC{2, 0, 0, 0, 0, 2}, Flags: netstate.Up}
	p.addBranches(&hostnet.View{State: netstate.State{Links: []netstate.Link{link}}}, &to)
	var owners []string
	for _, pod := range to.pods {
		owners = append(owners, pod.Owner)
	}
	if want := []string{"pool", "branch/uid-shop-web"}; !slices.Equal(owners, want) {
		t.Errorf("restored are %q, want %q", owners, want)
	}
	if want := map[int]bool{7: true, 8: true, 9: true}; !maps.Equal(to.vlans, want) {
		t.Errorf("VLAN IDs in use are %v, want %v", to.vlans, want)
	}
}

// TestCountBranches: the summary has the node's pods with a branch ENI, those that wait for one, and since when.
func TestCountBranches(t *testing.T) {
	t.Parallel()
	c := newContested(t, ipam.Pod{},
		podObject{"shop", "web", branchOfVLAN(8), 1, "Running", 1}, podObject{"shop", "ended", branchOfVLAN(7), 0, "Succeeded", 1},
		podObject{"shop", "plain", "", 0, "Pending", 1}, podObject{"shop", "gone", awaited, 0, "Failed", 1},
		podObject{"shop", "second", awaited, 0, "Pending", 41}, podObject{"shop", "first", awaited, 0, "Pending", 30})
	d := &daemon{node: node{config: config.Config{PodENI: true}}, api: c.kubernetes}
	var got introspect.Trunk
	d.countBranches(&got)
	if want := (introspect.Trunk{}); got != want {
		t.Errorf("counted before the pods were listed: %+v", got)
	}
	c.watch()
	d.countBranches(&got)
	want := introspect.Trunk{BranchUsed: new(1), BranchWaiting: new(2), WaitingSince: new(time.Date(2026, 11, 21, 14, 0, 30, 0, time.UTC))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	d.node.config.PodENI, got = false, introspect.Trunk{}
	if d.countBranches(&got); got != (introspect.Trunk{}) {
		t.Errorf("counted without ENABLE_POD_ENI: %+v", got)
	}
}
