package ipamd

import (
	"maps"
	"slices"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/budget"
	"cnictl/daemon/internal/vpcapi"
)

// callCounts counts EC2 calls by action. Calls end in many goroutines.
type callCounts struct {
	mu       sync.Mutex
	byAction map[string]*introspect.EC2Calls // guarded by mu
}

func (c *callCounts) count(call vpcapi.Call, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byAction == nil {
		c.byAction = make(map[string]*introspect.EC2Calls)
	}
	n, ok := c.byAction[call.Action]
	if !ok {
		n = &introspect.EC2Calls{Action: call.Action}
		c.byAction[call.Action] = n
	}
	n.Calls++
	n.Throttled += call.Throttled
	if call.Err != nil {
		n.Errors++
	}
	at = at.UTC()
	n.LastAt = &at
}

// list returns the counts of all calls, with the rates to which throttling holds them. A call
// that is held back is counted only when it ends.
func (c *callCounts) list(rates []budget.State) []introspect.EC2Calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]introspect.EC2Calls, 0, len(c.byAction))
	for _, action := range slices.Sorted(maps.Keys(c.byAction)) {
		n := *c.byAction[action]
		if i := slices.IndexFunc(rates, func(s budget.State) bool { return s.Action == action && s.Slowed() }); i >= 0 {
			n.PerSecond = &rates[i].PerSecond
		}
		out = append(out, n)
	}
	return out
}
