//go:build nightly

package file

func init() { everySituation = true }
