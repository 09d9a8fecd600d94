//go:build nightly

package collect

func init() { soakRuns = 100 }
