//go:build nightly

package e2e_test

func init() { assertedBackends = append(assertedBackends, "legacy") }
