package tour

import (
	"math"
	"time"

	"cnictl/daemon/fleet/store"
)

// The days before the recording, of which it has EC2's counts of the subnets' free addresses.
const (
	Before  = 48 * time.Hour
	between = 15 * time.Minute
)

// history returns the counts by subnet: each falls at its rate, with a daily cycle and a little
// noise, to where the recording begins.
func history() map[string]store.Readings {
	shapes := []struct{ perHour, cycle float64 }{{4.1, 12}, {6.1, 9}, {1.2, 14}}
	first := End().Add(-Every * Steps).Truncate(5 * time.Minute).Add(-70 * time.Second)
	out := map[string]store.Readings{}
	for i, z := range zones {
		var all store.Readings
		for k := int(Before / between); k > 0; k-- {
			ago := (time.Duration(k) * between).Hours()
			free := float64(z.free(0)) + shapes[i].perHour*ago + shapes[i].cycle*(1-math.Cos(2*math.Pi*ago/24)) + float64(k*7919%7-3)
			all = append(all, store.Reading{At: first.Add(-time.Duration(k) * between), Free: int(math.Round(free))})
		}
		out[z.subnet] = all
	}
	return out
}
