package node

import (
	"slices"
	"strconv"
	"strings"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/introspect"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// target is a target of the pool with the pool's actual value.
type target struct {
	Name string // of the variable
	Want string
	Have string
	Word string // met, short 3, not set, …
	Role draw.Role

	Short string // name in the chart; "" = not in the chart
	Spare int    // addresses that it requires beyond those in use, if in effect
}

// targetsOf lists the targets in the daemon's order of precedence: addresses, prefixes,
// ENIs. The first kind that is set and fits the mode takes effect.
func targetsOf(s introspect.Summary) []target {
	t := s.Targets
	var total, free, slots int
	var freePrefixes *int
	prefixes := false
	if len(s.Cards) > 0 {
		// Further cards have their own fixed targets.
		c := s.Cards[0]
		total, free, freePrefixes = c.Total, c.Free, c.FreePrefixes
		prefixes = c.Mode == introspect.ModePrefix
		if c.SlotsPerENI != nil {
			slots = *c.SlotsPerENI
		}
	}
	set := func(v *int) bool { return v != nil && *v > 0 }
	byAddress := set(t.WarmIP) || set(t.MinimumIP)
	perENI := slots
	if prefixes {
		perENI *= limits.PrefixSize
	}
	targets := []target{
		row("WARM_IP_TARGET", t.WarmIP, "free", "free", &free, 1, set(t.WarmIP), ""),
		row("MINIMUM_IP_TARGET", t.MinimumIP, "held", "held", &total, 1, set(t.MinimumIP), ""),
		row("WARM_PREFIX_TARGET", t.WarmPrefix, "free prefix", "free prefixes", freePrefixes, 1, prefixes && !byAddress && set(t.WarmPrefix),
			other(byAddress, !prefixes, "mode is secondary-ip")),
		row("WARM_ENI_TARGET", t.WarmENI, "free", "free", &free, perENI, !prefixes && !byAddress && set(t.WarmENI),
			other(byAddress, prefixes, "mode is prefix")),
	}
	for i := range targets {
		if slices.Contains(t.FromLabels, targets[i].Name) {
			targets[i].Word = strings.TrimSpace(targets[i].Word + " (label)")
		}
	}
	if !byAddress && !prefixes && set(t.WarmENI) {
		targets[3].Short, targets[3].Spare = "WARM_ENI", *t.WarmENI*perENI
	}
	return targets
}

// other returns the reason why a target is ignored, "" if none.
func other(byAddress, wrongMode bool, mode string) string {
	switch {
	case byAddress:
		return "overridden by addresses"
	case wrongMode:
		return mode
	}
	return ""
}

// row compares a target with the pool. have may be nil. unit is how many of have one unit of
// the target requires, 0 if unknown.
func row(name string, want *int, one, many string, have *int, unit int, acts bool, idle string) target {
	r := target{Name: name, Want: show.Int(want), Role: draw.Faint}
	if want == nil {
		r.Word = "not reported"
		return r
	}
	if *want == 0 {
		r.Word = "not set"
		return r
	}
	r.Have = show.Int(have) + " " + many
	if have != nil && *have == 1 {
		r.Have = "1 " + one
	}
	switch {
	case !acts:
		r.Word = idle
	case unit == 0, have == nil:
		r.Word = ""
	case *have >= *want*unit:
		r.Word, r.Role = "met", draw.Good
	default:
		r.Word, r.Role = "short "+strconv.Itoa(*want*unit-*have), draw.Warn
	}
	return r
}

// pool is a card's pool as drawn in a bar. Cooling and Limit are 0 if unknown.
type pool struct{ Assigned, Cooling, Free, Held, Limit int }

func poolOf(c introspect.CardSummary) pool {
	p := pool{Assigned: c.Assigned, Free: c.Free, Held: c.Total}
	if c.Cooling != nil {
		p.Cooling = *c.Cooling
	}
	if c.AddressLimit != nil {
		p.Limit = *c.AddressLimit
	}
	return p
}
