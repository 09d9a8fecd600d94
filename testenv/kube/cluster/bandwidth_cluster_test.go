package cluster_test

import (
	"strconv"
	"testing"

	"cnictl/testenv"

	corev1 "k8s.io/api/core/v1"
)

// TestBandwidth: with ENABLE_BANDWIDTH_PLUGIN a pod sends no faster than its annotation
// allows, once it has used up the burst that the runtime requests, 2^32-1 bits.
func TestBandwidth(t *testing.T) {
	l := requireCluster(t)
	const (
		limit   = 16e6             // bits a second
		burst   = 512<<20 + 10<<20 // bytes; more than the burst, which refills meanwhile
		measure = 8 << 20          // bytes: 4 s
	)
	pods := l.run(
		pod("sink", l.c.Machines[1]),
		pod("free", l.c.Machines[0]),
		pod("limited", l.c.Machines[0], func(p *corev1.Pod) {
			p.Annotations = map[string]string{"kubernetes.io/egress-bandwidth": "16M"}
		}),
	)
	rate := func(from *corev1.Pod, bytes int) float64 {
		var answer string
		testenv.EventuallyErr(l, "pod "+from.Name+" to send", func() (err error) { // a pod runs before it listens
			answer, err = l.get(from, "/send", "to", pods[0].Status.PodIP+":9", "bytes", strconv.Itoa(bytes))
			return err
		})
		ms, err := strconv.ParseFloat(answer, 64)
		l.check(err)
		return float64(bytes) * 8 / (max(ms, 1) / 1000)
	}
	rate(pods[2], burst)
	limited, free := rate(pods[2], measure), rate(pods[1], measure)
	t.Logf("%.0f Mbit/s without a limit, %.1f with one of %.0f", free/1e6, limited/1e6, limit/1e6)
	if limited > 2*limit {
		t.Errorf("%.1f Mbit/s with a limit of %.0f", limited/1e6, limit/1e6)
	}
	if free < 2*limited {
		t.Errorf("%.0f Mbit/s without a limit: the other's %.1f shows nothing", free/1e6, limited/1e6)
	}
}
