//go:build nightly

package hostnet

func init() { again = true }
