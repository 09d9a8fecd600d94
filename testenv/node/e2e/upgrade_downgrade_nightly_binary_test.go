//go:build nightly

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

	"cnictl/testenv"
	"cnictl/testenv/node"
)

// TestDowngrade_File compares the file with the recorded one byte for byte, after SIGTERM
// and after SIGKILL, and reads it as upstream would.
func TestDowngrade_File(t *testing.T) {
	t.Parallel()
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
	syscall.SIGTERM: {"ipam-subnets.json": "our counts of free addresses; upstream does not know the name"},
	syscall.SIGKILL: {
		"ipam-subnets.json": "the same",

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
	t.Parallel()
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
			case name == "ipam.json", name == "ipam-subnets.json":
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
	t.Parallel()
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
		testenv.Eventually(o.lab.t, "a write", func() bool { return written() != seen })
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
		testenv.Eventually(o.lab.t, "the links of the others are gone", func() bool {
			return strings.Count(o.sh(o.n, "ip link"), " eni") == len(o.pods)
		})
		o.lab.start(o.n, o.env)
	}
}
