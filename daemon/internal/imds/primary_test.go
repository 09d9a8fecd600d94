package imds_test

import (
	"errors"
	"net/http"
	"testing"

	"cnictl/daemon/internal/imds"
	"cnictl/testenv/aws/fakeaws"
)

// TestPrimary reads single values, as the init container and the entrypoint do.
func TestPrimary(t *testing.T) {
	t.Parallel()
	n := newNode(t, fakeaws.Options{})
	c := imds.New(imds.Config{Endpoint: n.url})
	e := n.world.ENIsOf(n.instance.ID)[0]
	if mac, err := c.PrimaryMAC(t.Context()); mac != e.MAC || err != nil {
		t.Errorf("MAC %s, error %v, want %s", mac, err, e.MAC)
	}
	if a, err := c.LocalIPv4(t.Context()); a != e.PrimaryIP || err != nil {
		t.Errorf("IPv4 %v, error %v, want %v", a, err, e.PrimaryIP)
	}
	if a, err := c.PrimaryIPv6(t.Context()); a.IsValid() || !errors.Is(err, imds.ErrNotThere) {
		t.Errorf("IPv6 %v, error %v, want none", a, err)
	}
	if _, err := n.world.Assign(e.ID, fakeaws.AssignSpec{IPv6Count: 1}); err != nil {
		t.Fatal(err)
	}
	e = n.world.ENIsOf(n.instance.ID)[0]
	if a, err := c.PrimaryIPv6(t.Context()); len(e.IPv6s) != 1 || a != e.IPv6s[0] || err != nil {
		t.Errorf("IPv6 %v, error %v, want %v", a, err, e.IPv6s)
	}
}

// TestAttempts: a service that fails all attempts but the last is retried until it answers.
func TestAttempts(t *testing.T) {
	t.Parallel()
	n := newNode(t, fakeaws.Options{})
	for _, row := range []struct {
		attempts, failures int
		ok                 bool
	}{{4, 3, true}, {2, 2, false}} {
		left := row.failures
		n.world.SetIMDSFaults(func(path string, _ int) int {
			if path != "meta-data/mac" || left == 0 {
				return 0
			}
			left--
			return http.StatusInternalServerError
		})
		if _, err := imds.New(imds.Config{Endpoint: n.url, Attempts: row.attempts}).PrimaryMAC(t.Context()); (err == nil) != row.ok {
			t.Errorf("%d attempts, %d failures: %v", row.attempts, row.failures, err)
		}
	}
}
