package kube

import (
	"testing"

	"cnictl/daemon/fleet/watch"
)

// TestSettings_Listens reads the daemon's configured listen address.
func TestSettings_Listens(t *testing.T) {
	t.Parallel()
	for bind, want := range map[string]struct {
		port        uint16
		unix, known bool
	}{
		"": {DefaultPort, false, true}, "127.0.0.1:7": {7, false, true}, "[::1]:7": {7, false, true}, ":7": {7, false, true},
		"unix:/x": {0, true, true}, "127.0.0.1": {}, "127.0.0.1:0": {}, "127.0.0.1:99999": {65535, false, false},
	} {
		port, unix, known := settings{bind: bind}.listens()
		if known != want.known || known && (port != want.port || unix != want.unix) {
			t.Errorf("%q: %d, %v, %v", bind, port, unix, known)
		}
	}
}

func TestUseOf(t *testing.T) {
	t.Parallel()
	got := useOf([]Pod{
		{Phase: "Running", IPs: []string{"10.0.0.1"}},
		{Phase: "Running", IPs: []string{"10.0.0.2"}, Wants: true},
		{Phase: "Pending"},
		{Phase: "Running", HostNetwork: true, IPs: []string{"10.0.0.9"}},
		{Phase: "Succeeded", IPs: []string{"10.0.0.3"}},
		{Phase: "Failed"},
	})
	if want := (watch.NodeUse{Pods: 4, Network: 3, Branch: 1, Waiting: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
