package aggregate

import "time"

// Reading holds the metrics of one ipamd at one moment. Values are finite.
type Reading struct {
	// Values are the sums over the series of each family, by family name. A family that was
	// not shown is absent: ipamd shows a labelled counter only once it has counted something.
	Values map[string]float64

	// CPU is the processor time that the process has used, in seconds: every process reports
	// it, and it falls on a restart. 0 if not shown.
	CPU float64

	Started time.Time // of the process, by the node's clock; zero if not shown
	At      time.Time // of the reading, by the helper's clock

	Calls map[string]Calls // by API
	P99   float64          // worst 0.99 quantile of the calls, in ms; 0 if not shown
}

// Calls are the calls of one API since the process started.
type Calls struct {
	Count float64
	Took  float64 // total ms of all calls
}
