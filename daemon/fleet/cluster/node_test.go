package cluster

import (
	"encoding/json"
	"testing"

	"cnictl/daemon/fleet/watch"
)

// TestQuantity: whole numbers as the API writes them; all else is not known, and soon so.
func TestQuantity(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`"58"`: 58, `58`: 58, `"0"`: 0, `"1k"`: 1000,
		`""`: -1, `"-1"`: -1, `"58m"`: -1, `"1E-99999999"`: -1, `"99999999999999999999"`: -1, `null`: -1, `{}`: -1,
	} {
		var q quantity
		if err := json.Unmarshal([]byte(text), &q); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := q.value; want < 0 && got != nil || want >= 0 && (got == nil || *got != want) {
			t.Errorf("%s is %v, want %d", text, got, want)
		}
	}
}

// TestInstanceID is of EC2 alone.
func TestInstanceID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"aws:///eu-west-1a/i-0123": "i-0123", "i-0123": "i-0123", "": "",
		"aws:///eu-west-1a/1234-abcd/fargate-ip-10-0-0-1": "", "kind://docker/kind/kind": "",
	} {
		if got := instanceID(id); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
}

// TestSettings_Listens reads where the daemon is told to listen.
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
