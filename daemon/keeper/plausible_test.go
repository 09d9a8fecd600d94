package keeper

import (
	"strings"
	"testing"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
)

// TestAdd_NamesThatNothingCanHave: impossible names are refused at once and for good, and no
// address is assigned.
func TestAdd_NamesThatNothingCanHave(t *testing.T) {
	t.Parallel()
	members := map[string]func(*cniwire.AddRequest, string){
		"pod": func(r *cniwire.AddRequest, s string) { r.PodName = s }, "namespace": func(r *cniwire.AddRequest, s string) { r.PodNamespace = s },
		"uid": func(r *cniwire.AddRequest, s string) { r.PodUID = s }, "container": func(r *cniwire.AddRequest, s string) { r.ContainerID = s },
		"interface": func(r *cniwire.AddRequest, s string) { r.IfName = s }, "network": func(r *cniwire.AddRequest, s string) { r.NetworkName = s },
	}
	for member, set := range members {
		for name, plausible := range map[string]bool{
			"web-0": true, strings.Repeat("a", maxName): true, "../x": true, // never used as a path
			strings.Repeat("a", maxName+1): false, "a\nb": false, "a\x00": false, "\x1b[31m": false, "\xff": false,
		} {
			b := newBench(t)
			b.give(9)
			a := b.add("a", 0)
			set(a.Request, name)
			b.send(a.Add)
			if !plausible {
				if r := a.got(t); r.Success || r.Cause != string(cause.InvalidRequest) || r.Transient {
					t.Errorf("%s %.20q: %+v", member, name, r)
				}
				continue
			}
			b.write(nil)
			if r := a.got(t); !r.Success {
				t.Errorf("%s %.20q: %+v", member, name, r)
			}
		}
	}
}
