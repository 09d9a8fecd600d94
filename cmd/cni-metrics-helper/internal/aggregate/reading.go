package aggregate

import "time"

// Reading is what one ipamd showed at one moment. Values are finite.
type Reading struct {
	// Values are sums over the series of a family, by its name. A family that was not
	// shown is absent: ipamd shows a counter with labels once it has counted something.
	Values map[string]float64

	// CPU is the processor time that the process has used, in seconds: a count that
	// every process has and that falls when it is restarted. 0: not shown.
	CPU float64

	Started time.Time // of the process, by the node's clock; zero: not shown
	At      time.Time // of the reading, by the helper's clock

	Calls map[string]Calls // by API
	P99   float64          // worst 0.99 quantile of the calls, in ms; 0: none is shown
}

// Calls are the calls of one API since the process began.
type Calls struct {
	Count float64
	Took  float64 // ms, of all together
}
