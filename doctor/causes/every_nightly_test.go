//go:build nightly

package causes

import "cnictl/testenv/situation/corpus"

func init() { everyFixture, unionStride, lackingWorlds = true, 1, corpus.HealthyWorlds }
