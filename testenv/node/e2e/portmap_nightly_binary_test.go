//go:build nightly

package e2e_test

func init() { everyPortmapRun = true }
