//go:build nightly

package e2e_test

import (
	"time"

	"cnictl/testenv/aws/fakeaws"
)

func init() {
	after := func(f fakeaws.Fault) fakeaws.Fault { f.Effect = true; return f }
	growthFaults = append(growthFaults, []faultRow{
		{name: "Create hangs three times", rules: []fakeaws.Rule{meet(create, 3, fakeaws.Fault{Reply: fakeaws.ReplyHang})}},
		{name: "Create stalls once", rules: []fakeaws.Rule{meet(create, 1, fakeaws.Fault{Reply: fakeaws.ReplyStall})}},
		{name: "Create is carried out, its reply lost once", rules: []fakeaws.Rule{meet(create, 1, lost(fakeaws.ReplyClosed))}},
		{name: "Create is carried out and answered 500", rules: []fakeaws.Rule{meet(create, forGood, after(fakeaws.Internal))}},
		{name: "Create fails with 500", rules: []fakeaws.Rule{meet(create, forGood, fakeaws.Internal)}},
		{name: "Create fails with 503", rules: []fakeaws.Rule{meet(create, forGood, fakeaws.Unavailable)}},
		{name: "Create gives fewer addresses", rules: []fakeaws.Rule{meet(create, forGood, fakeaws.Fault{AtMost: 2})}},
		{name: "Create answers half", rules: []fakeaws.Rule{meet(create, forGood, fakeaws.Fault{Reply: fakeaws.ReplyTruncated})}},
		{name: "Create answers a web page", rules: []fakeaws.Rule{meet(create, forGood, fakeaws.Fault{Reply: fakeaws.ReplyHTML})}},
		{name: "Create answers nothing", rules: []fakeaws.Rule{meet(create, 1, fakeaws.Fault{Reply: fakeaws.ReplyEmpty})}},
		{name: "Create answers other ids", rules: []fakeaws.Rule{meet(create, 1, fakeaws.Fault{Reply: fakeaws.ReplyForeign})}},

		{name: "Attach hangs three times", rules: []fakeaws.Rule{meet(attach, 3, fakeaws.Fault{Reply: fakeaws.ReplyHang})}},
		{name: "Attach is carried out, its reply lost for good", rules: []fakeaws.Rule{meet(attach, 1, lost(fakeaws.ReplyClosed))}},
		{name: "Attach is carried out and answered 500", rules: []fakeaws.Rule{meet(attach, 1, after(fakeaws.Internal))}},
		{name: "Attach fails with 500", rules: []fakeaws.Rule{meet(attach, forGood, fakeaws.Internal)}},
		{name: "Attach answers other ids", rules: []fakeaws.Rule{meet(attach, 1, fakeaws.Fault{Reply: fakeaws.ReplyForeign})}},
		{name: "Attach answers nothing", rules: []fakeaws.Rule{meet(attach, 1, fakeaws.Fault{Reply: fakeaws.ReplyEmpty})}},
		{name: "Attach completes, the link never appears", most: holdTime, held: true, rules: []fakeaws.Rule{meet(attach, 0, fakeaws.Fault{Hold: fakeaws.HoldLink})}},
		{name: "delete-on-termination is throttled all the time", rules: []fakeaws.Rule{meet(modify, 0, fakeaws.Throttled)}},
		{name: "delete-on-termination fails with 500", rules: []fakeaws.Rule{meet(modify, forGood, fakeaws.Internal)}},

		{name: "Assign gives fewer", rules: []fakeaws.Rule{meet(assign, forGood, fakeaws.Fault{AtMost: 1})}},
		{name: "Assign is carried out, its reply lost once", rules: []fakeaws.Rule{meet(assign, 1, lost(fakeaws.ReplyClosed))}},
		{name: "Assign is carried out, its reply lost for good", rules: []fakeaws.Rule{meet(assign, forGood, lost(fakeaws.ReplyClosed))}, env: oneByOne()},
		{name: "Assign answers garbage", rules: []fakeaws.Rule{meet(assign, forGood, lost(fakeaws.ReplyGarbage))}, env: oneByOne()},
		{name: "Assign answers nothing", rules: []fakeaws.Rule{meet(assign, forGood, fakeaws.Fault{Reply: fakeaws.ReplyEmpty})}, env: oneByOne()},

		{name: "every fifth call is carried out and its reply lost", rules: []fakeaws.Rule{
			{Action: "*", Probability: 0.2, Seed: 11, Fault: lost(fakeaws.ReplyClosed)}}},

		{name: "metadata ahead of EC2", lag: func(w *fakeaws.World) { w.SetDescribeLag(time.Hour) }},
		{name: "metadata hangs", rules: []fakeaws.Rule{{Action: "IMDS", First: 3, Fault: fakeaws.Fault{Reply: fakeaws.ReplyHang}}}},
	}...)
}

// oneByOne makes the pool grow in small steps on the ENIs it has.
func oneByOne() map[string]string {
	return map[string]string{"WARM_IP_TARGET": "2", "MINIMUM_IP_TARGET": "3"}
}
