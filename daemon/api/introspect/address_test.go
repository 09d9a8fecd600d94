package introspect

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestUnmarshal_Zones: an address with a zone is refused wherever it is in a document, however
// it is written. A percent sign elsewhere is not.
func TestUnmarshal_Zones(t *testing.T) {
	t.Parallel()
	type inner struct {
		At      time.Time
		Range   netip.Prefix
		Address netip.Addr
	}
	type doc struct {
		Text string
		Raw  json.RawMessage
		One  *inner
		List []inner
		Keys map[netip.Addr]string
		Of   map[string][2]netip.Addr
		Any  any
	}
	for body, bad := range map[string]bool{
		`{"Text":"99% of fe80::1%eth0","Raw":"%","Any":"fe80::1%eth0"}`: false,
		`{"One":{"Address":"fe80::1","Range":"10.0.0.0/24"}}`:           false,
		`{"One":{"Address":"fe80::1%eth0"}}`:                            true,
		`{"One":{"Address":"fe80::1\u0025\u001b[2J"}}`:                  true,
		`{"List":[{},{"Address":"fe80::1%x"}]}`:                         true,
		`{"Keys":{"fe80::1%x":""}}`:                                     true,
		`{"Of":{"a":["10.0.0.1","fe80::1%x"]}}`:                         true,
		`{"Text":1}`:                                                    true,
	} {
		err := Unmarshal([]byte(body), new(doc))
		if (err != nil) != bad {
			t.Errorf("%s: %v", body, err)
		}
		if err != nil && strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%s: the error is %q", body, err)
		}
	}
	for text, ok := range map[string]bool{
		"10.0.0.1": true, "fe80::1": true, "::ffff:10.0.0.1": true, "fe80::1%eth0": false, "x": false, "": false,
	} {
		if addr, err := ParseAddr(text); (err == nil) != ok || addr.IsValid() != ok {
			t.Errorf("%q: %v, %v", text, addr, err)
		}
	}
}
