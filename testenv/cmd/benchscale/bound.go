package main

import (
	"fmt"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/testenv/cmd/internal/figure"
)

// bound is the minimum that any daemon can reach for a figure, and the reason.
type bound struct {
	least figure.Number
	why   string // how it is computed; printed under the table
}

// latencies maps EC2's actions to their latencies.
type latencies map[string]time.Duration

const (
	createENI   = "CreateNetworkInterface"
	attachENI   = "AttachNetworkInterface"
	modifyENI   = "ModifyNetworkInterfaceAttribute"
	assignIPs   = "AssignPrivateIpAddresses"
	describeENI = "DescribeNetworkInterfaces"
)

// chain returns the total time of calls that depend on each other.
func (l latencies) chain(actions ...string) (total time.Duration, text string) {
	var parts []string
	for _, a := range actions {
		total += l[a]
		parts = append(parts, fmt.Sprintf("%s %v", a, l[a]))
	}
	return total, strings.Join(parts, " + ")
}

// startBound returns the minimum time from a daemon's start until it serves.
func (l latencies) startBound() bound {
	total, text := l.chain(describeENI)
	return bound{milliseconds(total), text + ": which ENIs are attached is only known from EC2 (metadata lags behind); the subnets are asked for beside it"}
}

// growth describes what pods on a fresh node need.
type growth struct {
	pods     int
	prefixes bool
	of       limits.Instance
}

const prefixSize = 16

// perENI returns how many pod addresses fit on an ENI.
func (g growth) perENI() int {
	slots := g.of.IPv4PerENI - 1
	if g.prefixes {
		return slots * prefixSize
	}
	return slots
}

// newENIs returns how many ENIs must be created besides the primary one.
func (g growth) newENIs() int {
	return max(0, (g.pods-1)/g.perENI())
}

// bound returns the minimum time from the first ADD until all pods run, if all pods were known
// at once.
func (g growth) bound(l latencies) bound {
	fill, fillText := l.chain(assignIPs)
	if g.newENIs() == 0 {
		return bound{seconds(fill), fmt.Sprintf("%s: %d pods fit on the primary ENI, and one call can ask for all", fillText, g.pods)}
	}
	attach, attachText := l.chain(createENI, attachENI)
	serial := l[createENI] + time.Duration(g.newENIs())*l[attachENI]
	return bound{seconds(max(fill, attach)), fmt.Sprintf("%s: %d pods need %d more ENIs, made side by side, filled when created, beside the primary's addresses (%v); "+
		"no pod waits for the modification. If EC2 attached one at a time: %v", attachText, g.pods, g.newENIs(), fill, serial)}
}

// callsAtStart counts the calls of a daemon on a fresh node: the ENIs, the subnets, and the
// primary ENI's tags.
const callsAtStart = 3

// callBound returns the minimum number of calls from the daemon's start until all pods run.
func (g growth) callBound() bound {
	const perENI = 3 // create with all addresses, attach, modify for deletion on termination
	n := callsAtStart + 1 + perENI*g.newENIs()
	why := fmt.Sprintf("%d at start (ENIs, subnets, tags of the primary ENI), 1 for the addresses of the primary ENI", callsAtStart)
	if g.newENIs() > 0 {
		why += fmt.Sprintf(", %d (create, attach, modify) for each of %d more; with the ENI that WARM_ENI_TARGET=1 keeps in reserve, which is begun before the last pod runs, %d",
			perENI, g.newENIs(), n+perENI)
	}
	return bound{figure.Of(float64(n)), why}
}

// exhaustedBound is the bound of growth whose first create is refused.
func (g growth) exhaustedBound(l latencies) bound {
	total, text := l.chain(createENI, createENI, attachENI)
	return bound{seconds(total), text + ": the refused call and the same again, without a pause"}
}

// lateBound is the bound of growth in which only a late device takes time.
func lateBound(device time.Duration) bound {
	return bound{seconds(device), fmt.Sprintf("the device appears %v after the attach; no pause between the throttled tries, nothing asked of metadata", device)}
}
