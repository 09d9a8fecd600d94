//go:build nightly

package bundle

func init() { everySituation, nameSeeds = true, 24 }
