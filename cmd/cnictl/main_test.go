package main

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"cnictl/capacity/limits"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv/aws/fakeaws"
)

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"cnictl":          main,
		"kubectl-cni":     main,
		"kubectl-aws_cni": main,
	})
}

const recorded = "../../daemon/api/introspect/testdata/recorded"

// TestScript runs the real main against nodes served by the test. $LARGE, $STARVED and
// $ORIGINAL are their addresses, nothing listens at $GONE, and $TARGETS has all four. $EC2 is an EC2
// whose m5.large takes four interfaces and that has z9.large; $EC2_SUBNET has the subnet of $LARGE, with
// interfaces of others; $EC2_DENIED allows nothing.
func TestScript(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addresses := map[string]string{
		"LARGE":    fleettest.Serve(t, dir, "large", fleettest.Secondary()),
		"STARVED":  fleettest.Serve(t, dir, "starved", fleettest.Starved()),
		"ORIGINAL": fleettest.ServeRecorded(t, dir, "original", filepath.Join(recorded, "prefix"), "three-pods", time.Date(2026, 11, 21, 3, 0, 50, 0, time.UTC)),
		"GONE":     "unix:" + filepath.Join(dir, "gone.sock"),

		"EC2":        serveEC2(t, fakeaws.Options{Types: changedTypes()}),
		"EC2_SUBNET": serveEC2(t, fakeaws.Options{Allow: []string{"DescribeNetworkInterfaces"}}, interfacesOfOthers),
		"EC2_DENIED": serveEC2(t, fakeaws.Options{Allow: []string{"DescribeInstances"}}),
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for name, address := range addresses {
				env.Setenv(name, address)
			}
			env.Setenv("TARGETS", "large="+addresses["LARGE"]+",starved="+addresses["STARVED"]+",original="+addresses["ORIGINAL"]+",gone="+addresses["GONE"])
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

func serveEC2(t *testing.T, o fakeaws.Options, fill ...func(*testing.T, *fakeaws.World)) string {
	t.Helper()
	w := fakeaws.NewWorld(o)
	for _, f := range fill {
		f(t, w)
	}
	s, err := fakeaws.NewServer(w, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		w.Close()
	})
	return s.EC2URL
}

// interfacesOfOthers makes the subnet of $LARGE, with those of a load balancer and of a node that was not read.
func interfacesOfOthers(t *testing.T, w *fakeaws.World) {
	t.Helper()
	vpc := w.AddVPC(netip.MustParsePrefix("10.0.0.0/16"))
	subnet, err := w.AddSubnet(fakeaws.SubnetSpec{ID: "subnet-0123456789abcdef0", VPCID: vpc.ID, CIDR: netip.MustParsePrefix("10.0.0.0/19")})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []fakeaws.ENISpec{
		{Description: "ELB app/shop/0123456789abcdef", PrimaryIP: netip.MustParseAddr("10.0.30.4")},
		{Description: "ELB app/shop/0123456789abcdef", PrimaryIP: netip.MustParseAddr("10.0.30.5")},
		{Description: "aws-K8S-i-0fedcba9876543210", PrimaryIP: netip.MustParseAddr("10.0.30.20"), CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.31.0/28")}},
	} {
		e.SubnetID = subnet.ID
		if _, err := w.CreateENI(e); err != nil {
			t.Fatal(err)
		}
	}
}

func changedTypes() []limits.Instance {
	m5, _ := limits.Lookup("m5.large")
	m5.MaxENIs, m5.Cards = 4, []limits.Card{{Index: 0, MaxENIs: 4}}
	z9 := m5
	z9.Type, z9.VCPUs, z9.MemoryMiB = "z9.large", 2, 4096
	return []limits.Instance{m5, z9}
}

// exits runs a command and checks its exit code: exits CODE COMMAND ARGS…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// initLimit is how many bytes package initialisation may allocate at a start of the tool. Every
// command and every completion pays for it. Unlike time, bytes are the same on every machine:
// 2.4 MB took 10 ms on a fast one.
const initLimit = 2_500_000

var initBytes = regexp.MustCompile(`(?m)^init .* ([0-9]+) bytes`)

// TestInit starts the real binary, so that code linked only by tests does not count.
func TestInit(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), binary(t), "version", "--client")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "cnictl ") {
		t.Fatalf("no version in %s", out)
	}
	sum := 0
	for _, m := range initBytes.FindAllSubmatch(out, -1) {
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if sum == 0 {
		t.Fatalf("no bytes of initialisation in %s", out)
	}
	t.Logf("package initialisation allocates %d bytes", sum)
	if sum > initLimit {
		t.Errorf("package initialisation allocates %d bytes, more than %d", sum, initLimit)
	}
}
