package root_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"cnictl/cmd/cnictl/internal/root"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv/fleetsim"
)

// identifying are the texts of Kubernetes objects without which nothing is found or read.
var identifying = regexp.MustCompile(`(^|\.)(kind|apiVersion|resourceVersion|selfLink|nodeName)$|metadata\.(name|namespace|uid)$|[tT]ime(stamp)?$|(At|containerPort|hostIP)$|resources|capacity|allocatable`)

// TestPlanted_Cluster: whatever an object of the API says, no command prints it raw.
func TestPlanted_Cluster(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 4, Seed: 1})
	front := before(t, sim)
	var changed atomic.Int64
	front.change = func(_ *http.Request, body []byte) []byte {
		if !json.Valid(body) {
			return body
		}
		return fleettest.JSON(fleettest.Plant(fleettest.Tree(t, json.RawMessage(body)), fleettest.Hostile, func(path string) bool {
			if identifying.MatchString(path) {
				return false
			}
			changed.Add(1)
			return true
		}))
	}
	for _, args := range []string{
		"status", "nodes -o wide", "nodes -o csv", "trunks -o wide", "events -o wide", "pod kube-system/none", "version", "subnets -o wide", "logs -o wide",
		"doctor --exit-zero --once", "migrate check --once",
	} {
		out, errOut := &lineWriter{}, &lineWriter{}
		ctx, cancel := bounded(t)
		root.Main(ctx, factory(t, out, errOut), append(strings.Fields(args), "--kubeconfig="+front.kubeconfig))
		cancel()
		for _, r := range out.String() + errOut.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s prints %q:\n%.2000q", args, r, out.String()+errOut.String())
				break
			}
		}
	}
	if changed.Load() < 100 {
		t.Errorf("only %d texts were hostile", changed.Load())
	}
}
