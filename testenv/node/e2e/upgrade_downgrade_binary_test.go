package e2e_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

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
			o.until("the end of its link", func() bool { return !strings.Contains(o.sh(o.n, "ip link"), o.recording.pods[len(o.pods)-1].host.name) })
			now := o.like(o.take(o.n, nil, nil))
			compare(t, picture{
				rules: lines(string(o.read("ip-rule.one-deleted.txt"))), routes: onlyIPv4(string(o.read("ip-route-all.one-deleted.txt"))),
				links: now.links, iptables: now.iptables, native: now.native,
			}, now)
		})
	}
}

// TestDowngrade_File compares the file with the recorded one byte for byte, after SIGTERM
// and after SIGKILL, and reads it as upstream would.
func TestDowngrade_File(t *testing.T) {
	for mode := range modes {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(fmt.Sprintf("%s/%v", mode, signal), func(t *testing.T) {
				o := standIn(t, mode)
				o.kill(o.n, signal)
				o.sameFile("ipam.three-pods.json", o.recording.pods)
				o.beside(signal)
				o.lab.start(o.n, o.env)
				o.del(o.n, o.pods[2:], 1)
				o.kill(o.n, signal)
				o.sameFile("ipam.one-deleted.json", o.recording.pods[:2])
				o.lab.start(o.n, o.env)
				o.del(o.n, o.pods[:2], 1)
				o.kill(o.n, signal)
				if got, want := o.sh(o.n, "cat "+node.Checkpoint), `{"version":"vpc-cni-ipam/1","allocations":[]}`+"\n"; got != want {
					t.Errorf("file without pods %q, want %q", got, want)
				}
			})
		}
	}
}

// sameFile compares our file with a recorded one.
func (o *wentBack) sameFile(recorded string, pods []recordedPod) {
	o.lab.t.Helper()
	raw := o.sh(o.n, "cat "+node.Checkpoint)
	// Upstream writes the allocations from a map, in any order.
	if got, want := ordered(o.likeRecorded(raw)), ordered(string(o.read(recorded))); got != want {
		o.lab.t.Errorf("file is, but for addresses and times,\n%s\nrecorded\n%s", got, want)
	}
	if mode := strings.TrimSpace(o.sh(o.n, "stat -c %a "+node.Checkpoint)); mode != "600" {
		o.lab.t.Errorf("file has mode %s, upstream's has 600", mode)
	}
	kept, err := o.asUpstream([]byte(raw))
	if err != nil {
		o.lab.t.Errorf("upstream does not start: %v", err)
	}
	for i, p := range pods {
		if got := kept[p.containerID]; got != o.pods[i].IP {
			o.lab.t.Errorf("upstream takes %v for %s, it has %s", got, p.name, o.pods[i].IP)
		}
	}
	if len(kept) != len(pods) {
		o.lab.t.Errorf("upstream takes %d allocations, there are %d pods", len(kept), len(pods))
	}
}

// ordered sorts the allocations in a file by sandbox and leaves every other byte as it is.
func ordered(file string) string {
	list := entries(file)
	slices.SortFunc(list, func(a, b string) int {
		_, a, _ = strings.Cut(a, "containerID")
		_, b, _ = strings.Cut(b, "containerID")
		return strings.Compare(a, b)
	})
	start, end := strings.Index(file, "["), strings.LastIndex(file, "]")
	if start < 0 || end < start || strings.Join(entries(file), "") == "" {
		return file
	}
	inner := file[start+1 : end]
	if strings.Count(inner, "},{") != len(list)-1 { // something else between them
		return file
	}
	return file[:start+1] + strings.Join(list, ",") + file[end:]
}

// asUpstream reads a checkpoint by upstream's rules, without our codec. It returns the
// addresses that upstream would restore, by container id, or the error with which upstream
// would not start.
func (o *wentBack) asUpstream(data []byte) (map[string]netip.Addr, error) {
	var file struct {
		Version     string `json:"version"`
		Allocations []struct {
			NetworkName string `json:"networkName"`
			ContainerID string `json:"containerID"`
			IfName      string `json:"ifName"`
			IPv4        string `json:"ipv4"`
			Timestamp   int64  `json:"allocationTimestamp"`
			Metadata    struct {
				Namespace  string `json:"k8sPodNamespace"`
				Name       string `json:"k8sPodName"`
				Interfaces int    `json:"interfacesCount"`
			} `json:"metadata"`
		} `json:"allocations"`
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&file); err != nil {
		return nil, err
	}
	if file.Version != "vpc-cni-ipam/1" {
		return nil, fmt.Errorf("unexpected checkpointVersion %q", file.Version)
	}
	kept, seen := map[string]netip.Addr{}, map[netip.Addr]bool{}
	for _, a := range file.Allocations {
		if a.NetworkName == "" || a.ContainerID == "" || a.IfName == "" {
			return nil, fmt.Errorf("no key in %+v", a)
		}
		if a.Metadata.Namespace != "" && a.Metadata.Name != "" { // others are kept without a check
			hash := sha1.Sum([]byte(a.Metadata.Namespace + "." + a.Metadata.Name))
			if !o.hasLink(hex.EncodeToString(hash[:])[:11]) {
				continue // stale
			}
		}
		address, err := netip.ParseAddr(a.IPv4)
		if err != nil {
			return nil, err
		}
		if seen[address] {
			return nil, errors.New("datastore: IP already in data store")
		}
		seen[address] = true
		if _, known := o.world.OwnerOf(address); known {
			kept[a.ContainerID] = address
		}
	}
	return kept, nil
}

func (o *wentBack) hasLink(suffix string) bool {
	for name := range parseLinks(o.sh(o.n, "ip addr")) {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// leftBeside lists, by name, the files that may be beside the checkpoint after our daemon has
// stopped, and why they do not disturb upstream.
var leftBeside = map[syscall.Signal]map[string]string{
	syscall.SIGTERM: {},
	syscall.SIGKILL: {
		"cni.sock":   "our plugin's socket; upstream does not know the name, and its plugin does not dial it",
		"ipamd.sock": "upstream removes an old socket before it listens",
	},
}

// beside checks that the directory has only files that are allowed.
func (o *wentBack) beside(s syscall.Signal) {
	o.lab.t.Helper()
	for _, name := range lines(o.sh(o.n, "ls -A /var/run/aws-node")) {
		if _, ok := leftBeside[s][name]; !ok && name != "ipam.json" {
			o.lab.t.Errorf("left after %v: %s", s, name)
		}
	}
	if mode := strings.TrimSpace(o.sh(o.n, "stat -c %a /var/run/aws-node")); mode != "755" {
		o.lab.t.Errorf("directory has mode %s, upstream makes it 755", mode)
	}
}

// TestDowngrade_FilesKeptAside: our daemon keeps damaged files under names that upstream
// neither opens nor writes nor mistakes for its own temporary files, and the checkpoint itself
// is complete.
func TestDowngrade_FilesKeptAside(t *testing.T) {
	o := standIn(t, "secondary")
	for _, damage := range []string{"", "{", `{"version":"vpc-cni-ipam/2","allocations":[]}`} {
		o.kill(o.n, syscall.SIGKILL)
		o.shWith(o.n, "cat > "+node.Checkpoint, []byte(damage))
		o.sh(o.n, "touch "+node.Checkpoint+".tmp123456789") // left by a daemon that died
		o.lab.start(o.n, o.env)
		// A change makes sure that the daemon writes the file.
		o.del(o.n, o.mustAdd(o.n, "change", 1, 1), 1)
		o.kill(o.n, syscall.SIGTERM)
		kept := 0
		for _, name := range lines(o.sh(o.n, "ls -A /var/run/aws-node")) {
			switch {
			case name == "ipam.json":
			case regexp.MustCompile(`^ipam\.json\.damaged-\d+$`).MatchString(name):
				kept++
			default:
				t.Errorf("left: %s", name)
			}
		}
		if kept == 0 {
			t.Error("the damaged file is gone")
		}
		restored, err := o.asUpstream([]byte(o.sh(o.n, "cat "+node.Checkpoint)))
		if err != nil {
			t.Errorf("after %q upstream does not start: %v", damage, err)
		}
		// The pods' sandboxes are no longer known, but their addresses are.
		held := slices.Collect(maps.Values(restored))
		for _, p := range o.pods {
			if !slices.Contains(held, p.IP) {
				t.Errorf("after %q upstream would give %s, which %s has, to another pod", damage, p.IP, p.Name)
			}
		}
		o.lab.start(o.n, o.env)
	}
}

// TestDowngrade_MidWrite kills the daemon while pods come and go: at any moment upstream can
// read the file, and no address is in it twice.
func TestDowngrade_MidWrite(t *testing.T) {
	o := standIn(t, "secondary")
	// Compare the inode and time, not the content: all three pods may have come and gone before
	// it is read.
	written := func() string { return o.sh(o.n, "stat -c '%i %y' "+node.Checkpoint) }
	// Nine addresses are enough for both rounds: each may leave pods that are deleted while no
	// daemon runs and keep their addresses for a while.
	for range 2 {
		seen, done := written(), make(chan struct{})
		go func() {
			defer close(done)
			pods, _ := add(o.n, "churn", 3, 3) // some fail because the daemon dies, as intended
			for _, p := range pods {
				if r, err := o.n.RunPlugin(p, "DEL", p.Result); err != nil && r.Code == 0 {
					t.Errorf("DEL of %s: %v", p.Name, err)
				}
				if err := o.n.RemoveSandbox(p); err != nil {
					t.Error(err)
				}
			}
		}()
		o.until("a write", func() bool { return written() != seen })
		o.kill(o.n, syscall.SIGKILL)
		f, err := o.n.Open(node.Checkpoint, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		kept, err := o.asUpstream(data)
		if err != nil {
			t.Errorf("upstream does not start: %v\n%s", err, data)
		}
		for i, p := range o.recording.pods {
			if kept[p.containerID] != o.pods[i].IP {
				t.Errorf("%s is not in the file:\n%s", p.name, data)
			}
		}
		<-done
		// The kernel removes links shortly after their namespace. TestRestart covers a start
		// before that.
		o.until("the links of the others are gone", func() bool {
			return strings.Count(o.sh(o.n, "ip link"), " eni") == len(o.pods)
		})
		o.lab.start(o.n, o.env)
	}
}
