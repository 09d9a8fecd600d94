package inventory

import (
	"net/netip"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
)

func TestText_Pieces(t *testing.T) {
	t.Parallel()
	took, missed := int64(640), uint64(3)
	cidrs := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28"), netip.MustParsePrefix("10.0.0.16/28"), netip.MustParsePrefix("10.0.0.32/28"), netip.MustParsePrefix("10.0.0.48/28")}
	for name, x := range map[string]struct {
		e            introspect.Event
		text, pieces string
	}{
		"nothing":   {introspect.Event{Kind: introspect.EventStarted}, introspect.EventStarted.Title(), ""},
		"a pod":     {introspect.Event{Pod: &introspect.PodRef{Namespace: "shop", Name: "cart"}, Address: netip.MustParseAddr("10.0.0.1"), ENIID: "eni-1"}, "10.0.0.1 eni-1", "shop/cart|10.0.0.1|eni-1"},
		"an action": {introspect.Event{ENIID: "eni-1", SubnetID: "subnet-1", Reason: "warm-ip-target", CIDRs: cidrs, DurationMS: &took}, "eni-1 subnet-1 warm-ip-target 4 CIDRs in 0.6s", "eni-1|warm-ip-target|10.0.0.0/28|10.0.0.16/28|10.0.0.32/28|and 1 more|in 0.6s"},
		"said once": {introspect.Event{ENIID: "eni-1", Reason: "full", Message: "eni-1 is full"}, "eni-1 full eni-1 is full", "eni-1 is full"},
		"a gap":     {introspect.Event{Kind: introspect.EventGap, Reason: "overflow", Missed: &missed}, "overflow 3 missing", "overflow|3 missing"},
	} {
		if got := EventText(x.e); got != x.text {
			t.Errorf("%s: %q, want %q", name, got, x.text)
		}
		if got := strings.Join(EventPieces(x.e), "|"); got != x.pieces {
			t.Errorf("%s: %q, want %q", name, got, x.pieces)
		}
	}
}
