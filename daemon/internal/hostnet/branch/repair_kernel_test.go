package branch_test

import (
	"errors"
	"log/slog"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/netstate"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

const trunkMAC = "02:fa:4e:00:00:01"

// TestRepair_VLAN recreates the device of a branch ENI and everything that depends on it.
func TestRepair_VLAN(t *testing.T) {
	testenv.RequireKernel(t, "veth", "vlan")
	ns := netns.New(t)
	sh := func(script string) (text string) {
		t.Helper()
		err := ns.Do(func() error {
			out, err := exec.Command("sh", "-euc", "PATH=$PATH:/usr/sbin:/sbin\n"+script).CombinedOutput()
			if text = string(out); err != nil {
				return errors.Join(err, errors.New(text))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	hash := netnames.Hash("default", "branch", 0)
	sh("ip link add eth0 address " + trunkMAC + " type veth peer name far; ip link set eth0 up; ip link set far up; ip link add vlan" + hash + " type veth peer name podfar; ip link set vlan" + hash + " up")
	host, err := hostnet.New(t.Context(), hostnet.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var w rules.Baseline
	look := func() (out []rules.Repair) {
		err := ns.Do(func() error {
			v, err := host.View(t.Context(), false)
			if err != nil {
				return err
			}
			trunk, _ := v.LinkOf(trunkMAC)
			out = w.Diff(v.State, []rules.WorkloadPod{{
				Address: netip.MustParseAddr("10.0.1.9"), Owner: "branch/1", Hash: hash, Table: 103, Settled: true,
				Branch: &rules.Branch{VLAN: 3, MAC: netstate.MAC{2, 0, 0, 0, 0, 9}, Gateway: netip.MustParseAddr("10.0.0.1"), Trunk: trunk},
			}}, func(int32) (netstate.MAC, bool) { return netstate.MAC{}, false })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, wipe := range []string{"true", "ip link del vlan.eth.3", "ip route flush table 103", "while ip rule del priority 10; do :; done 2>/dev/null"} {
		sh(wipe)
		for range 4 {
			if err := ns.Do(func() error { _, err := host.Repair(t.Context(), look()); return err }); err != nil {
				t.Fatal(err)
			}
		}
		if got := look(); len(got) > 0 {
			t.Errorf("%s: still %v", wipe, got)
		}
		text := sh("ip rule; ip route show table 103; ip -d link show vlan.eth.3")
		for _, want := range []string{
			"10:\tfrom all iif vlan.eth.3 lookup 103", "10:\tfrom all iif vlan" + hash + " lookup 103", "default via 10.0.0.1 dev vlan.eth.3",
			"10.0.0.1 dev vlan.eth.3 scope link", "10.0.1.9 dev vlan" + hash + " scope link", "vlan protocol 802.1Q id 3", "02:00:00:00:00:09",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", wipe, want, text)
			}
		}
	}
}
