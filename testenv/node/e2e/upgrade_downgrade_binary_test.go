package e2e_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/node"
)

// wentBack is a node on which our daemon and plugin have created the recorded pods, in the
// recorded order, and on which upstream is to be started next.
type wentBack struct {
	*lab
	*recording
	n    *node.Node
	pods []*node.Pod
	env  map[string]string
}

// standIn creates the recorded pods with our daemon and plugin. MAX_ENI keeps the pool from
// growing beyond the recorded ENIs, so everything else must be equal.
func standIn(t *testing.T, mode string) *wentBack {
	t.Helper()
	o := &wentBack{recording: readRecording(t, mode), env: map[string]string{}}
	for k, v := range modes[mode] {
		o.env[k] = v
	}
	o.env["MAX_ENI"] = fmt.Sprint(len(o.enis))
	o.lab, o.n = o.recording.boot(t)
	o.writeSysctls(o.n, "all", "default", "lo") // the values on the machine of the recording
	o.lab.start(o.n, o.env)
	o.settled(o.n)
	for _, p := range o.recording.pods {
		o.sh(o.n, "ip netns add "+p.netns)
	}
	var fill []*node.Pod
	for _, p := range o.recording.pods {
		fill = append(fill, o.fillUntil(p, len(fill))...)
		pod := o.sandbox(o.n, p)
		if err := o.n.Add(pod); err != nil {
			t.Fatal(err)
		}
		o.pods = append(o.pods, pod)
	}
	o.del(o.n, fill, 4)
	last := o.pods[len(o.pods)-1] // as recorded
	if err := o.n.Add(last); err != nil {
		t.Fatal(err)
	}
	return o
}

// fillUntil adds other pods until the next one gets an address of the recorded pod's ENI.
func (o *wentBack) fillUntil(p recordedPod, have int) (fill []*node.Pod) {
	o.lab.t.Helper()
	want, ok := o.world.OwnerOf(p.address)
	if !ok {
		o.lab.t.Fatalf("%s is on no ENI", p.address)
	}
	before := 0 // addresses on the ENIs before want, less those of the pods there
	for _, e := range o.enis {
		if e.ID == want.ID {
			break
		}
		before += len(e.AvailableIPv4Cidrs)
	}
	if before == 0 && len(o.enis) > 1 {
		before = len(o.enis[0].AvailableIPv4Cidrs) - 1 // all but one: it gets the next pod, but not the one after that
	} else if before > 0 {
		before -= len(o.pods)
	}
	if before > have {
		fill = o.mustAdd(o.n, "fill", before-have, 4)
	}
	return fill
}

// likeRecorded replaces our addresses, MACs and times with the recorded ones.
func (o *wentBack) likeRecorded(text string) string {
	o.lab.t.Helper()
	same := map[string]string{}
	links := parseLinks(o.sh(o.n, "ip -d addr"))
	for i, p := range o.recording.pods {
		same[o.pods[i].IP.String()] = p.address.String()
		same[links[p.host.name].mac] = p.host.mac
		if o.pods[i].Netns != nil {
			inside := parseLinks(o.sh(o.n, "ip -n "+p.netns+" -d addr"))
			same[inside[p.ifName].mac] = p.inside.mac
		}
	}
	text = addressOrMAC.ReplaceAllStringFunc(text, func(s string) string {
		if other, ok := same[s]; ok {
			return other
		}
		return s
	})
	for _, p := range o.recording.pods {
		own := regexp.MustCompile(`("containerID":"` + p.containerID + `".*?"allocationTimestamp":)(\d{19}),`)
		if m := own.FindSubmatch(o.file); m != nil {
			text = own.ReplaceAllString(text, "${1}"+string(m[2])+",")
		}
	}
	return text
}

var addressOrMAC = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+|([0-9a-f]{2}:){5}[0-9a-f]{2}`)

// like applies likeRecorded to a whole picture.
func (o *wentBack) like(p picture) picture {
	change := func(list []string) []string {
		return lines(o.likeRecorded(strings.Join(list, "\n")))
	}
	return picture{change(p.rules), change(p.routes), change(p.links), change(p.iptables), change(p.native), change(p.sysctls), change(p.inside)}
}

// TestDowngrade_KernelAndResults compares what our daemon and plugin leave in the kernel
// and print with what upstream did for the same pods: only the listed differences may
// exist.
func TestDowngrade_KernelAndResults(t *testing.T) {
	t.Parallel()
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			o := standIn(t, mode)
			for i, p := range o.recording.pods {
				want := p.result
				if i == len(o.pods)-1 {
					want = o.read("add-again.json")
				}
				if got := o.likeRecorded(string(o.pods[i].Result)); got != string(want) {
					t.Errorf("ADD of %s printed\n%s\nrecorded\n%s", p.name, got, want)
				}
			}
			allowed := slices.Concat(marksDifferences, o.staleNeighbour())
			recorded := o.recording.picture()
			compare(t, recorded, o.like(o.take(o.n, o.sysctlPaths(), o.pods)), allowed...)
			// However the daemon ends, nothing changes in the kernel.
			before := o.take(o.n, o.sysctlPaths(), o.pods)
			for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
				o.kill(o.n, s)
				compare(t, before, o.take(o.n, o.sysctlPaths(), o.pods))
				o.lab.start(o.n, o.env)
				o.settled(o.n)
			}
			// A DEL leaves the same state as upstream's.
			last := o.pods[len(o.pods)-1]
			o.del(o.n, []*node.Pod{last}, 1)
			testenv.Eventually(o.lab.t, "the end of its link", func() bool { return !strings.Contains(o.sh(o.n, "ip link"), o.recording.pods[len(o.pods)-1].host.name) })
			now := o.like(o.take(o.n, nil, nil))
			compare(t, picture{
				rules: lines(string(o.read("ip-rule.one-deleted.txt"))), routes: onlyIPv4(string(o.read("ip-route-all.one-deleted.txt"))),
				links: now.links, iptables: now.iptables, native: now.native,
			}, now)
		})
	}
}
