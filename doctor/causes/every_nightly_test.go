//go:build nightly

package causes

import "cnictl/testenv/situation/corpus"

func init() {
	everyFixture, unionStride, sourceStride, lackingWorlds = true, 1, 1, corpus.HealthyWorlds
}
