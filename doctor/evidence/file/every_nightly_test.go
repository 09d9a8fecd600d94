//go:build nightly

package file_test

func init() { everySituation = true }
