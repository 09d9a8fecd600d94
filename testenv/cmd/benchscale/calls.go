package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/testenv/fakeaws"
)

// byAction counts requests per action: "AttachNetworkInterface 5, CreateNetworkInterface 5".
func byAction(calls []fakeaws.Call) string {
	counts := map[string]int{}
	for _, c := range calls {
		counts[c.Action]++
	}
	var parts []string
	for _, a := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", a, counts[a]))
	}
	return strings.Join(parts, ", ")
}

// timeline shows when each request began and how long it took.
func timeline(calls []fakeaws.Call, since time.Time) string {
	var b strings.Builder
	sorted := slices.SortedFunc(slices.Values(calls), func(x, y fakeaws.Call) int { return x.Start.Compare(y.Start) })
	for _, c := range sorted {
		fmt.Fprintf(&b, "  %+7.3f s  %5.3f s  %s", c.Start.Sub(since).Seconds(), c.Took.Seconds(), c.Action)
		for _, k := range []string{"SecondaryPrivateIpAddressCount", "Ipv4PrefixCount", "DeviceIndex"} {
			if v := c.Params[k]; v != "" {
				fmt.Fprintf(&b, " %s=%s", k, v)
			}
		}
		if c.Code != "" {
			fmt.Fprintf(&b, " → %s", c.Code)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
