//go:build nightly

package causes

func init() { everyFixture, unionStride, lackingWorlds = true, 1, healthyWorlds }
