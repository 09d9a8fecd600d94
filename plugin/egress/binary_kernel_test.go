package egress_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOff: with egress off, ADD passes the result on as the CNI library prints it and
// changes nothing, and DEL without a lease runs no other program.
func TestOff(t *testing.T) {
	t.Parallel()
	b := newBed(t, "nft", false)
	b.path, b.cniPath = "/nonexistent", "/nonexistent"
	b.log = filepath.Join(t.TempDir(), "egress-v6-plugin.log")
	p := b.pod("c1")
	for _, v := range versions {
		given := full
		if v < "0.3.0" {
			given = oldFull
		}
		given = strings.ReplaceAll(given, "VERSION", v)
		before, _, _ := strings.Cut(b.stdin(isOn, isOff, `"cniVersion":"1.1.0"`, `"cniVersion":"`+v+`"`, `"nodeIP":"198.51.100.1"`, `"nodeIP":""`), `"prevResult"`)
		stdin := before + `"prevResult":` + given + "}"
		want, _, err := library([]byte(given), v)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.run("ADD", stdin); got != want {
			t.Errorf("%s: %s\nlibrary %s", v, got, want)
		}
		if got := p.run("DEL", stdin); got != "" {
			t.Errorf("DEL prints %s", got)
		}
		if v < "0.4.0" {
			continue
		}
		p.run("CHECK", stdin)
	}
	if log, err := os.ReadFile(b.log); err == nil {
		t.Errorf("lines are written while egress is off:\n%s", log)
	}
	p.run("STATUS", b.stdin(isOn, isOff))
	p.fails("ADD", b.stdin(isOn, isOff), []string{`"code": 8`, "plugin's netns and netns from CNI_NETNS should not be the same"}, "CNI_NETNS="+b.node.Path)
	if links := p.links(); len(links) != 3 {
		t.Errorf("the pod has %v", links)
	}
	if _, err := os.Stat(b.dataDir); err == nil {
		t.Error("there is a directory of leases")
	}
}

// TestLog: requests and failures, with their causes, go to the configured log file and
// nowhere else.
func TestLog(t *testing.T) {
	t.Parallel()
	b := newBed(t, "nft", false)
	b.log = filepath.Join(t.TempDir(), "new", "egress-v4-plugin.log")
	p := b.pod("c1")
	p.run("ADD", b.stdin())
	p.fails("ADD", b.stdin(`"nodeIP":"198.51.100.1"`, `"nodeIP":"::1"`), []string{"global unicast IPv6 not found"})
	p.run("DEL", b.stdin())
	got, err := os.ReadFile(b.log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"caller":"egress/[a-z]+\.go:\d+","msg":"Received Egress CNI ADD request: ContainerID\(c1\)`, `"caller":"egress/[a-z]+\.go:\d+","msg":"Received Egress CNI DEL request: `,
		`"level":"error"`, `"cause":"invalid-config"`} {
		if !regexp.MustCompile(want).Match(got) {
			t.Errorf("the log has no %s:\n%s", want, got)
		}
	}
}

// TestBuild_NoModule: on a machine that has built nothing yet, the failure says what to run.
func TestBuild_NoModule(t *testing.T) {
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOPROXY", "off")
	if err := buildHostLocal(filepath.Join(t.TempDir(), "host-local")); err == nil || !strings.Contains(err.Error(), "run make reference") {
		t.Errorf("%v", err)
	}
}

// maxStartFaults bounds the minor page faults of a start, which dominate its cost.
const maxStartFaults = 400

func TestStartFaults(t *testing.T) {
	p, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	var fewest int64
	for range 5 {
		cmd := exec.CommandContext(t.Context(), p.egress)
		cmd.Env = []string{"CNI_COMMAND=VERSION"}
		if out, err := cmd.Output(); err != nil || !strings.HasPrefix(string(out), `{"cniVersion":"1.1.0"`) {
			t.Fatalf("%v, %s", err, out)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok || usage.Minflt == 0 {
			t.Fatalf("no page faults were counted: %+v", cmd.ProcessState.SysUsage())
		}
		if fewest == 0 || usage.Minflt < fewest {
			fewest = usage.Minflt
		}
	}
	t.Logf("%d minor page faults", fewest)
	if fewest >= maxStartFaults {
		t.Errorf("a start takes %d minor page faults, must stay below %d", fewest, maxStartFaults)
	}
}

func BenchmarkAdd(b *testing.B) {
	// A complete process with egress off: the cost for every pod of a cluster without egress.
	p, err := programs()
	if err != nil {
		b.Fatal(err)
	}
	stdin := `{"cniVersion":"0.4.0","name":"aws-cni","mtu":"9001","enabled":"false","prevResult":{"ips":[{"version":"4","address":"10.0.0.5/32"}]}}`
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), p.egress)
		cmd.Env = []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_NETNS=/run/netns/none", "CNI_IFNAME=eth0", "CNI_PATH=/x"}
		cmd.Stdin, cmd.WaitDelay = strings.NewReader(stdin), time.Second
		if out, err := cmd.Output(); err != nil {
			b.Fatalf("%v, %s", err, out)
		}
	}
}
