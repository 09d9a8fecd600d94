package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"cnictl/daemon/api/cnirpc"
	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/resync"
	"cnictl/testenv"
	"cnictl/testenv/node"
)

// scene is an operation on a node in which the daemon dies.
type scene struct {
	name   string
	env    map[string]string // of the daemon that may die and of its successors
	before map[string]string // changes to env for the first daemon, which prepares the scene
	pods   int               // that run before the operation
	// down changes the node while no daemon runs.
	down func(s *stage)
	// operation runs while the daemon may die; nil if it is only the daemon's start.
	operation func(s *stage)
	// rest completes the operation if the daemon did not die; nil if there is nothing to do.
	rest func(s *stage)
	// resting lists the points that the daemon passes if it must leave an ENI alone for a minute
	// before the operation. They are given instead of recorded, so that all runs wait for that
	// minute in parallel.
	resting []crashpoint.Point
	// recoveries are what kubelet may do after the crash; nil means that the daemon only restarts.
	recoveries map[string]recovery
}

// recovery is what kubelet does after a crash during the operation: while the daemon is down,
// and once the next one serves. Unless young is set, the daemon is restarted minutes later.
type recovery struct {
	down, up func(s *stage)
	young    bool
}

// stage is a scene on a node.
type stage struct {
	*lab
	*node.Node
	pods []*node.Pod // that must exist
	pod  *node.Pod   // of the operation
	err  error       // of the operation
	// older is a sandbox of the same pod whose DEL is still to come.
	older *node.Pod
}

func newStage(t *testing.T, sc *scene) *stage {
	t.Helper()
	l := newCrashLab(t)
	s := &stage{lab: l, Node: l.boot("t3.small", merged(sc.env, sc.before))}
	l.settled(s.Node)
	s.pods = l.mustAdd(s.Node, "p", sc.pods, 1)
	l.settled(s.Node)
	l.kill(s.Node, syscall.SIGKILL) // everything is on disk, and a clean exit takes a second
	if sc.down != nil {
		sc.down(s)
	}
	return s
}

// record runs the operation without a crash. It returns the points that the daemon passed
// and the size of the pool at the end.
func (sc *scene) record(t *testing.T) ([]passing, size) {
	t.Helper()
	s := newStage(t, sc)
	f := newTrace(s)
	s.start(s.Node, merged(sc.env, f.env("", 0)))
	if sc.operation != nil {
		s.settled(s.Node)
		before := len(f.points(t))
		sc.operation(s)
		if s.err != nil {
			t.Fatalf("without a crash: %v", s.err)
		}
		s.settled(s.Node) // the daemon may still be working after it has replied
		points := ofOperation(f.points(t), before)
		if sc.rest != nil {
			sc.rest(s)
		}
		s.intact(s.Node, s.pods)
		return points, s.size(s.Node)
	}
	if sc.resting != nil {
		last := sc.resting[len(sc.resting)-1]
		agree(t, rest+restoredWithin, "the operation", func() []string { return []string{string(last)} }, func() []string { return lastOf(f.points(t)) })
	}
	s.intact(s.Node, s.pods)
	return ofOperation(f.points(t), 0), s.size(s.Node)
}

// crashes makes the daemon die at every point of the operation, in the nightly run before each of
// the recoveries, otherwise before them in turn.
func (sc *scene) crashes(t *testing.T, note func([]crashpoint.Point)) {
	if sc.resting != nil {
		sc.restingCrashes(t, note)
		return
	}
	points, want := sc.record(t)
	recoveries := sc.recoveries
	if recoveries == nil {
		recoveries = map[string]recovery{"restart": {}}
	}
	var passed []crashpoint.Point
	names := slices.Sorted(maps.Keys(recoveries))
	for i, p := range points {
		passed = append(passed, p.point)
		for j, name := range names {
			if everyScene || i%len(names) == j {
				atOnce(t, fmt.Sprintf("%s/%s", p.point, name), func(t *testing.T) { sc.crash(t, p, recoveries[name], want) })
			}
		}
	}
	note(passed)
}

// restingCrashes runs all cases beside each other.
func (sc *scene) restingCrashes(t *testing.T, note func([]crashpoint.Point)) {
	atOnce(t, "no crash", func(t *testing.T) {
		points, _ := sc.record(t)
		var passed []crashpoint.Point
		for _, p := range points {
			passed = append(passed, p.point)
		}
		if diff := cmp.Diff(sc.resting, passed); diff != "" {
			t.Errorf("points (- expected, + passed):\n%s", diff)
		}
		note(passed)
	})
	for _, p := range sc.resting {
		atOnce(t, string(p), func(t *testing.T) { sc.crash(t, passing{p, 1}, recovery{}, size{}) })
	}
}

func lastOf(points []crashpoint.Point) []string {
	if len(points) == 0 {
		return nil
	}
	return []string{string(points[len(points)-1])}
}

func (sc *scene) crash(t *testing.T, p passing, w recovery, want size) {
	s := newStage(t, sc)
	f := newTrace(s)
	env := merged(sc.env, f.env(p.point, p.nth))
	if sc.operation == nil {
		if err := s.StartDaemon(env); err != nil {
			t.Fatal(err)
		}
	} else {
		s.start(s.Node, env)
		s.settled(s.Node)
		sc.operation(s)
	}
	f.diedAt(t, p.point, s.ended(s.Node))
	if w.down != nil {
		w.down(s)
	}
	if !w.young {
		s.age(s.Node)
	}
	s.start(s.Node, sc.env)
	if w.up != nil {
		w.up(s)
	}
	s.intact(s.Node, s.pods)
	// The next daemon, too, leaves an ENI alone for a minute, so the final size is not awaited.
	if got := s.size(s.Node); got != want && sc.resting == nil {
		t.Errorf("the pool has %d ENIs with %d CIDRs, without a crash %d with %d", got.enis, got.cidrs, want.enis, want.cidrs)
	}
	s.del(s.Node, s.pods, 1)
	s.nothingLeft(s.Node)
	s.intact(s.Node, nil)
}

// rest is the minimum time for which an ENI stays attached.
const rest = time.Minute

// add runs an ADD; it succeeds even if the daemon dies as soon as it has answered.
func (s *stage) add() {
	s.t.Helper()
	s.sandbox("new")
	if s.err = s.Add(s.pod); s.err == nil {
		s.pods = append(s.pods, s.pod)
	}
}

func (s *stage) sandbox(name string) {
	s.t.Helper()
	var err error
	if s.pod, err = s.NewSandbox(node.PodSpec{Namespace: "default", Name: name}); err != nil {
		s.t.Fatal(err)
	}
}

// again repeats an ADD that failed, for the same sandbox.
func (s *stage) again() {
	s.t.Helper()
	if s.err == nil {
		return // the ADD succeeded
	}
	if err := s.Add(s.pod); err != nil {
		s.t.Fatalf("ADD again after %v: %v", s.err, err)
	}
	s.pods = append(s.pods, s.pod)
}

// giveUp deletes the sandbox of an ADD that failed, as containerd does at once.
func (s *stage) giveUp() {
	s.t.Helper()
	if s.err == nil {
		return
	}
	if err := s.DelPod(s.pod); err != nil {
		s.t.Error(err)
	}
	if s.older == nil || !s.linked(s.older) { // its link has the same name
		s.linksGone(s.Node, s.pod)
	}
}

// replace creates another sandbox for the pod whose ADD failed.
func (s *stage) replace() {
	s.t.Helper()
	if s.err == nil {
		return
	}
	s.add()
	if s.err != nil {
		s.t.Errorf("ADD of another sandbox: %v", s.err)
	}
}

// delOne runs a pod's DEL, without removing its namespace. DEL succeeds whatever happens to
// the daemon: the previous result tells the plugin what the pod had.
func (s *stage) delOne() {
	s.t.Helper()
	s.takeOne()
	if _, s.err = s.RunPlugin(s.pod, "DEL", s.pod.Result); s.err != nil {
		s.t.Error(s.err)
	}
}

// takeOne removes a pod from the list of those that must exist: preferably one that has rules
// for a secondary ENI's table.
func (s *stage) takeOne() {
	i := slices.IndexFunc(s.pods, func(p *node.Pod) bool {
		eni, ok := s.world.OwnerOf(p.IP)
		return ok && !eni.Primary()
	})
	i = max(i, 0)
	s.pod, s.pods = s.pods[i], slices.Delete(slices.Clone(s.pods), i, i+1)
}

// remove deletes a sandbox whose DEL succeeded.
func (s *stage) remove() {
	s.t.Helper()
	if err := s.RemoveSandbox(s.pod); err != nil {
		s.t.Error(err)
	}
	s.linksGone(s.Node, s.pod)
}

// deleteAgain repeats the DEL and deletes the sandbox.
func (s *stage) deleteAgain() {
	s.t.Helper()
	if err := s.DelPod(s.pod); err != nil {
		s.t.Error(err)
	}
	s.linksGone(s.Node, s.pod)
}

// call calls the gRPC server, as upstream's plugin does.
func (s *stage) call(f func(ctx context.Context, c cnirpc.CNIBackendClient) error) error {
	s.t.Helper()
	conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return s.Dial("unix", node.GRPCSocket, testenv.Left(s.t))
		}))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	return f(s.t.Context(), cnirpc.NewCNIBackendClient(conn))
}

var errRefused = errors.New("refused")

func (s *stage) grpcAdd() {
	s.t.Helper()
	s.sandbox("new")
	s.err = s.call(func(ctx context.Context, c cnirpc.CNIBackendClient) error {
		r, err := c.AddNetwork(ctx, &cnirpc.AddNetworkRequest{
			K8S_POD_NAME: s.pod.Name, K8S_POD_NAMESPACE: s.pod.Namespace, ContainerID: s.pod.ContainerID,
			IfName: s.pod.IfName, NetworkName: "aws-cni", Netns: s.pod.Path,
		})
		if err == nil && !r.GetSuccess() {
			err = errRefused
		}
		return err
	})
}

// finishAdd does what a plugin does after the reply.
func (s *stage) finishAdd() {
	s.t.Helper()
	if err := s.Add(s.pod); err != nil { // the sandbox keeps its address
		s.t.Fatal(err)
	}
	s.pods = append(s.pods, s.pod)
}

func (s *stage) grpcDel() {
	s.t.Helper()
	s.takeOne()
	s.err = s.call(func(ctx context.Context, c cnirpc.CNIBackendClient) error {
		_, err := c.DelNetwork(ctx, &cnirpc.DelNetworkRequest{
			K8S_POD_NAME: s.pod.Name, K8S_POD_NAMESPACE: s.pod.Namespace, ContainerID: s.pod.ContainerID,
			IfName: s.pod.IfName, NetworkName: "aws-cni", Reason: "PodDeleted",
		})
		return err
	})
}

// finishDel does what a plugin and a runtime do after the reply.
func (s *stage) finishDel() {
	s.t.Helper()
	s.ip(s.Node, "rule", "del", "prio", "512", "to", s.pod.IP.String())
	s.ip(s.Node, "rule", "del", "prio", "1536", "from", s.pod.IP.String())
	s.remove()
}

// tearDown does what a plugin does if the daemon is gone: it uses the previous result.
func (s *stage) tearDown() {
	s.t.Helper()
	if _, err := s.RunPlugin(s.pod, "DEL", s.pod.Result); err != nil {
		s.t.Error(err)
	}
}

type env = map[string]string

var (
	// The primary ENI of a t3.small has room for three pods; the pod of an operation
	// is the fourth and needs rules for a secondary ENI's table.
	full = env{"MAX_ENI": "2", "WARM_ENI_TARGET": "2"}

	// Pods come and go on one node, faster than the cooldown of addresses would allow.
	unrested = merged(full, env{"IP_COOLDOWN_PERIOD": "0"})

	addRecoveries = map[string]recovery{
		"ADD again":   {up: (*stage).again, young: true},
		"new sandbox": {down: (*stage).giveUp, up: (*stage).replace},
	}
	delRecoveries = map[string]recovery{
		"removed":   {down: (*stage).remove},
		"DEL again": {up: (*stage).deleteAgain, young: true},
	}

	// The nightly run has more of them, and more of the plugin.
	daemonScenes = []*scene{
		{name: "ADD", env: full, pods: 3, operation: (*stage).add, recoveries: addRecoveries},
		{name: "DEL", env: full, pods: 4, operation: (*stage).delOne, rest: (*stage).remove, recoveries: delRecoveries},
		{name: "attach", env: full, before: env{"MAX_ENI": "1"}, pods: 2},
		{name: "restart", env: full, pods: 5, down: (*stage).disturb},
	}
)

// disturb leaves state for a daemon to repair at its start: missing rules of a running pod, a
// pod that ended without a DEL, and rules for an address that no pod has.
func (s *stage) disturb() {
	s.t.Helper()
	s.ip(s.Node, "rule", "del", "prio", "512", "to", s.pods[0].IP.String())
	s.ip(s.Node, "rule", "add", "prio", "512", "to", "10.1.15.250", "lookup", "main")
	s.ip(s.Node, "rule", "add", "prio", "1536", "from", "10.1.15.250", "lookup", "7")
	s.takeOne()
	s.remove()
	s.age(s.Node)
}

// act is an operation in which the plugin dies while the daemon lives on.
type act struct {
	name       string
	prepare    func(s *stage)
	command    string // of the plugin that dies
	fails      bool   // the command fails even if nothing kills it
	recoveries map[string]func(s *stage)
}

var pluginScenes = []*act{
	{name: "plugin ADD", prepare: func(s *stage) { s.sandbox("new") }, command: "ADD", recoveries: pluginAddRecoveries},
	{name: "plugin DEL", prepare: (*stage).added, command: "DEL", recoveries: map[string]func(s *stage){
		"DEL again":         (*stage).deleteAgain,
		"DEL, daemon ended": (*stage).deleteWithoutDaemon,
	}},
}

var pluginAddRecoveries = map[string]func(s *stage){
	"ADD again": (*stage).again,
	"new sandbox": func(s *stage) {
		s.giveUp()
		s.replace()
	},
	"daemon ends too": func(s *stage) {
		s.kill(s.Node, syscall.SIGKILL)
		s.giveUp()
		s.age(s.Node)
		s.start(s.Node, unrested)
		s.replace()
	},
}

// added adds a pod, which must come up.
func (s *stage) added() {
	s.t.Helper()
	s.add()
	if s.err != nil {
		s.t.Fatal(s.err)
	}
	s.pods = s.pods[:len(s.pods)-1]
}

// halfAdded creates a sandbox whose ADD dies just before it prints the result.
func (s *stage) halfAdded() {
	s.t.Helper()
	s.sandbox("new")
	s.pod.Env = []string{"CNI_CRASH_AT=" + string(crashpoint.PluginBeforeResult)}
	if r, _ := s.RunPlugin(s.pod, "ADD", nil); r.Code != killed {
		s.t.Fatalf("plugin ended with %d", r.Code)
	}
}

// olderSandbox creates a second sandbox of a pod whose first one is still up.
func (s *stage) olderSandbox() {
	s.t.Helper()
	s.added()
	s.older = s.pod
	s.sandbox("new")
}

// badSandbox creates a sandbox that already has a default route, so the plugin fails halfway.
func (s *stage) badSandbox() {
	s.t.Helper()
	s.sandbox("new")
	name := s.pod.Netns.Name
	s.ip(s.Node, "-n", name, "link", "add", "other", "type", "veth", "peer", "name", "end")
	s.ip(s.Node, "-n", name, "link", "set", "end", "up")
	s.ip(s.Node, "-n", name, "link", "set", "other", "up")
	s.ip(s.Node, "-n", name, "route", "add", "default", "dev", "other")
}

// deleteWithoutDaemon repeats the DEL while no daemon runs.
func (s *stage) deleteWithoutDaemon() {
	s.t.Helper()
	s.kill(s.Node, syscall.SIGKILL)
	s.deleteAgain()
	s.age(s.Node)
	s.start(s.Node, unrested)
}

func (a *act) stage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, &scene{env: full, pods: 3})
	s.start(s.Node, unrested)
	return s
}

// record lists the points that the plugin passes when nothing kills it.
func (a *act) record(t *testing.T) []crashpoint.Point {
	t.Helper()
	s := a.stage(t)
	f := newTrace(s)
	a.prepare(s)
	s.pod.Env = []string{"CNI_CRASH_LIST=" + string(f)}
	if _, err := s.RunPlugin(s.pod, a.command, s.pod.Result); (err != nil) != a.fails {
		t.Fatalf("without a crash: %v", err)
	}
	return distinct(f.points(t))
}

func (a *act) crashes(t *testing.T, note func([]crashpoint.Point)) {
	points := a.record(t)
	for name, resume := range a.recoveries {
		atOnce(t, name, func(t *testing.T) {
			s := a.stage(t)
			for _, p := range points {
				if !a.crash(t, s, p, resume) {
					s = a.stage(t)
				}
			}
		})
	}
	note(points)
}

// crash kills the plugin at a point and resumes. It returns false if the stage cannot be used
// again.
func (a *act) crash(t *testing.T, s *stage, p crashpoint.Point, resume func(*stage)) bool {
	t.Helper()
	f, there := newTrace(s), len(s.pods)
	a.prepare(s)
	s.pod.Env = []string{"CNI_CRASH_LIST=" + string(f), "CNI_CRASH_AT=" + string(p)}
	r, err := s.RunPlugin(s.pod, a.command, s.pod.Result)
	f.diedAt(t, p, r.Code)
	s.pod.Env, s.err = nil, err
	within := restoredWithin
	if s.older != nil {
		within = restoredBesideOlder
	}
	resume(s)
	s.lateDEL()
	if !s.intactWithin(s.Node, s.pods, within) {
		t.Errorf("that was after the death at %s", p)
		return false
	}
	for _, gone := range s.pods[there:] {
		s.del(s.Node, []*node.Pod{gone}, 1)
		s.linksGone(s.Node, gone)
	}
	s.pods = s.pods[:there]
	return true
}

// restoredBesideOlder replaces restoredWithin if two sandboxes of one pod name share a link. The dead one, which
// got no DEL, counts as the link's owner until a third one is up. The daemon's next check, a
// minute later, is the first to miss it, and another check 5 s later ends it.
const restoredBesideOlder = noticedWithin + resync.EndedGap + restoredWithin

// linked reports whether a sandbox still has its link.
func (s *stage) linked(p *node.Pod) bool {
	s.t.Helper()
	return strings.Contains(s.ip(s.Node, "-n", p.Netns.Name, "link"), p.IfName+"@")
}

// lateDEL deletes the older sandbox, if any.
func (s *stage) lateDEL() {
	s.t.Helper()
	if s.older == nil {
		return
	}
	if err := s.DelPod(s.older); err != nil {
		s.t.Error(err)
	}
	if !slices.Contains(s.pods, s.pod) { // its link has the same name
		s.linksGone(s.Node, s.older)
	}
	s.older = nil
}
