package keeper

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// TestTerminate_BeginsNothing: results that arrive after Terminate begin no task that the same
// result begins before it, and a DEL does not wait for one.
func TestTerminate_BeginsNothing(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(b *bench) Message{
		"a subnet is exhausted": func(b *bench) Message {
			b.send(b.add("a", 10*time.Second).Add)
			fill, ok := lastOp(b, warmpool.PendingAssign)
			if !ok {
				b.t.Fatal("nothing is asked for")
			}
			return AssignDone{ID: fill.ID, Err: failed(cause.SubnetExhausted)}
		},
		"an attach fails": func(b *bench) Message {
			b.give(9)
			b.placed("a")
			return AttachDone{ID: b.only().ID, Err: failed(cause.SubnetExhausted)}
		},
		"ENIs that are not in the book": func(b *bench) Message {
			b.give(9)
			f, e := attachedView(secondary(9))
			return Observed{AskedMetadata: true, Interfaces: f, AskedEC2: true, Links: []string{"lo"}, ENIs: append(e, resync.ENI{
				ID: "eni-second", Status: "in-use", Device: 1, SubnetID: testSubnet, InstanceID: "i-0123456789abcdef0",
				Description: resync.DescriptionPrefix + "i-0123456789abcdef0", Tags: map[string]string{resync.TagInstanceID: "i-0123456789abcdef0"},
				AttachmentID: "eni-attach-2", AttachmentStatus: resync.AttachmentAttached, PrimaryIP: netip.MustParseAddr("10.0.0.9"),
			})}
		},
		"a pod is gone": func(b *bench) Message {
			b.give(9)
			b.placed("a")
			b.clock = b.clock.Add(resync.LinkDelay + time.Minute)
			f, _ := attachedView(secondary(9))
			look := Observed{AskedMetadata: true, Interfaces: f, Links: []string{"lo"}}
			b.Handle(b.clock, look)
			b.clock = b.clock.Add(resync.EndedGap)
			return look
		},
		"the node's groups change": func(b *bench) Message {
			b.give(9)
			b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{ID: "eni-second", Device: 1, SubnetID: testSubnet, PrimaryIP: netip.MustParseAddr("10.0.0.9"), RouteTable: 2}})
			b.sg.shown = map[ipam.ENIID][]string{"eni-second": {"sg-old"}}
			return GroupsRead{Groups: []string{"sg-new"}}
		},
		"a read fell due": func(b *bench) Message {
			b.give(9)
			b.clock = b.clock.Add(time.Hour)
			return Throttled{}
		},
	} {
		for _, ending := range []bool{false, true} {
			t.Run(map[bool]string{false: "serving/", true: "ending/"}[ending]+name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				message := prepare(b)
				if ending {
					b.Handle(b.clock, Terminate{})
				}
				before := len(b.begun)
				b.send(message)
				if begun := b.begun[before:]; ending != (len(begun) == 0) {
					t.Errorf("begins %T %+v", begun, begun)
				}
				if !ending || name != "a pod is gone" {
					return
				}
				d := del("a")
				b.send(d.Del)
				b.write(nil)
				if r := d.got(t); !r.Success {
					t.Errorf("DEL: %+v", r)
				}
			})
		}
	}
}
